"""Nodes whose types or attributes the standard has no meaning for are refused before they run, by everyone."""

from __future__ import annotations

import onnx
import onnx.parser
import pytest

import entrepot as ep

ILL_TYPED = {
    "an operator on integers that has floats alone": (
        "(int8[3] x) => (int8[3] y) { y = Exp(x) }",
        "which Exp does not take",
    ),
    "two types in a list": (
        "(int8[3] x, float[3] z) => (float[6] y) { y = Concat<axis = 0>(x, z) }",
        "'inputs' is int8",
    ),
    "two types in a sum": (
        "(int32[3] x, float[3] z) => (float[3] y) { y = Add(x, z) }",
        "'A' is int32 and its input 'B'",
    ),
    "two widths": (
        "(double[3] x, float[3] z) => (float[3] y) { y = Mul(x, z) }",
        "'A' is double and its input 'B' float",
    ),
    "a result of another type": ("(int32[3] x) => (float[3] y) { y = Relu(x) }", "'Y' float"),
    "a sum of truths": ("(bool[3] x) => (bool[3] y) { y = Add(x, x) }", "is bool, which Add does not take"),
    "a type that only follows": (
        "(float[3] x, int64[3] z) => (y) { a = Cast<to = 6>(x) b = Neg(a) y = Sub(b, z) }",
        "'A' is int32 and its input 'B' int64",
    ),
    "inside of a branch": (
        "(bool c, float[3] x, int64[3] z) => (y) { y = If(c) <then_branch = t () => (float[3] p) { p = Add(x, z) },"
        " else_branch = e () => (float[3] q) { q = Neg(x) }> }",
        "'A' is float and its input 'B' int64",
    ),
}
MEANINGLESS = {
    "a flag of 2": ("(float[3, 4] x) => (y) { y = ReduceMax<keepdims = 2>(x) }", "its keepdims is 0 or 1, not 2"),
    "a flag below 0": ("(float[3, 4] x) => (y) { y = ArgMax<keepdims = -1>(x) }", "its keepdims is 0 or 1, not -1"),
    "no window": (
        "(float[1, 1, 5, 5] x) => (y) { y = AveragePool<kernel_shape = [-1, 2]>(x) }",
        r"its kernel_shape is positive, not \(-1, 2\)",
    ),
    "no step": (
        "(float[1, 1, 5, 5] x) => (y) { y = MaxPool<kernel_shape = [2, 2], strides = [0, 1]>(x) }",
        "its strides is positive",
    ),
    "an unknown word": ('(float[3] x) => (y) { y = Gelu<approximate = "TANH">(x) }', "is none or tanh, not 'TANH'"),
    "a word that several operators have": (
        '(float[1, 1, 5] x, float[1, 1, 3] w) => (y) { y = ConvTranspose<auto_pad = "SAME">(x, w) }',
        "is NOTSET or SAME_UPPER or SAME_LOWER or VALID, not 'SAME'",
    ),
    "a word of machine learning": (
        '(float[1, 2] x) => (y) { y = ai.onnx.ml.LinearRegressor<coefficients = [1., 2.], post_transform = "EXP">(x) }',
        "its post_transform is NONE or SOFTMAX or",
    ),
}
FINE = {
    "a narrower kind": "(int8[3, 4] x, int8[4, 2] z) => (int8[3, 2] y) { y = MatMul(x, z) }",
    "values of any types together": (
        "(int64[3] x, float[3] z) => (int64[3] y, float[3] w) { n = Constant<value = int64 {2}>() c = Constant<value ="
        " bool {1}>() y, w = Loop(n, c, x, z) <body = b (int64 i, bool d, int64[3] p, float[3] q) => (bool e,"
        " int64[3] r, float[3] s) { e = Identity(d) r = Neg(p) s = Neg(q) }> }"
    ),
    "two types where there may be": "(float[3] x, int64[2] z) => (y) { y = Gather(x, z) }",
}


def _model(text: str) -> onnx.ModelProto:
    return onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["": 20, "ai.onnx.ml": 3]> g {text}')


@pytest.mark.parametrize("case", {**ILL_TYPED, **MEANINGLESS})
def test_what_has_no_meaning_is_refused_before_it_runs(case: str) -> None:
    text, reason = {**ILL_TYPED, **MEANINGLESS}[case]
    for provider in ("cpu", "reference", "torch"):
        with pytest.raises(ep.ModelFormatError, match=reason):
            ep.Session(_model(text), providers=[provider])
    with pytest.raises(ep.ModelFormatError, match=reason):
        ep.to_torch(_model(text), verify=False)


@pytest.mark.parametrize("case", FINE)
def test_what_has_a_meaning_is_not_refused(case: str) -> None:
    for provider in ("cpu", "reference", "torch"):
        ep.Session(_model(FINE[case]), providers=[provider])
