"""Inputs that are made up fit weights that fix sizes, though the file names these."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

import entrepot as ep
from entrepot.parity.fixed_by_weights import by_weights
from entrepot.parity.proposals import that_runs

GRAPHS = {
    "channels of a convolution": (
        "(float[n, c, h, w] x) => (float[n, k, p, q] y) { y = Conv(x, w0) }",
        (8, 3, 4, 4),
        3,
    ),
    "channels of groups": (
        "(float[n, c, h, w] x) => (float[n, k, p, q] y) { y = Conv<group = 2>(x, w0) }",
        (8, 3, 4, 4),
        6,
    ),
    "channels that are taken apart": (
        "(float[n, c, l] x) => (float[n, k, p] y) { y = ConvTranspose(x, w0) }",
        (5, 7, 4),
        5,
    ),
    "features of a recurrence, the batch first": (
        """(float[n, t, c] x) => (float[t, d, n, h] y)
        { a = Transpose<perm = [1, 0, 2]>(x)  y = RNN<hidden_size = 4>(a, w0, r) }""",
        (1, 4, 9),
        9,
    ),
    "features of a product": ("(float[n, t, c] x) => (float[n, t, k] y) { y = MatMul(x, w0) }", (11, 2), 11),
    "features of a transposed matrix": (
        "(float[n, c] x) => (float[n, k] y) { y = Gemm<transB = 1>(x, w0) }",
        (2, 13),
        13,
    ),
}


def _model(text: str, shape: tuple[int, ...]) -> onnx.ModelProto:
    model = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["": 22]> g {text}')
    weights = {
        "w0": np.ones(shape, np.float32),
        **({"r": np.ones((1, 4, 4), np.float32)} if "(a, w0, r)" in text else {}),
    }
    model.graph.initializer.extend(onnx.numpy_helper.from_array(value, name) for name, value in weights.items())
    return model


@pytest.mark.parametrize("name", GRAPHS)
def test_weights_say_how_large_an_axis_is(name: str) -> None:
    text, shape, size = GRAPHS[name]
    model = ep.load(_model(text, shape))
    assert by_weights(model) == {"c": size}
    feeds = that_runs(model)
    assert feeds is not None
    assert size in feeds["x"].shape


@pytest.mark.parametrize("name", GRAPHS)
def test_such_a_file_is_imported_without_a_sample(name: str) -> None:
    text, shape, _ = GRAPHS[name]
    assert ep.to_torch(_model(text, shape)).report.ok


def test_what_is_computed_before_fixes_nothing() -> None:
    text = """(float[n, c] x) => (float[n, k] y) <int64[1] axis = {1}> {
        a = ReduceSum(x, axis)  y = MatMul(a, w0) }"""
    model = ep.load(_model(text, (1, 3)))
    assert by_weights(model) == {}
