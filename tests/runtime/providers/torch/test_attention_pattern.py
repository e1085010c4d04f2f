"""Attention that exporters spelled out is one kernel, and still what it was."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest

import entrepot as ep

KEYS = {
    "transposed": "t = Transpose<perm = [0, 1, 3, 2]>(k)",
    "reshaped": "f = Reshape(k, rows)  g = Transpose<perm = [0, 2, 1]>(f)  t = Reshape(g, heads)",
    "as it is": "t = Reshape(k, heads)",
}
ENDS = {
    "plain": "y = MatMul(p, v)",
    "guarded": "n = IsNaN(p)  z = Where(n, zero, p)  y = MatMul(z, v)",
}
MASKS = {
    "none": "s = MatMul(a, b)",
    "matrix": "c = MatMul(a, b)  s = Add(c, m)",
    "first": "c = MatMul(a, b)  s = Add(m, c)",
}


def built(keys: str, mask: str, end: str) -> onnx.ModelProto:
    text = f"""<ir_version: 10, opset_import: ["": 18]>
    g (float[16, 3, 4, 8] q, float[16, 3, 5, 8] k, float[16, 3, 5, 6] v, float[16, 1, 4, 5] m) => (float[16, 3, 4, 6] y)
    <float zero = {{0}}, float half = {{0.5}}, int64[3] rows = {{-1, 5, 8}}, int64[4] heads = {{16, 3, 8, 5}}> {{
        {KEYS[keys]}  a = Mul(q, half)  b = Mul(t, half)  {MASKS[mask]}  p = Softmax<axis = -1>(s)  {ENDS[end]} }}"""
    return onnx.parser.parse_model(text)


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("keys", KEYS)
def test_it_is_one_kernel_and_right(keys: str, mask: str, end: str) -> None:
    rng = np.random.default_rng(0)
    shapes = {"q": (16, 3, 4, 8), "k": (16, 3, 5, 8), "v": (16, 3, 5, 6), "m": (16, 1, 4, 5)}
    feeds = {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
    feeds["m"][0, 0, 1, 2:] = -np.inf
    if mask != "none":
        feeds["m"][1, 0, 3] = -np.inf  # a query that sees no key
    model = built(keys, mask, end)
    session = ep.Session(model, providers=["torch"])
    expected = onnxruntime.InferenceSession(model.SerializeToString()).run(None, feeds)[0]
    np.testing.assert_allclose(session.run(feeds)["y"], expected, rtol=1e-5, atol=1e-6)
    how = {row.op_type: row.how for row in session.plan().placements}["Softmax"]
    assert ("fused" in how) == (mask == "none" or end == "guarded")
