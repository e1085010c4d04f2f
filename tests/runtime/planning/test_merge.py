from __future__ import annotations

import numpy as np
import onnx
import pytest

import entrepot as ep
from tests.judges.graphs import assert_computes

HEAD = '<ir_version: 10, opset_import: ["": 22, "own": 1]>\n'


def session(text: str) -> ep.Session:
    return ep.Session(ep.load(onnx.parser.parse_model(HEAD + text)))


CHANGES = {
    "the same step twice": (
        "g (float[2] x) => (float[2] y) { a = Exp(x)  b = Exp(x)  y = Mul(a, b) }", "exp(", 1,
    ),
    "steps on equal small constants": (
        """g (float[2] x) => (float[2] y) <float[1] one = {1.0}, float[1] other = {1.0}>
        { a = Sub(x, one)  b = Sub(x, other)  y = Mul(a, b) }""", "subtract(", 1,
    ),
    "chains of equal steps": (
        """g (float[2] x) => (float[2] y) { a = Exp(x)  b = Exp(x)
        c = Abs(a)  d = Abs(b)  y = Mul(c, d) }""", "absolute(", 1,
    ),
    "what a subgraph reads": (
        """g (float[2] x, bool c) => (float[2] y) { a = Exp(x)  b = Exp(x)  z = Mul(a, a)
        y = If(c) <then_branch = t () => (float[2] p) { p = Add(b, z) },
                   else_branch = e () => (float[2] q) { q = Sub(b, z) }> }""",
        "exp(", 1,
    ),
    "what shows only in a plan: an inlined function and a taken branch": (
        """g (float[2] x) => (float[2] y) <bool[1] yes = {1}> { a = own.f(x)  b = Exp(x)
        c = If(yes) <then_branch = t () => (float[2] p) { p = Exp(x) },
                     else_branch = e () => (float[2] q) { q = Abs(x) }>
        d = Mul(a, b)  y = Mul(c, d) }
        <domain: "own", opset_import: ["": 22]> f (u) => (v) { v = Exp(u) }""",
        "exp(", 1,
    ),
}  # fmt: skip

LEAVES = {
    "other attributes": (
        "g (float[2, 2] x) => (float[2, 2] y) { a = Softmax<axis=0>(x)  b = Softmax<axis=1>(x)  y = Mul(a, b) }",
        "softmax(", 2,
    ),
    "random operators": (
        "g (float[9] x) => (float[9] y) { a = RandomUniformLike(x)  b = RandomUniformLike(x)  y = Sub(a, b) }",
        "random_uniform_like(", 2,
    ),
    "constants that differ": (
        """g (float[2] x) => (float[2] y) <float[1] one = {1.0}, float[1] two = {2.0}>
        { a = Sub(x, one)  b = Sub(x, two)  y = Mul(a, b) }""", "subtract(", 2,
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", [*CHANGES, *LEAVES])
def test_equal_steps_run_once(case: str) -> None:
    text, call, count = {**CHANGES, **LEAVES}[case]
    assert session(text).source().count(call) == count


def test_merging_changes_no_result() -> None:
    text = CHANGES["what a subgraph reads"][0]
    x = np.array([0, 1], np.float32)
    for condition in (True, False):
        given = {"x": x, "c": np.array(condition)}
        assert_computes(onnx.parser.parse_model(HEAD + text), given, session(text).run(given))
