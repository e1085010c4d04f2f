"""Products of a transposed matrix and a vector: see ``TurnProducts``."""

from __future__ import annotations

import numpy as np
import onnx.parser
import onnx_ir as ir
import onnxruntime
import pytest

from entrepot.ir.passes.turn_products import TurnProducts

HEAD = '<ir_version: 9, opset_import: ["": 18]>\n'
GRAPHS = {
    "right": "g (float[N,M] a, float[N] v) => (float[K] y) { b = Transpose(a) y = MatMul(b, v) }",
    "left": "g (float[N,M] a, float[M] v) => (float[K] y) { b = Transpose<perm = [1, 0]>(a) y = MatMul(v, b) }",
    "inside": """g (float[N,M] a, float[N] v, bool c) => (float[K] y) {
        y = If (c) <then_branch = t () => (float[L] p) { b = Transpose(a) p = MatMul(b, v) },
                    else_branch = e () => (float[J] q) { q = Neg(v) }> }""",
}
LEFT_ALONE = {
    "a matrix": "g (float[N,M] a, float[N,1] v) => (float[K,1] y) { b = Transpose(a) y = MatMul(b, v) }",
    "another permutation": (
        "g (float[N,M] a, float[M] v) => (float[K] y) { b = Transpose<perm = [0, 1]>(a) y = MatMul(b, v) }"
    ),
    "a batch": (
        "g (float[B,N,M] a, float[N] v) => (float[B,K] y) { b = Transpose<perm = [0, 2, 1]>(a) y = MatMul(b, v) }"
    ),
}


def turned(text: str) -> tuple[ir.Model, bool]:
    model = ir.from_proto(onnx.parser.parse_model(HEAD + text))
    return model, TurnProducts()(model).modified


def run(proto: onnx.ModelProto, **feeds: np.ndarray) -> np.ndarray:
    taken = {value.name: feeds[value.name] for value in proto.graph.input}
    return onnxruntime.InferenceSession(proto.SerializeToString()).run(None, taken)[0]


@pytest.mark.parametrize("name", GRAPHS)
def test_a_vector_is_multiplied_from_the_other_side(name: str) -> None:
    model, modified = turned(GRAPHS[name])
    assert modified
    assert not TurnProducts()(model).modified
    rng = np.random.default_rng(0)
    a, v = rng.standard_normal((3, 4), np.float32), rng.standard_normal(4 if name == "left" else 3, np.float32)
    expected = v @ a.T if name == "left" else a.T @ v
    assert np.allclose(run(ir.to_proto(model), a=a, v=v, c=np.array(True)), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", LEFT_ALONE)
def test_other_products_stay(name: str) -> None:
    assert not turned(LEFT_ALONE[name])[1]


WEIGHT = "<float[2,3] w = {1, 2, 3, 4, 5, 6}>"
WITH_WEIGHT = (
    "g (float[3] v, float[2,3] x) => (float[2] y, float[J,K] z) %s { b = Transpose(w) y = MatMul(v, b) z = %s }"
)


@pytest.mark.parametrize(
    ("other", "in_place", "is_turned"),
    [("Neg(x)", False, False), ("Neg(x)", True, True), ("Add(w, x)", False, True)],
)
def test_a_weight_that_will_be_stored_transposed_stays_where_it_is(other: str, in_place: bool, is_turned: bool) -> None:
    model = ir.from_proto(onnx.parser.parse_model(HEAD + WITH_WEIGHT % (WEIGHT, other)))
    assert TurnProducts(in_place=in_place)(model).modified == is_turned


def test_onnxruntime_still_gets_the_plain_form_wrong() -> None:
    """Once it does not, the pass is of use only for the node that it saves."""
    rng = np.random.default_rng(0)
    a, v = rng.standard_normal((3, 4), np.float32), rng.standard_normal(3, np.float32)
    assert not np.allclose(run(onnx.parser.parse_model(HEAD + GRAPHS["right"]), a=a, v=v), a.T @ v)
