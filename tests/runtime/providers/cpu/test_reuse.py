from __future__ import annotations

import numpy as np
import onnx
import pytest

import entrepot as ep
from tests.judges.graphs import assert_computes

HEAD = '<ir_version: 10, opset_import: ["": 22]>\n'

CHANGES = {
    "a sum of a sum": ("g (float[2] x) => (float[2] y) { a = Exp(x)  y = Add(a, x) }", "add(a, x, a)"),
    "on the right": ("g (float[2] x) => (float[2] y) { a = Exp(x)  y = Sub(x, a) }", "subtract(x, a, a)"),
    "a symbol": ("g (float[N] x) => (float[N] y) { a = Exp(x)  y = Sub(x, a) }", "subtract(x, a, a)"),
    "of one operand": ("g (float[2] x) => (float[2] y) { a = Exp(x)  y = Sqrt(a) }", "sqrt(a, a)"),
}

LEAVES = {
    "what is read again": ("g (float[2] x) => (float[2] y) { a = Exp(x)  b = Add(a, x)  y = Mul(a, b) }", "add(a, x)"),
    "an output": ("g (float[2] x) => (float[2] y, float[2] a) { a = Exp(x)  y = Add(a, x) }", "add(a, x)"),
    "what is fed": ("g (float[2] x) => (float[2] y) { y = Add(x, x) }", "add(x, x)"),
    "a view of what is fed": (
        "g (float[2, 1] x) => (float[1, 2] y) <int64[2] s = {1, 2}> { a = Reshape(x, s)  y = Neg(a) }",
        "negative(a)",
    ),
    "what grows": ("g (float[1] x, float[2] z) => (float[2] y) { a = Exp(x)  y = Add(a, z) }", "add(a, z)"),
    "what is captured": (
        """g (float[2] x, bool c) => (float[2] y) { a = Exp(x)
        y = If(c) <then_branch = t () => (float[2] p) { p = Neg(a) },
                   else_branch = e () => (float[2] q) { q = Add(a, a) }> }""",
        "negative(a)",
    ),
    "a scalar": ("g (float x) => (float y) { a = Exp(x)  y = Neg(a) }", "negative(a)"),
    "another type": ("g (float[2] x) => (bool[2] y) { a = Exp(x)  y = Less(a, x) }", "less(a, x)"),
}


def session(text: str) -> ep.Session:
    return ep.Session(ep.load(onnx.parser.parse_model(HEAD + text)))


@pytest.mark.parametrize("case", CHANGES)
def test_a_dying_operand_is_written_over(case: str) -> None:
    text, call = CHANGES[case]
    assert call in session(text).source()


@pytest.mark.parametrize("case", LEAVES)
def test_nothing_else_is_written_over(case: str) -> None:
    assert LEAVES[case][1] in session(LEAVES[case][0]).source()


@pytest.mark.parametrize("case", [*CHANGES, *LEAVES])
def test_results_are_those_of_onnxruntime(case: str) -> None:
    proto = onnx.parser.parse_model(HEAD + {**CHANGES, **LEAVES}[case][0])
    it = ep.load(proto)
    values = {"x": np.array([1, 2], np.float32), "z": np.array([3, 4], np.float32), "c": np.array(True)}
    given = {}
    for spec in it.inputs:
        value = values[spec.name]
        given[spec.name] = value if spec.shape == value.shape or spec.shape == ("N",) else np.resize(value, spec.shape)
    session = ep.Session(it)
    for _ in range(2):
        assert_computes(proto, given, session.run(given))
