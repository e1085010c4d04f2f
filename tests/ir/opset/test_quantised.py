"""Quantised products and convolutions before opset 10."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.ir.opset.evaluate import assert_same, parse


def _bytes(rng: np.random.Generator, dtype: str, *shape: int) -> np.ndarray[Any, Any]:
    info = np.iinfo(dtype)
    return rng.integers(info.min, info.max, shape, dtype, endpoint=True)


@pytest.mark.parametrize("dtype", ["uint8", "int8"])
@pytest.mark.parametrize("columns", [1, 6])
@pytest.mark.parametrize("target", [7, 9])
def test_a_quantised_product_rounds_the_same(dtype: str, columns: int, target: int) -> None:
    rng = np.random.default_rng(columns)
    inputs = f"{dtype}[3,4,5] a, {dtype}[5,6] b, float sa, {dtype} za, float[C] sb, {dtype}[C] zb, float sy, {dtype} zy"
    model = parse("y = QLinearMatMul(a, sa, za, b, sb, zb, sy, zy)", 10, f"{inputs}) => ({dtype}[3,4,6] y")
    model.ir.graph.inputs[4].shape = model.ir.graph.inputs[5].shape = type(model.ir.graph.inputs[0].shape)([columns])
    scales = rng.uniform(0.01, 0.1, columns).astype(np.float32)
    assert_same(
        model,
        target,
        _bytes(rng, dtype, 3, 4, 5),
        _bytes(rng, dtype, 5, 6),
        np.array(0.05, np.float32),
        _bytes(rng, dtype),
        scales,
        np.full(columns, 3, dtype),
        np.array(1.7, np.float32),
        _bytes(rng, dtype),
    )


@pytest.mark.parametrize("target", [7, 9])
@pytest.mark.parametrize("attributes", ["", "<pads = [1,0,2,1]>", "<strides = [2,1], group = 2>"])
def test_a_quantised_convolution_rounds_the_same(attributes: str, target: int) -> None:
    rng = np.random.default_rng(0)
    group = 2 if "group" in attributes else 1
    inputs = f"uint8[1,4,7,8] x, uint8[6,{4 // group},3,2] w, float[6] sw, int32[6] b"
    numbers = "float sx = {0.02}, uint8 zx = {9}, uint8[6] zw = {5,5,5,5,5,5}, float sy = {0.9}, uint8 zy = {101}"
    body = f"y = QLinearConv{attributes}(x, sx, zx, w, sw, zw, sy, zy, b)"
    model = parse(body, 10, f"{inputs}) => (uint8[1,6,H,W] y", stored=numbers)
    scales = rng.uniform(0.01, 0.1, 6).astype(np.float32)
    weights = _bytes(rng, "uint8", 6, 4 // group, 3, 2)
    bias = rng.integers(-9999, 9999, 6).astype(np.int32)
    assert_same(model, target, _bytes(rng, "uint8", 1, 4, 7, 8), weights, scales, bias)
