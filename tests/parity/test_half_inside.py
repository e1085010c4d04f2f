"""A network that computes in half precision is no more exact than that, whatever type its results are returned in."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

import entrepot as ep
from entrepot.exporters.options import Judging
from entrepot.exporters.proof.conversion import report_on
from entrepot.parity.sources import ModelSource

FEEDS = {"x": np.linspace(-1, 1, 192, dtype=np.float32).reshape(3, 64)}


def network(body: str, *, factor: float = 1.0, functions: str = "") -> ep.Model:
    """Layers with weights in half precision, and a number that results are scaled by."""
    header = '<ir_version: 9, opset_import: ["": 19, "my": 1]> g (float[N, 64] x) => (float[N, 64] y)'
    proto = onnx.parser.parse_model(f"{header} <float f = {{{factor}}}> {{ {body} }} {functions}")
    rng = np.random.default_rng(0)
    for name in ("w", "v"):
        matrix = rng.normal(0, 0.2, (64, 64)).astype(np.float16)
        proto.graph.initializer.append(onnx.numpy_helper.from_array(matrix, name))
    return ep.load(proto)


INSIDE = "a = Mul(x, f)  b = Cast<to = 10>(a)  c = MatMul(b, w)  d = Tanh(c)  e = MatMul(d, v)  y = Cast<to = 1>(e)"
STORED = "b = Cast<to = 1>(w)  y = MatMul(x, b)"
MADE = "a = Sqrt(w)  b = Cast<to = 1>(a)  y = MatMul(x, b)"
CALLED = "y = my.inside(x, w)"
FUNCTION = """<domain: "my", opset_import: ["": 19]> inside (x, w) => (y) {
    b = Cast<to = 10>(x)  c = MatMul(b, w)  y = Cast<to = 1>(c) }"""
BRANCH = """s = ReduceSum<keepdims = 0>(x)  n = Cast<to = 9>(s)  y = If(n) <
    then_branch = t () => (float[N, 64] p) { b = Cast<to = 10>(x)  c = MatMul(b, w)  p = Cast<to = 1>(c) },
    else_branch = o () => (float[N, 64] q) { q = Neg(x) }>"""


@pytest.mark.parametrize("model", [network(INSIDE), network(BRANCH), network(CALLED, functions=FUNCTION)])
def test_what_is_computed_in_half_precision_shows(model: ep.Model) -> None:
    assert ModelSource(model).precision == np.float16


@pytest.mark.parametrize("body", [STORED, MADE, "y = Relu(x)"])
def test_weights_alone_say_nothing(body: str) -> None:
    assert ModelSource(network(body)).precision is None


@pytest.mark.parametrize(("factor", "agrees"), [(1.0, True), (1.05, False)])
def test_results_are_held_to_the_type_that_they_were_computed_in(factor: float, agrees: bool) -> None:
    report = report_on(network(INSIDE), network(INSIDE, factor=factor), FEEDS, Judging())
    assert (not report.failures) == agrees


def test_such_a_network_becomes_a_module() -> None:
    report = ep.to_torch(network(INSIDE), sample=FEEDS).report
    assert report is not None
    assert report.ok
