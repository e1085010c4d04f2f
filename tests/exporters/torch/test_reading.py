"""Bodies of branches and loops are captured beside the modules whose weights they read."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import entrepot as ep
from entrepot.exporters.torch.rewriting import bodies
from entrepot.exporters.torch.rewriting.reading import Reader, named_weights, owners


class Whole(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(4, 4), nn.Sequential(nn.Linear(4, 4), nn.ReLU())
        self.scale = nn.Parameter(torch.ones(4))


def test_the_owners_of_weights_keep_their_names():
    whole = Whole()
    part = owners(whole, ["second.0.weight", "second.0.bias"])
    assert dict(part.named_parameters()).keys() == {"second.0.weight", "second.0.bias"}
    assert part.get_submodule("second.0") is whole.second[0]
    assert owners(whole, ["scale", "first.weight"]) is whole
    assert list(owners(whole, []).named_parameters()) == []


def test_an_owner_within_another_comes_with_it():
    outer = nn.Module()
    outer.block = Whole()
    part = owners(outer, ["block.second.0.weight", "block.scale"])
    assert part.block is outer.block


def test_a_weight_of_two_modules_is_read_under_both_names():
    whole = Whole()
    whole.second[0].weight = whole.first.weight
    seen = []

    class Flat(nn.Module):
        def __init__(self):
            super().__init__()
            self.module = whole

        def forward(self, x):
            with Reader() as reader:
                self.module.first(x)
            seen.append(reader.names)

    flat = Flat()
    with named_weights(flat):
        flat(torch.ones(2, 4))
    assert seen == [{"first.weight", "first.bias", "second.0.weight"}]


class Branching(nn.Module):
    """A layer of its own in each arm."""

    def __init__(self, layer):
        super().__init__()
        self.one, self.other, self.last = layer(), layer(), nn.Linear(4, 4)

    def forward(self, x):
        if x.sum() > 0:
            return self.last(self.one(x))
        return self.last(self.other(x) * 2)


@pytest.fixture
def parts(monkeypatch):
    """The names of the weights beside which each body is captured."""
    found = []
    capture = bodies.export_flat

    def noted(wrapper, tensors, dims):
        found.append({name.partition(".")[2] for name, _ in wrapper.named_parameters()})
        return capture(wrapper, tensors, dims)

    monkeypatch.setattr(bodies, "export_flat", noted)
    return found


X = torch.randn(3, 4, generator=torch.Generator().manual_seed(0))


def test_each_arm_is_captured_beside_its_own_weights(parts):
    torch.manual_seed(0)
    model = ep.export(Branching(lambda: nn.Linear(4, 4)), X)
    assert model.report.ok
    last = {"last.weight", "last.bias"}
    assert parts == [{"one.weight", "one.bias"} | last, {"other.weight", "other.bias"} | last]
    assert {"one.weight", "other.weight", "last.weight"} <= set(model.ir.graph.initializers)


def test_weights_that_are_read_unseen_have_their_names(parts, monkeypatch):
    monkeypatch.setattr(
        Reader, "__torch_function__", lambda self, func, types, args=(), kwargs=None: func(*args, **(kwargs or {}))
    )
    torch.manual_seed(0)
    model = ep.export(Branching(lambda: nn.Linear(4, 4)), X)
    assert model.report.ok
    assert [len(names) for names in parts] == [0, 6, 0, 6]
    assert {"one.weight", "other.weight", "last.weight"} <= set(model.ir.graph.initializers)


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.LSTM(4, 4)

    def forward(self, x):
        return self.cell(x)[0]


LAYERS = {
    "weight norm": lambda: torch.nn.utils.parametrizations.weight_norm(nn.Linear(4, 4)),
    "old weight norm": lambda: torch.nn.utils.weight_norm(nn.Linear(4, 4)),
    "dynamically quantised": lambda: torch.ao.quantization.quantize_dynamic(nn.Sequential(nn.Linear(4, 4)).eval()),
    "recurrent": Recurrent,
    "batch norm": lambda: nn.BatchNorm1d(4),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("layer", LAYERS)
def test_layers_that_hold_weights_in_other_ways_are_captured_in_arms(layer):
    torch.manual_seed(0)
    assert ep.export(Branching(LAYERS[layer]).eval(), X).report.ok
