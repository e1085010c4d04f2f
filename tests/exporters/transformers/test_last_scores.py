"""Scores of the last tokens alone: the same numbers as those of all tokens, and where the graph is cut."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest

import entrepot as ep
from entrepot.exporters.transformers.last_scores import FIRST_SCORED, with_last_scores
from entrepot.ir.model import Model
from entrepot.runtime.generation.manifest import Manifest
from entrepot.runtime.generation.package import Package

HEADER = '<ir_version: 8, opset_import: ["": 17]> g (float[b, s, 4] x) => (float[b, s, 4] logits)'
WEIGHTS = "<float[4, 4] w = {1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16}, float[4] b = {1,2,3,4}, float k = {0.5}>"

ENDS = {
    "a product": ("logits = MatMul(x, w)", "MatMul"),
    "what treats tokens alike after it": (
        "a = MatMul(x, w) c = Add(a, b) d = Div(c, k) e = Tanh(d) logits = Mul(k, e)",
        "MatMul",
    ),
    "a turned weight": ("v = Transpose(w) logits = MatMul(x, v)", "MatMul"),
    "what looks at other tokens after it": (
        "one = Constant<value = int64 {1}> () a = MatMul(x, w) logits = CumSum(a, one)",
        "",
    ),
    "a product that is read twice": ("a = MatMul(x, w) c = ReduceMax<axes: ints = [1]>(a) logits = Sub(a, c)", ""),
    "a product of two that have tokens": (
        "t = Transpose<perm: ints = [0,2,1]>(x) a = MatMul(x, t) logits = MatMul(a, x)",
        "",
    ),
    "an operand for each token": ("a = MatMul(x, w) logits = Add(a, x)", ""),
}
"""What ends a graph, and which operator is given the tokens that count, if any."""


def decoder(nodes: str) -> Package:
    proto = onnx.parser.parse_model(f"{HEADER} {WEIGHTS} {{ {nodes} }}")
    return Package({"decoder": ep.load(onnx.shape_inference.infer_shapes(proto))}, Manifest("decoder", tokens="x"))


def run(model: Model, **feeds: np.ndarray[Any, Any]) -> Any:
    session = onnxruntime.InferenceSession(model.to_proto().SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(["logits"], feeds)[0]


@pytest.mark.parametrize("case", ENDS)
def test_the_last_scores_are_the_last_of_all(case: str) -> None:
    nodes, cut = ENDS[case]
    before = decoder(nodes)
    after = with_last_scores(before)
    assert after.manifest.first_scored == FIRST_SCORED
    assert list(after.inputs) == ["x"]
    x = np.random.default_rng(0).standard_normal((2, 5, 4)).astype(np.float32)
    whole, model = run(before.graphs["decoder"], x=x), after.graphs["decoder"]
    for first in (0, 3, -1, -2):
        got = run(model, x=x, first_scored=np.array([first]))
        np.testing.assert_allclose(got, whole[:, first:], rtol=1e-6)
    (slicing,) = [node for node in model.ir.graph if node.op_type == "Slice"]
    readers = [use.node.op_type for use in slicing.outputs[0].uses()]
    assert readers == ([cut] if cut else [])


def test_a_decoder_of_one_token_at_a_time_stays_as_it_is() -> None:
    package = decoder("logits = MatMul(x, w)")
    single = Package(package.graphs, Manifest(kind="decoder", tokens="x", step=1))
    assert with_last_scores(single) is single
