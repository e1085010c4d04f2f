"""What a plan knows of the shapes that control flow returns, held against what onnxruntime returns."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest

import entrepot as ep
from entrepot.runtime.planning.lower import inferred_types

LOOP = """
n = Constant<value = int64 {3}>() yes = Constant<value = bool {1}>()
y, z = Loop(n, yes, x) <body = b (int64 i, bool c, float[2, 3] s) => (bool d, s2, r) {
  d = Identity(c) s2 = Relu(s) r = Transpose(s)}>
"""
GROWING = """
n = Constant<value = int64 {3}>() yes = Constant<value = bool {1}>()
y, z = Loop(n, yes, x) <body = b (int64 i, bool c, s) => (bool d, s2, r) {
  d = Identity(c) s2 = Concat<axis = 0>(s, x) r = Neg(x)}>
"""
SCAN = """
zero = Constant<value = float[3] {0, 0, 0}>()
y, z = Scan(zero, x) <num_scan_inputs = 1, scan_output_axes = [1], body = b (a, row) => (a2, r) {
  a2 = Add(a, row) r = Neg(a2)}>
"""
BRANCHES = """
s = ReduceSum<keepdims = 0>(x) zero = Constant<value = float {0}>() c = Greater(s, zero)
y, z = If(c) <then_branch = t () => (p, q) {p = Relu(x) q = Transpose(x)}, else_branch = e () => (p2, q2) {
  p2 = Neg(x) q2 = Neg(x)}>
"""
CASES = {
    "loop": (LOOP, (2, 3), (None, 3, 2)),
    "growing": (GROWING, None, (None, 2, 3)),
    "scan": (SCAN, (3,), (3, None)),
    "branches": (BRANCHES, (2, 3), None),
}


@pytest.mark.parametrize("case", CASES)
def test_shapes_from_bodies_are_those_that_come_out(case):
    body, *expected = CASES[case]
    proto = onnx.parser.parse_model(f'<ir_version: 9, opset_import: ["": 20]> g (float[2, 3] x) => (y, z) {{{body}}}')
    hub = ep.load(proto).at_hub()
    found = inferred_types(hub.ir)
    shapes = [found[value].shape for value in hub.ir.graph.outputs]
    assert shapes == expected
    for shape, made in zip(shapes, _run(proto), strict=True):
        assert shape is None or all(dim in (None, size) for dim, size in zip(shape, made.shape, strict=True))


@pytest.mark.parametrize("provider", ["cpu", "reference", "torch"])
def test_what_a_loop_without_a_turn_collects_has_the_sizes_that_operators_give_it(provider):
    """torch.onnx names all sizes of what bodies return, as for a bag of embeddings over no rows."""
    text = """<ir_version: 9, opset_import: ["": 17]> g (int64 n, float[N, 4] x) => (float[K, L] y) {
      yes = Constant<value = bool {1}>()  first = Constant<value = int64[1] {0}>()
      y = Loop(n, yes) <body = b (int64 i, bool c) => (bool d, float[R] r) {
        d = Identity(c)  s = Cast<to = 1>(i)  m = ReduceSum<keepdims = 0>(x, first)  r = Mul(m, s)}>
    }"""
    proto = onnx.parser.parse_model(text)
    feeds = {"n": np.array(0), "x": np.ones((2, 4), np.float32)}
    (expected,) = onnxruntime.InferenceSession(proto.SerializeToString()).run(None, feeds)
    assert ep.Session(proto, providers=[provider]).run(feeds)["y"].shape == expected.shape == (0, 4)


def test_the_length_of_a_dft_back_from_half_a_spectrum_is_unknown():
    """onnx 1.23 infers 3 here, where the result has 4."""
    text = '<ir_version: 9, opset_import: ["": 20]> g (float[1, 3, 2] x) => (y) {%s}'
    proto = onnx.parser.parse_model(text % "y = DFT<inverse = 1, onesided = 1>(x)")
    hub = ep.load(proto).at_hub()
    assert inferred_types(hub.ir)[hub.ir.graph.outputs[0]].shape == (None, None, None)


def _run(proto: onnx.ModelProto) -> list[np.ndarray]:
    session = onnxruntime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, {"x": np.ones((2, 3), np.float32)})
