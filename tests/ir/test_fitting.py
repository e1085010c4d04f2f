"""``check`` sees attributes and constants that do not fit their operands, also where onnx's checker does not look."""

from __future__ import annotations

import re

import onnx
import pytest

import entrepot as ep
from entrepot.ir.validity import problem_of

SCALES = "s = Constant<value = float[3]{1, 1, 1}>() "
LSTM = """(float[2,1,1] x, float[1,4,1] w, float[1,4,1] r) => (float[A,B,C,D] y) {
    l = Constant<value = int32[1]{LENGTH}>()
    y = LSTM<hidden_size = 1LAYOUT>(x, w, r, , l)
}"""
UNFIT = {
    "QuantizeLinear": (
        "(float[2,3] x) => (uint8[2,3] y) { " + SCALES + "y = QuantizeLinear<axis = 5>(x, s) }",
        "axis 5",
    ),
    "DequantizeLinear": (
        "(uint8[2,3] x) => (float[2,3] y) { " + SCALES + "y = DequantizeLinear<axis = -3>(x, s) }",
        "axis -3",
    ),
    "GatherElements": ("(float[3] x, int64[1] i) => (float[1] y) { y = GatherElements<axis = 4>(x, i) }", "axis 4"),
    "LpNormalization": ("(float[2,3] x) => (float[2,3] y) { y = LpNormalization<axis = 2>(x) }", "axis 2"),
    "in a branch": (
        "(bool c, float[2,3] x) => (float[2,3] y) { y = If(c) <"
        "then_branch = t () => (float[2,3] a) { a = LpNormalization<axis = 9>(x) },"
        "else_branch = e () => (float[2,3] b) { b = Identity(x) }> }",
        "axis 9",
    ),
    "lengths": (LSTM.replace("LENGTH", "3").replace("LAYOUT", ""), r"\[3\] do not fit data of 2"),
    "lengths, batch first": (
        LSTM.replace("LENGTH", "2").replace("LAYOUT", ", layout = 1"),
        r"\[2\] do not fit data of 1",
    ),
    "a window larger than its image": (
        "(float[1,1,2,2] x, float[4] d) => (float[N] y) { p, q = MaxPool<kernel_shape = [1,9]>(x) y = GatherND(d, q) }",
        r"'p' would have the shape \(1, 1, 2, -6\)",
    ),
    "fewer than no elements": (
        "(float[4,4] x) => (float[N] y) { k = Constant<value = int64[1]{-3}>() v, i = TopK(x, k) y = GatherND(x, i) }",
        r"'v' would have the shape \(4, -3\)",
    ),
}  # fmt: skip
FIT = {
    "a size of -1, which is unknown": "(float[4,4] x, int64[2,-1] i) => (float[N] y) { y = GatherND(x, i) }",
    "one scale": "(float[2,3] x, float s) => (uint8[2,3] y) { y = QuantizeLinear<axis = 5>(x, s) }",
    "last axis": "(float[2,3] x) => (uint8[2,3] y) { " + SCALES + "y = QuantizeLinear<axis = -1>(x, s) }",
    "all steps": LSTM.replace("LENGTH", "2").replace("LAYOUT", ""),
}


def problem(text: str) -> str:
    proto = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["": 21]> g {text}')
    return problem_of(ep.load(proto), proto.SerializeToString())


@pytest.mark.parametrize("name", UNFIT)
def test_what_does_not_fit_is_a_problem(name: str) -> None:
    text, words = UNFIT[name]
    assert re.search(words, problem(text))


@pytest.mark.parametrize("name", FIT)
def test_what_fits_is_none(name: str) -> None:
    assert not problem(FIT[name])
