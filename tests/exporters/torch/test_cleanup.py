"""What is written is what is needed: few nodes, weights under their names, and all of it proved."""

from __future__ import annotations

import numpy as np
import onnxruntime
import pytest
import torch

import entrepot as ep
from tests.exporters.torch.test_zoo import built, exported
from tests.sweeps.nodes import export_torch, operators


class Normalised(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = torch.nn.Sequential(
            torch.nn.Conv2d(3, 4, 3, bias=False), torch.nn.BatchNorm2d(4), torch.nn.ReLU()
        )
        torch.nn.init.uniform_(self.layers[1].weight, 0.5, 2)
        self.layers[1].running_mean.uniform_(-1, 1)
        self.layers[1].running_var.uniform_(0.5, 2)

    def forward(self, x):
        return self.layers(x).flatten(1)


def sequential() -> torch.nn.Module:
    return torch.nn.Sequential(
        torch.nn.Conv2d(3, 8, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(8 * 36, 5)
    ).eval()


def nodes(model: ep.Model) -> list[str]:
    return [node.op_type for node in model.ir.graph]


def test_four_layers_are_four_nodes():
    model = ep.export(sequential(), torch.randn(1, 3, 8, 8))
    assert model.report is not None
    assert model.report.ok
    assert nodes(model) == ["Conv", "Relu", "Reshape", "Gemm"]
    assert str(model.inputs[0]) == "input: float32[batch, 3, 8, 8]"
    (shape,) = set(model.ir.graph.initializers) - {"0.weight", "0.bias", "3.weight", "3.bias"}
    assert model.ir.graph.initializers[shape].const_value.numpy().tolist() == [-1, 288]


@pytest.mark.parametrize("opset", [7, 10, 13, 18, 22])
def test_few_nodes_are_few_at_every_opset(opset):
    model = ep.export(sequential(), torch.randn(1, 3, 8, 8), opset=opset)
    assert model.report is not None
    assert model.report.ok
    assert len(nodes(model)) == 4


def test_an_empty_batch_stays_possible():
    proto = ep.export(sequential(), torch.randn(1, 3, 8, 8), verify=False).to_proto()
    session = onnxruntime.InferenceSession(proto.SerializeToString())
    assert session.run(None, {"input": np.zeros((0, 3, 8, 8), np.float32)})[0].shape == (0, 5)


def test_a_normalisation_is_absorbed_and_every_name_is_one_of_the_module():
    module = Normalised().eval()
    model = ep.export(module, torch.randn(2, 3, 6, 6))
    assert model.report is not None
    assert model.report.ok
    assert nodes(model) == ["Conv", "Relu", "Flatten"]
    assert set(model.ir.graph.initializers) == {"layers.0.weight", "layers.1.bias"}
    assert [node.metadata_props.get("entrepot.module") for node in model.ir.graph] == ["layers.0", "layers.2", None]
    assert all("entrepot.source" in node.metadata_props for node in model.ir.graph)


def test_a_note_says_which_weights_took_something_in():
    model = ep.export(Normalised().eval(), torch.randn(2, 3, 6, 6))
    (note,) = [note for note in model.notes if "absorbed" in note]
    assert note == "normalisations are absorbed into weights, whose values differ: layers.0.weight, layers.1.bias"
    assert [node.metadata_props.get("entrepot.absorbed") for node in model.ir.graph] == ["layers.1", None, None]
    assert not any("absorbed" in note for note in ep.export(sequential(), torch.randn(1, 3, 8, 8)).notes)


class Leading(torch.nn.Module):
    """Normalisations before products: one without padding, one with, one whose result is read twice, a Linear."""

    def __init__(self) -> None:
        super().__init__()
        self.norms = torch.nn.ModuleList([torch.nn.BatchNorm2d(4) for _ in range(3)])
        self.convs = torch.nn.ModuleList([torch.nn.Conv2d(4, 4, 3, padding=pad, bias=False) for pad in (0, 1, 0)])
        self.last, self.head = torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 2)
        for norm in (*self.norms, self.last):
            torch.nn.init.uniform_(norm.weight, 0.5, 2)
            norm.running_mean.uniform_(-1, 1)
            norm.running_var.uniform_(0.5, 2)

    def forward(self, x):
        for norm, conv in zip(self.norms[:2], self.convs[:2], strict=True):
            x = conv(norm(x)).relu()
        twice = self.norms[2](x)
        x = self.convs[2](twice).relu() + twice[:, :, 1:-1, 1:-1]
        return self.head(self.last(x.mean((2, 3))))


@pytest.mark.parametrize(("level", "left"), [("basic", 4), ("extended", 2)])
def test_normalisations_before_products_are_absorbed_by_extended(level, left):
    model = ep.export(Leading().eval(), torch.randn(2, 4, 12, 12), optimize=level)
    assert model.report is not None
    assert model.report.ok
    assert nodes(model).count("BatchNormalization") == left
    assert ("convs.0.bias" in model.ir.graph.initializers) == (level == "extended")


def test_optimize_goes_from_basic_to_extended_and_proves_it():
    basic = ep.export(Leading().eval(), torch.randn(2, 4, 12, 12), verify=False)
    model = ep.optimize(basic, feeds={"x": np.random.default_rng(0).normal(size=(2, 4, 12, 12)).astype(np.float32)})
    assert model.report is not None
    assert model.report.ok
    assert (nodes(basic).count("BatchNormalization"), nodes(model).count("BatchNormalization")) == (4, 2)
    assert nodes(ep.optimize(basic, level="none", verify=False)) == nodes(basic)


@pytest.mark.parametrize("given", ["layout", "", True, None, 1])
def test_optimize_refuses_a_level_that_there_is_not(given):
    with pytest.raises(ep.InputError, match=r'level is .*"none" or "basic" or "extended"'):
        ep.optimize(ep.export(sequential(), torch.randn(1, 3, 8, 8), verify=False), given)


def test_nothing_is_absorbed_if_that_is_asked_for():
    module = Normalised().eval()
    model = ep.export(module, torch.randn(2, 3, 6, 6), optimize="none")
    assert {"Conv", "BatchNormalization", "Relu"} <= set(nodes(model))
    weight = model.ir.graph.initializers["layers.0.weight"].const_value.numpy()
    np.testing.assert_array_equal(weight, module.layers[0].weight.detach().numpy())


def test_an_absorbed_model_does_not_change_with_its_module():
    module = Normalised().eval()
    model = ep.export(module, torch.randn(2, 3, 6, 6), verify=False)
    before = model.ir.graph.initializers["layers.0.weight"].const_value.numpy().copy()
    with torch.no_grad():
        module.layers[1].weight.zero_()
    np.testing.assert_array_equal(model.ir.graph.initializers["layers.0.weight"].const_value.numpy(), before)


def test_a_shared_model_says_when_what_was_absorbed_has_changed():
    module = Normalised().eval()
    model = ep.export(module, torch.randn(2, 3, 6, 6), share=True, verify=False)
    tensor = model.ir.graph.initializers["layers.0.weight"].const_value
    before, values = tensor.fingerprint(), tensor.numpy().copy()
    with torch.no_grad():
        module.layers[1].weight.mul_(2)
    assert tensor.fingerprint() != before
    np.testing.assert_allclose(tensor.numpy(), 2 * values, rtol=2 * np.finfo(np.float32).eps)


def test_weights_that_are_single_numbers_stay():
    class Scaled(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = torch.nn.Parameter(torch.ones(1))
            self.temperature = torch.nn.Parameter(torch.tensor(0.5))

        def forward(self, x):
            return x * self.scale * self.temperature.exp()

    model = ep.export(Scaled(), torch.randn(2, 3))
    assert set(model.ir.graph.initializers) == {"scale", "temperature"}


def test_checks_of_sizes_survive_simplification():
    class Both(torch.nn.Module):
        def forward(self, x, k):
            return x + k

    sample = (torch.randn(3, 4), torch.randn(3, 4))
    model = ep.simplify(ep.export(Both(), sample, checks=True), verify=False)
    session = onnxruntime.InferenceSession(model.to_proto().SerializeToString())
    good, bad = np.zeros((5, 4), np.float32), np.zeros((1, 4), np.float32)
    session.run(None, {"x": good, "k": good})
    with pytest.raises(onnxruntime.capi.onnxruntime_pybind11_state.Fail):
        session.run(None, {"x": good, "k": bad})


@pytest.mark.parametrize("given", ["layout", "", True, None, 1])
def test_a_level_that_there_is_not_is_refused(given):
    with pytest.raises(ep.InputError, match=r'optimize is .*"none" or "basic" or "extended"'):
        ep.export(sequential(), torch.randn(1, 3, 8, 8), optimize=given)


CHEAP = [
    "mlp",
    "lenet_digits",
    "detection_head",
    "dcgan_generator",
    "autoencoder",
    "gru_classifier",
]
CHEAP += ["gpt", "wavenet", "mixture_of_experts", "early_exit", "fixed_point"]


@pytest.mark.parametrize("name", CHEAP)
def test_no_more_nodes_than_torch_writes(name):
    """``benchmarks/export_nodes.py`` compares the whole zoo."""
    zoo = built(name)
    model = exported(name)
    assert operators(model.ir).total() <= operators(export_torch(zoo, model)).total()


class Turned(torch.nn.Module):
    def forward(self, x):
        first, second = x[..., :2], x[..., 2:]
        return torch.cat([-second, first], -1)


@pytest.mark.parametrize(("optimize", "slices", "splits"), [("basic", 0, 1), ("extended", 0, 1), ("none", 2, 0)])
def test_halves_are_split_without_constants_of_their_own(optimize, slices, splits):
    model = ep.export(Turned(), torch.randn(3, 4), dynamic={"x": {0: "batch"}}, optimize=optimize)
    operators = [node.op_type for node in model.ir.graph]
    assert (operators.count("Slice"), operators.count("Split")) == (slices, splits)
    assert optimize == "none" or "Constant" not in operators
