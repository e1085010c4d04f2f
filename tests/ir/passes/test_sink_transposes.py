"""Transpositions that change places with other nodes: see ``SinkTransposes``."""

from __future__ import annotations

import numpy as np
import onnx.parser
import onnx_ir as ir
import onnxruntime
import pytest
from onnx_ir.passes import common

from entrepot.ir.passes.sink_transposes import SinkTransposes

HEAD = '<ir_version: 9, opset_import: ["": 20]>\n'
LAST = "t = Transpose<perm = [0, 2, 3, 1]>(x)"
BACK = "y = Transpose<perm = [0, 3, 1, 2]>(z)"
IMAGE = "g (float[N,3,4,5] x) => (float[N,3,4,5] y)"
GONE = {
    "elementwise": f"{IMAGE} {{ {LAST} z = Relu(t) {BACK} }}",
    "a constant": f"{IMAGE} <float[3] c = {{1, 2, 3}}> {{ {LAST} z = Mul(t, c) {BACK} }}",
    "members": f"g (float[N,3,4,5] x) => (float[N,3,2,5] y) <int64[2] i = {{0, 2}}> "
    f"{{ {LAST} z = Gather<axis = 1>(t, i) {BACK} }}",
    "nothing done": f"{IMAGE} {{ {LAST} u = Identity(t) z = Exp(u) {BACK} }}",
    "both": f"{IMAGE} {{ {LAST} u = Exp(t) z = Add(t, u) {BACK} }}",
    "concatenation": f"g (float[N,3,4,5] x) => (float[N,6,4,5] y) {{ {LAST} z = Concat<axis = 3>(t, t) {BACK} }}",
    "softmax": f"{IMAGE} {{ {LAST} z = Softmax<axis = -1>(t) {BACK} }}",
    "means": (
        f"g (float[N,3,4,5] x) => (float[N,3] y) <int64[2] a = {{1, 2}}> "
        f"{{ {LAST} y = ReduceMean<keepdims = 0>(t, a) }}"
    ),
    "padding": (
        f"g (float[N,3,4,5] x) => (float[N,4,5,7] y) <int64[8] p = {{0, 1, 1, 0, 0, 0, 1, 1}}> "
        f"{{ {LAST} z = Pad(t, p) {BACK} }}"
    ),
    "slices": (
        f"g (float[N,3,4,5] x) => (float[N,2,4,5] y) <int64[1] s = {{1}}, int64[1] e = {{3}}, int64[1] a = {{3}}> "
        f"{{ {LAST} z = Slice(t, s, e, a) {BACK} }}"
    ),
    "a flattened image": (
        "g (float[N,3,2,2] x) => (float[N,1] y) "
        "<int64[2] s = {-1, 12}, float[12,1] w = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}> "
        f"{{ {LAST} f = Reshape(t, s) y = MatMul(f, w) }}"
    ),
    "a larger flattened image": (
        "g (float[N,16,8,8] x) => (float[N,65] y) <int64[2] s = {-1, 1024}, float[1024,65] w = {"
        + ", ".join(str(int(row == 15 * column + 3)) for row in range(1024) for column in range(65))
        + f"}}> {{ {LAST} f = Reshape(t, s) y = MatMul(f, w) }}"
    ),
    "a pooled image": (
        f"g (float[N,3,1,1] x) => (float[N,3] y) <int64[2] s = {{-1, 3}}> {{ {LAST} y = Reshape(t, s) }}"
    ),
    "a normalisation": f"{IMAGE} <float[3] s = {{1, 2, 3}}, float[3] o = {{3, 2, 5}}> "
    f"{{ {LAST} z = LayerNormalization<epsilon = 0.1>(t, s, o) {BACK} }}",
    "a normalisation without an offset": f"{IMAGE} <float[3] s = {{1, 2, 3}}> "
    f"{{ {LAST} u = LayerNormalization(t, s) z = Abs(u) {BACK} }}",
    "a normalisation of steps": "g (float[N,3,5] x) => (float[N,3] y) <float[3] s = {1, 2, 3}, int64[1] a = {1}> "
    "{ t = Transpose<perm = [0, 2, 1]>(x) u = LayerNormalization(t, s) y = ReduceMax<keepdims = 0>(u, a) }",
    "a product with a matrix": f"g (float[N,3,4,5] x) => (float[N,2,4,5] y) <float[3,2] w = {{1, 2, 3, 4, 5, 6}}> "
    f"{{ {LAST} z = MatMul(t, w) {BACK} }}",
    "a product with a matrix, and a row": "g (float[N,3,5] x) => (float[N,2,5] y) "
    "<float[3,2] w = {1, 2, 3, 4, 5, 6}, float[2] b = {7, 8}> "
    "{ t = Transpose<perm = [0, 2, 1]>(x) u = MatMul(t, w) z = Add(b, u) y = Transpose<perm = [0, 2, 1]>(z) }",
    "two products with one matrix": f"{IMAGE} <float[3,3] w = {{1, 2, 3, 4, 5, 6, 7, 8, 9}}> "
    f"{{ {LAST} u = MatMul(t, w) z = MatMul(u, w) {BACK} }}",
    "a block of both, and what it is added to": f"{IMAGE} "
    "<float[3] s = {1, 2, 3}, float[3,2] w = {1, 2, 3, 4, 5, 6}, float[2] b = {7, 8}, float[2,3] v = {1, 2, 3, 4, 5, 6}"
    "> "
    f"{{ {LAST} n = LayerNormalization(t, s) d = MatMul(n, w) e = Add(d, b) f = Tanh(e) g = MatMul(f, v) "
    f"z = Add(g, t) {BACK} }}",
    "one pixel": "g (float[N,12] x) => (float[N,12,1,1] y) <int64[4] s = {-1, 1, 1, 12}> "
    "{ z = Reshape(x, s) y = Transpose<perm = [0, 3, 1, 2]>(z) }",
}
STAYS = {
    "a reshape that keeps a size": (
        f"g (float[N,3,2,1] x) => (float[N,2,3] y) <int64[3] s = {{-1, 0, 3}}> {{ {LAST} y = Reshape(t, s) }}"
    ),
    "a normalisation that nothing follows": "g (float[N,3,4,5] x) => (float[N,4,5,3] y) <float[3] s = {1, 2, 3}> "
    f"{{ {LAST} y = LayerNormalization(t, s) }}",
    "rows of a normalised image": "g (float[N,3,4,5] x) => (float[N,20,3] y) "
    "<float[3] s = {1, 2, 3}, int64[3] r = {-1, 20, 3}> "
    f"{{ {LAST} u = LayerNormalization(t, s) y = Reshape(u, r) }}",
    "a product of two images": "g (float[N,3,4,4] x) => (float[N,4,4,4] y) "
    f"{{ {LAST} p = Transpose<perm = [0, 2, 1, 3]>(x) y = MatMul(t, p) }}",
    "an output": f"g (float[N,3,4,5] x) => (float[N,4,5,3] t) {{ {LAST} }}",
    "a reshape": f"g (float[N,3,4,5] x) => (float[M] y) <int64[1] s = {{-1}}> {{ {LAST} y = Reshape(t, s) }}",
}


