"""Branches by values of which no operator can be made: as for the sample, and checked by the graph."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import torch
from torch import nn

import entrepot as ep

X = torch.linspace(-1, 1, 24).reshape(2, 3, 4)
MASK = torch.tensor([[1, 1, 0], [1, 0, 0]])
SPECIAL = torch.tensor([[1, 2, 0], [1, 0, 0]])


class Rare(nn.Module):
    """Returns a tensor of another rank where a mask has a 2; TorchScript does not take arguments by name."""

    def __init__(self, reads):
        super().__init__()
        self.reads = reads
        self.scale = nn.Linear(4, 4)

    def forward(self, *, x, mask):
        if self.reads(mask):
            return self.scale(x)[mask == 2]
        return self.scale(x) * mask[..., None]


READS = {
    "bool": lambda mask: (mask == 2).any(),
    "item": lambda mask: (mask == 2).any().item(),
    "element": lambda mask: 2 in mask,
    "nonzero": lambda mask: torch.is_nonzero((mask == 2).sum()),
    "equal": lambda mask: not torch.equal(mask.clamp(max=1), mask),
    "allclose": lambda mask: not torch.allclose(mask.clamp(max=1).float(), mask.float()),
}


@pytest.fixture(scope="module")
def rare():
    module = Rare(READS["bool"]).eval()
    return module, ep.export(module, {"x": X, "mask": MASK})


@pytest.mark.parametrize("reads", READS)
def test_whatever_python_reads_is_checked(reads):
    module = Rare(READS[reads]).eval()
    session = ep.Session(ep.export(module, {"x": X, "mask": MASK}), providers=["cpu"])
    given = {"x": torch.cat([X, -X, X]), "mask": torch.cat([MASK.flip(1)] * 3)}
    with torch.no_grad():
        np.testing.assert_allclose(session.run(given)["output"], module(**given), rtol=1e-6, atol=1e-6)
    with pytest.raises(ep.ExecutionError, match=r"needs test_decided\.py"):
        session.run({"x": X, "mask": SPECIAL})


def test_the_axes_vary_and_a_note_says_what_is_needed(rare):
    _, model = rare
    assert model.report
    assert model.inputs[0].shape == ("batch", "x_dim1", 4)
    assert any("takes only inputs for which forward decides as for the sample" in note for note in model.notes)


def test_every_runtime_refuses_the_other_branch(rare):
    import onnxruntime

    session = onnxruntime.InferenceSession(rare[1].to_proto().SerializeToString())
    with pytest.raises(Exception, match=r"needs test_decided\.py"):
        session.run(None, {"x": X.numpy(), "mask": SPECIAL.numpy()})


@pytest.mark.parametrize(
    "change",
    [
        lambda model: ep.convert_opset(model, 13),
        lambda model: ep.optimize(model, level="extended"),
        lambda model: ep.load(model.to_proto()),
    ],
    ids=["opset 13", "optimised", "saved"],
)
def test_nothing_loses_the_check(rare, change):
    changed = change(rare[1])
    ep.Session(changed).run({"x": X, "mask": MASK})
    with pytest.raises(ep.ExecutionError):
        ep.Session(changed).run({"x": X, "mask": SPECIAL})


def test_a_module_that_is_made_of_it_refuses_as_well(rare):
    module, model = rare
    again = ep.to_torch(model)
    with torch.no_grad():
        torch.testing.assert_close(again(X, MASK), module(x=X, mask=MASK))
        with pytest.raises(RuntimeError):
            again(X, SPECIAL)


def test_a_proof_that_is_made_later_leaves_the_other_branch_out(rare):
    module, model = rare
    assert ep.verify(module, model, {"x": X, "mask": MASK})


def test_another_sample_takes_another_branch(rare):
    module, model = rare
    report = ep.verify(module, model, {"x": X, "mask": SPECIAL})
    assert not report
    assert "decides otherwise" in str(report)


class OnlyThese(nn.Module):
    """Takes one branch for the very values of the sample, and another one for all others."""

    def forward(self, *, x):
        if torch.equal(x, X.expand_as(x) if x.shape[1:] == X.shape[1:] else x + 1):
            return x
        return x.sum(), x


def test_what_holds_for_the_sample_alone_is_refused():
    with pytest.raises(ep.ConversionError) as refused:
        ep.export(OnlyThese(), {"x": X})
    assert "decides otherwise than for the sample at test_decided.py" in refused.value.__notes__[-1]


class Even(nn.Module):
    """Takes either branch as often as the other."""

    def forward(self, *, x):
        return x if x.sum() > 0 else (x.sum(), x)


def test_a_branch_that_other_values_take_is_refused():
    with pytest.raises(ep.ConversionError):
        ep.export(Even(), {"x": X + 1e-3})


class Unlike(nn.Module):
    """The arms could be operators of the graph."""

    def forward(self, x):
        if x.sum() > 0:
            return x * 2
        return x - 1


def test_a_branch_that_can_be_an_operator_stays_one():
    model = ep.export(Unlike(), X)
    assert "If" in {node.op_type for node in model.ir.graph}
    assert "entrepot.required" not in model.metadata


class Counts(nn.Module):
    """Decides in each turn of a loop, in a way that its state remembers."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(4, 4) for _ in range(3))

    def forward(self, *, x, mask):
        found = []
        for at, layer in enumerate(self.layers):
            x = layer(x)
            if (mask == at + 1).any():
                found.append(x.sum(-1, keepdim=True) if at else x)
        return torch.cat(found, -1)


def test_each_turn_of_a_loop_has_its_own_decision():
    model = ep.export(Counts(), {"x": X, "mask": MASK})
    assert model.report
    session = ep.Session(model)
    assert session.run({"x": X, "mask": MASK})["output"].shape == (2, 3, 4)
    for other in (SPECIAL, torch.zeros_like(MASK), torch.full_like(MASK, 3)):
        with pytest.raises(ep.ExecutionError):
            session.run({"x": X, "mask": other})


def test_the_module_is_left_alone():
    module = Rare(READS["item"])
    before = {name: value.clone() for name, value in module.state_dict().items()}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ep.export(module, {"x": X, "mask": MASK})
    assert module.training
    assert all(torch.equal(before[name], value) for name, value in module.state_dict().items())
