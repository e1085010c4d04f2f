"""Conditions on the sizes of inputs are stated in the file; with checks=True runtimes refuse what breaks them."""

import json

import numpy as np
import onnxruntime as ort
import pytest
import torch
from torch import nn
from torch.export import Dim

import entrepot as ep
from entrepot.runtime.session import Session


class Function(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, a, b=None):
        return self.function(a) if b is None else self.function(a, b)


def dot(a, b):
    return torch.einsum("ij,ij->i", a, b)


def bounded(a):
    assert 4 <= a.shape[1] <= 100
    return a * 2


def folded(a):
    return a.reshape(a.shape[0], -1, 4).sum(1)


def halves(a, b):
    return a.reshape(a.shape[0], 2, -1).sum(1) * b


def randn(*shape):
    return torch.randn(shape, generator=torch.Generator().manual_seed(0))


def program(function, sample, shapes):
    return torch.export.export(
        Function(function).eval(), sample, dynamic_shapes=(shapes,) if len(sample) == 1 else shapes
    )


HALF = Dim("half", min=3, max=9)
MODELS = {
    "equal": (lambda: Function(dot), (randn(3, 5), randn(3, 5)), ["a.0 == b.0", "a.1 == b.1"]),
    "range": (lambda: Function(bounded), (randn(3, 8),), ["a_dim1 >= 4", "a_dim1 <= 100"]),
    "window": (lambda: nn.Conv1d(2, 2, 5), (randn(3, 2, 9),), ["input_dim2 >= 5"]),
    "multiple": (lambda: program(folded, (randn(3, 8),), {1: Dim.AUTO}), None, ["a_dim1 % 4 == 0"]),
    "derived": (
        lambda: program(halves, (randn(3, 8), randn(3, 4)), ({1: 2 * HALF}, {1: HALF})),
        None,
        ["b_dim1 >= 3", "b_dim1 <= 9", "a.1 == 2*b_dim1"],
    ),
}
"""What is exported, from which sample, and the conditions of it."""

SIZES = {
    "equal": (
        [[(4, 5), (4, 5)], [(1, 7), (1, 7)], [(0, 5), (0, 5)]],
        [[(4, 5), (1, 5)], [(4, 5), (4, 1)], [(1, 5), (4, 5)]],
    ),
    "range": ([[(1, 4)], [(2, 100)]], [[(2, 3)], [(2, 101)], [(2, 1)]]),
    "window": ([[(1, 2, 5)], [(2, 2, 6)]], [[(2, 2, 4)]]),
    "multiple": ([[(3, 8)], [(3, 12)]], [[(3, 7)]]),
    "derived": (
        [[(3, 6), (3, 3)], [(3, 18), (3, 9)]],
        [[(3, 8), (3, 3)], [(3, 8), (3, 1)], [(3, 20), (3, 10)], [(3, 4), (3, 2)]],
    ),
}
"""Shapes that go through, and shapes that do not."""


def exported(name, **how):
    torch.manual_seed(0)
    make, sample, _ = MODELS[name]
    return ep.export(make(), sample, **how)


def feeds_of(model, shapes):
    return {spec.name: randn(*shape).numpy() for spec, shape in zip(model.inputs, shapes, strict=True)}


@pytest.fixture(scope="module", params=[20, 13, 9], ids=lambda opset: f"opset{opset}")
def checked(request):
    """Every model with its checks, and where they were not asked for."""
    return {name: exported(name, checks=True, opset=request.param) for name in MODELS}


@pytest.mark.parametrize("name", MODELS)
def test_conditions_are_stated_in_the_file(name, tmp_path):
    model = exported(name)
    conditions = MODELS[name][2]
    assert list(model.conditions) == json.loads(model.metadata["entrepot.conditions"]) == conditions
    model.save(tmp_path / "net.onnx")
    assert f"needs {', '.join(conditions)}" in repr(ep.load(tmp_path / "net.onnx"))
    assert not any(node.name.startswith(("needs", "check")) for node in model.ir.graph)


def test_a_model_that_takes_every_size_has_no_conditions():
    model = ep.export(nn.ReLU(), randn(3, 4), checks=True)
    assert "entrepot.conditions" not in model.metadata
    assert [node.op_type for node in model.ir.graph] == ["Relu"]


@pytest.mark.parametrize("name", MODELS)
def test_with_checks_every_runtime_refuses_what_breaks_a_condition_and_nothing_else(name, checked):
    model = checked[name]
    assert model.report.ok
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_ALL
    other = ort.InferenceSession(model.to_proto().SerializeToString(), options, providers=["CPUExecutionProvider"])
    plain = Session(exported(name, verify=False))
    good, bad = SIZES[name]
    for shapes in good:
        feeds = feeds_of(model, shapes)
        (expected,) = plain.run(feeds).values()
        (result,) = other.run(None, feeds)
        np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-5)
        (result,) = Session(model).run(feeds).values()
        np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-5)
    for shapes in bad:
        with pytest.raises(ort.capi.onnxruntime_pybind11_state.Fail, match="needs "):
            other.run(None, feeds_of(model, shapes))
        with pytest.raises(ep.EntrepotError):
            Session(model).run(feeds_of(model, shapes))


def test_without_checks_onnxruntime_broadcasts_what_the_module_refuses():
    model = exported("equal")
    session = ort.InferenceSession(model.to_proto().SerializeToString(), providers=["CPUExecutionProvider"])
    assert session.run(None, feeds_of(model, [(4, 5), (1, 5)]))[0].shape == (4,)
    with pytest.raises(ep.InputError, match="makes 'batch' 4"):
        Session(model).run(feeds_of(model, [(4, 5), (1, 5)]))


def test_inputs_that_only_a_branch_reads_are_checked_too():
    def either(a, b):
        return torch.cond(a.sum() > 0, lambda x, y: (x * y,), lambda x, y: (x - y,), (a, b))[0]

    model = ep.export(Function(either), (randn(3, 5), randn(3, 5)), checks=True)
    session = ort.InferenceSession(model.to_proto().SerializeToString(), providers=["CPUExecutionProvider"])
    with pytest.raises(ort.capi.onnxruntime_pybind11_state.Fail, match=r"needs a\.0 == b\.0"):
        session.run(None, feeds_of(model, [(4, 5), (1, 5)]))