def sunk(text: str) -> tuple[onnx.ModelProto, onnx.ModelProto]:
    given = onnx.parser.parse_model(HEAD + text)
    model = ir.from_proto(given)
    SinkTransposes()(model)
    common.RemoveUnusedNodesPass()(model)
    return given, ir.to_proto(model)


def run(proto: onnx.ModelProto) -> np.ndarray:
    sizes = [dim.dim_value or 2 for dim in proto.graph.input[0].type.tensor_type.shape.dim]
    x = np.random.default_rng(0).standard_normal(sizes, np.float32)
    return onnxruntime.InferenceSession(proto.SerializeToString()).run(None, {"x": x})[0]


@pytest.mark.parametrize("name", GONE)
def test_transpositions_that_meet_are_gone(name: str) -> None:
    given, made = sunk(GONE[name])
    weights = {tensor.name for tensor in made.graph.initializer}
    assert not [node for node in made.graph.node if node.op_type == "Transpose" and node.input[0] not in weights]
    np.testing.assert_allclose(run(made), run(given), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", STAYS)
def test_others_stay(name: str) -> None:
    given, made = sunk(STAYS[name])
    assert [node.op_type for node in made.graph.node] == [node.op_type for node in given.graph.node]


def test_a_weight_that_becomes_a_kernel_keeps_its_name() -> None:
    _, made = sunk(GONE["a product with a matrix, and a row"])
    (convolution,) = [node for node in made.graph.node if node.op_type == "Conv"]
    assert list(convolution.input) == ["x", "w", "b"]
    assert {tensor.name: list(tensor.dims) for tensor in made.graph.initializer} == {"w": [2, 3, 1], "b": [2]}
