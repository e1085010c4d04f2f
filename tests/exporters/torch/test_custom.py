"""Translations that users register, for operators of their own and for those of torch."""

import math

import pytest
import torch
from onnxscript import opset20 as op
from torch import nn

import entrepot as ep


def of_numbers(function, x):
    """Of each element, as Python's number: what no capture follows."""
    return torch.tensor([function(number) for number in x.reshape(-1).tolist()]).view(x.shape).to(x.dtype)


LIBRARY = torch.library.Library("entrepot_tests", "DEF")
LIBRARY.define("shift(Tensor x, float by) -> Tensor")
LIBRARY.define("shift.twice(Tensor x, float by, float again) -> Tensor")
LIBRARY.impl("shift", lambda x, by: of_numbers(lambda number: number + by, x), "CPU")
LIBRARY.impl("shift.twice", lambda x, by, again: of_numbers(lambda number: number + by + again, x), "CPU")
torch.library.register_fake("entrepot_tests::shift", lambda x, by: torch.empty_like(x), lib=LIBRARY)
torch.library.register_fake("entrepot_tests::shift.twice", lambda x, by, again: torch.empty_like(x), lib=LIBRARY)
SHIFT = torch.ops.entrepot_tests.shift


@torch.library.custom_op("entrepot_tests::by_python", mutates_args=())
def by_python(x: torch.Tensor) -> torch.Tensor:
    return of_numbers(math.sin, x)


@by_python.register_fake
def _(x):
    return torch.empty_like(x)


class Function(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


X = torch.randn(3, 4, generator=torch.Generator().manual_seed(0))


def shift_in_torch(x, by, again=0.0):
    return x + (by + again)


def shift_in_onnx(x, by: float, again: float = 0.0):
    return op.Add(x, op.CastLike(op.Constant(value_float=by + again), x))


def sine_in_onnx(x):
    return op.Sin(x)


def kinds(model):
    return [node.op_type for node in model.ir.graph]


CASES = [
    ("entrepot_tests::shift", lambda x: SHIFT(x, 1.5), shift_in_torch, "torch"),
    ("entrepot_tests::shift", lambda x: SHIFT(x, 1.5), shift_in_onnx, "onnx"),
    ("entrepot_tests::shift", lambda x: SHIFT(x, 1.5, 2.0), shift_in_torch, "torch"),
    ("entrepot_tests::shift", lambda x: SHIFT(x, 1.5, 2.0), shift_in_onnx, "onnx"),
    ("entrepot_tests.shift", lambda x: SHIFT.default(x, 1.5), shift_in_torch, "torch"),
    ("entrepot_tests::shift.twice", lambda x: SHIFT.twice(x, 1.5, 2.0), shift_in_onnx, "onnx"),
    (SHIFT, lambda x: SHIFT(x, 1.5), shift_in_onnx, "onnx"),
    (SHIFT.default, lambda x: SHIFT.default(x, 1.5), shift_in_torch, "torch"),
    (by_python, by_python, torch.sin, "torch"),
    (by_python, by_python, sine_in_onnx, "onnx"),
    ("entrepot_tests::by_python", by_python, sine_in_onnx, "onnx"),
]


@pytest.mark.parametrize(("target", "forward", "function", "into"), CASES)
def test_a_registered_operator_is_exported_and_verified_until_it_is_taken_back(target, forward, function, into):
    module = Function(forward)
    with ep.register_translation(target, function, into=into):
        model = ep.export(module, X)
    assert model.report.ok
    assert model.inputs[0].shape == ("batch", "x_dim1")
    with pytest.raises(ep.UnsupportedOpError, match=r"entrepot_tests.*ep\.register_translation\(\"entrepot_tests::"):
        ep.export(module, X)


def test_functions_and_operators_of_torch_can_be_replaced_and_the_last_registration_counts():
    def exported(module):
        return kinds(ep.export(module, X, verify=False))

    module = Function(torch.sin)
    plain = exported(module)
    # close to sin for values of a usual size only
    first = ep.register_translation(torch.sin, lambda x: torch.cos(x - torch.pi / 2))
    second = ep.register_translation("aten::cos", lambda x: op.Abs(op.Cos(x)), into="onnx")
    assert "Abs" in exported(module)
    third = ep.register_translation("aten::cos", lambda x: op.Identity(op.Cos(x)), into="onnx")
    assert exported(module)[-2:] == ["Sub", "Cos"]
    third.remove()
    third.remove()
    assert "Abs" in exported(module)
    second.remove()
    first.remove()
    assert exported(module) == plain == ["Sin"]


def test_a_wrong_translation_does_not_leave():
    with (
        ep.register_translation(SHIFT, lambda x, by: x - by),
        pytest.raises(ep.VerificationError, match="does not compute the same"),
    ):
        ep.export(Function(lambda x: SHIFT(x, 1.5)), X)


@pytest.mark.parametrize(
    ("target", "function", "into", "message"),
    [
        ("entrepot_tests::nothing", torch.sin, "torch", "there is no torch operator 'entrepot_tests::nothing'"),
        ("sin", torch.sin, "torch", "there is no torch operator 'sin'"),
        ("", torch.sin, "torch", "there is no torch operator ''"),
        (torch.sin, sine_in_onnx, "onnx", "only operators become ONNX nodes"),
        (7, torch.sin, "torch", "expected an operator, got int"),
        (torch.sin, 7, "torch", "expected a function, got int"),
        (torch.sin, torch.cos, "tensorflow", "into is 'tensorflow'"),
    ],
)
def test_what_cannot_be_registered_is_refused(target, function, into, message):
    with pytest.raises(ep.InputError, match=message):
        ep.register_translation(target, function, into=into)


def test_a_registration_says_what_it_is_for():
    with ep.register_translation(SHIFT, shift_in_torch) as registration:
        assert repr(registration) == "entrepot.Translation entrepot_tests.shift into torch"


def test_the_nodes_of_a_user_come_before_a_decomposition_of_ours():
    def own(x):
        return op.Log(op.Add(op.Identity(x), op.CastLike(op.Constant(value_float=1.0), x)))

    ours = ep.export(Function(torch.log1p), X, dynamic=False, verify=False)
    with ep.register_translation("aten::log1p", own, into="onnx"):
        theirs = ep.export(Function(torch.log1p), X, dynamic=False, verify=False)
    assert [node.op_type for node in theirs.ir.graph] == ["Add", "Log"]
    assert len(ours.ir.graph) > 2
