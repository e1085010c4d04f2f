"""Results that are no tensors: numbers that depend on a size are outputs, and constants are named in a note."""

import numpy as np
import pytest
import torch
from torch import nn
from torch.export import Dim

import entrepot as ep

X = torch.randn(3, 4, generator=torch.Generator().manual_seed(0))


class Function(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x, scale=None):
        return self.function(x) if scale is None else self.function(x) * scale


NUMBERS = {
    "size": (lambda x: (x * 2, x.shape[0]), np.int64),
    "alone": (lambda x: x.shape[0] + 1, np.int64),
    "product": (lambda x: (x, x.shape[0] * x.shape[1]), np.int64),
    "floor": (lambda x: {"y": x, "n": (x.shape[0] ** 2 + 1) // 3}, np.int64),
    "ratio": (lambda x: [x, x.shape[0] / x.shape[1]], np.float32),
    "root": (lambda x: (x, x.shape[0] ** 0.5), np.float32),
    "shape": (lambda x: (x, x.size()[0]), np.int64),
    "length": (lambda x: (x, x.size(0) - 1), np.int64),
    "value": (lambda x: (x, x.sum().item()), np.float32),
    "elements": (lambda x: (x, x.numel()), np.int64),
}


def number_of(result):
    if isinstance(result, dict):
        return result["n"]
    return result[-1] if isinstance(result, list | tuple) else result


@pytest.mark.parametrize("name", NUMBERS)
def test_a_number_that_depends_on_the_input_is_an_output(name):
    function, dtype = NUMBERS[name]
    model = ep.export(Function(function), X)
    assert model.inputs[0].shape == ("batch", "x_dim1")
    other = torch.randn(5, 7, generator=torch.Generator().manual_seed(1))
    for provider in "cpu", "reference", "onnxruntime":
        given = ep.Session(model, providers=[provider]).run({"x": other.numpy()})
        number = given["n" if name == "floor" else model.outputs[-1].name]
        assert (number.dtype, number.shape) == (dtype, ())
        np.testing.assert_allclose(number, number_of(function(other)), rtol=1e-6)
    assert not any("constant" in note for note in model.notes)
    assert not model.conditions


def test_every_size_of_a_shape_is_an_output_of_its_own():
    model = ep.export(Function(lambda x: (x, x.shape)), X)
    assert [spec.name for spec in model.outputs] == ["output_0", "output_1.0", "output_1.1"]


def test_what_is_constant_is_named_in_a_note_and_not_an_output():
    model = ep.export(Function(lambda x: {"y": x * 2, "none": None, "text": "a", "three": 3, "yes": True}), X)
    assert [spec.name for spec in model.outputs] == ["y"]
    assert "constant, so not outputs: none = None, text = 'a', three = 3, yes = True" in model.report.notes


def test_a_size_that_is_fixed_is_a_constant():
    model = ep.export(Function(lambda x: (x, x.shape[0], x.shape[1])), X, dynamic={"x": {0: "n"}})
    assert [spec.name for spec in model.outputs] == ["output_0", "output_1"]
    assert "constant, so not outputs: output_2 = 4" in model.notes


def test_an_argument_that_is_a_number_is_named_in_a_note():
    model = ep.export(Function(lambda x: x * 2), (X, 0.5))
    assert "constant, so not inputs: scale = 0.5" in model.notes


def test_nothing_but_constants_is_no_model():
    with pytest.raises(ep.InputError, match=r"returns nothing but constants.*let an axis vary"):
        ep.export(Function(lambda x: x.shape[0]), X, dynamic=False)


def test_a_program_that_returns_numbers_and_constants_is_exported():
    module = Function(lambda x: {"y": x * 2, "n": x.shape[0], "none": None, "three": 3})
    program = torch.export.export(module.eval(), (X,), dynamic_shapes=({0: Dim("n")},))
    output = program.graph.output_node().args
    model = ep.export(program)
    assert [spec.name for spec in model.outputs] == ["y", "n"]
    assert ep.Session(model).run({"x": np.ones((5, 4), np.float32)})["n"] == 5
    assert "constant, so not outputs: none = None, three = 3" in model.notes
    assert program.graph.output_node().args == output


def test_verify_holds_numbers_against_those_of_the_module(tmp_path):
    module = Function(lambda x: {"y": x * 2, "n": x.shape[0], "three": 3})
    ep.export(module, X, tmp_path / "net.onnx", output_names=["double", "rows"])
    model = ep.load(tmp_path / "net.onnx")
    assert ep.verify(module, model, X).ok
    report = ep.verify(Function(lambda x: {"y": x * 2, "n": x.shape[1], "three": 3}), model, X)
    assert {run.worst.name for run in report.failures} == {"rows"}
    with pytest.raises(ep.InputError, match="the module gives 1 tensors, the model 2 outputs"):
        ep.verify(Function(lambda x: x), model, X)
