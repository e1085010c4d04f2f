"""Quantised products and convolutions before opset 10."""

from __future__ import annotations

from typing import Any

import ml_dtypes  # noqa: F401 - names its types for NumPy
import numpy as np
import onnx_ir as ir
import pytest

from entrepot.ir.opset.convert import convert_opset
from tests.ir.opset.evaluate import assert_same, parse, run


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


@pytest.mark.parametrize("target", [7, 10, 18, 20, 22])
def test_a_scale_of_integers_is_divided_by_and_not_cut_off(target: int) -> None:
    model = parse("y = QuantizeLinear(x, s)", 23, "float[N] x, int32 s) => (uint8[N] y")
    x = np.array([1, 2, 3, 5, 7, 9, 700], np.float32)
    (y,) = run(convert_opset(model, target), x, np.array(2, np.int32))
    assert y.tolist() == [0, 1, 2, 2, 4, 4, 255]


@pytest.mark.parametrize("target", [13, 19, 22])
def test_the_precision_of_a_division_is_kept(target: int) -> None:
    model = parse("y = QuantizeLinear<precision = 1>(x, s)", 23, "float16[N] x, float16 s) => (uint8[N] y")
    x, s = np.array([1.5, 6], np.float16), np.array(0.42871, np.float16)  # 3.49899 in float, 3.5 in float16
    (y,) = run(convert_opset(model, target), x, s)
    assert y.tolist() == np.rint(x.astype(np.float32) / s.astype(np.float32)).tolist() == [3, 14]


def test_sixteen_bits_are_quantised_over_their_whole_range_below_opset_21() -> None:
    model = parse("y = QuantizeLinear(x, s, z)", 21, "float16[N] x, float16 s, uint16 z) => (uint16[N] y")
    inputs = np.array([1, 60000, 30000], np.float16), np.array(1, np.float16), np.array(40001, np.uint16)
    assert run(convert_opset(model, 20), *inputs)[0].tolist() == [40002, 65535, 65535]


def test_sixteen_bits_lose_their_zero_point_exactly_below_opset_21() -> None:
    model = parse("y = DequantizeLinear(x, s, z)", 21, "uint16[N] x, float16 s, uint16 z) => (float16[N] y")
    inputs = np.array([40000, 39999], np.uint16), np.array(1, np.float16), np.array(39990, np.uint16)
    assert run(convert_opset(model, 20), *inputs)[0].tolist() == [10, 9]


@pytest.mark.parametrize("kind", ["int4", "uint4"])
@pytest.mark.parametrize("target", [20, 13])
@pytest.mark.parametrize("blocks", ["s, z, axis=0, block_size=2", "t, y, axis=1", "u, x0, axis=1"])
def test_weights_of_four_bits_get_a_byte_each(kind: str, target: int, blocks: str) -> None:
    scale, zero, *given = blocks.split(", ")
    weights = {
        "w": np.arange(-6, 6).reshape(4, 3) + (6 if kind == "uint4" else 0),
        "z": np.array([[1, 2, 3], [4, 5, 6]]),
        "y": np.array([1, 2, 3]),
        "x0": np.array(2),
    }
    scales = "float[2,3] s = {1, 2, 3, 4, 5, 6}, float[3] t = {0.5, 1, 2}, float u = {0.25}"
    attributes = ", ".join(each.replace("=", " = ") for each in given)
    body = f"d = DequantizeLinear<{attributes}>(w, {scale}, {zero})  y2 = MatMul(x, d)"
    model = parse(body, 21, "float[N,4] x) => (float[N,3] y2", stored=scales, ir_version=10)
    for name, array in weights.items():
        tensor = ir.tensor(array.astype(kind), dtype=ir.DataType[kind.upper()], name=name)
        value = next((v for node in model.ir.graph for v in node.inputs if v is not None and v.name == name), None)
        if value is not None:
            value.const_value, value.type, value.shape = tensor, ir.TensorType(tensor.dtype), tensor.shape
            model.ir.graph.initializers.add(value)
    assert_same(model, target, np.arange(8, dtype=np.float32).reshape(2, 4))
