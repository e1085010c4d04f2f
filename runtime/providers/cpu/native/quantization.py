"""Quantising float32 to 8 bits and back, in place and by blocks: what quantised models do between their products."""

from __future__ import annotations

from typing import Any

import numpy as np

from entrepot.runtime.kernels import quantization as shared
from entrepot.runtime.kernels.cast import element_type
from entrepot.runtime.providers.cpu.backend import NUMPY
from entrepot.runtime.providers.cpu.blocks import Array, blockwise
from entrepot.runtime.providers.cpu.table import native

_F32 = np.dtype(np.float32)
_RANGES: dict[np.dtype[Any], tuple[Array, Array]] = {
    np.dtype(kind): (np.array(np.iinfo(kind).min, _F32), np.array(np.iinfo(kind).max, _F32))
    for kind in (np.uint8, np.int8)
}


@native("QuantizeLinear", 28)
def quantize_linear(
    x: Array,
    y_scale: Array,
    y_zero_point: Array | None = None,
    *,
    axis: int = 1,
    block_size: int = 0,
    output_dtype: int = 0,
    precision: int = 0,
    saturate: int = 1,
) -> Array:
    """Round x / scale + zero point, cut to the range of the quantised type."""
    target = element_type(output_dtype or 2) if y_zero_point is None else y_zero_point.dtype
    plain = x.dtype == _F32 and y_scale.dtype == _F32 and y_scale.size == 1 and target in _RANGES
    if not plain or precision or (output_dtype and element_type(output_dtype) != target):
        more = {"axis": axis, "block_size": block_size, "output_dtype": output_dtype}
        return shared.quantize_linear(NUMPY, x, y_scale, y_zero_point, precision=precision, saturate=saturate, **more)
    scale, (low, high) = y_scale.reshape(()), _RANGES[target]
    zero = None if y_zero_point is None else y_zero_point.astype(_F32).reshape(())

    def formula(block: Array, out: Array, buffer: Array) -> None:
        np.divide(block, scale, out)
        np.rint(out, out)
        if zero is not None:
            np.add(out, zero, out)
        out.clip(low, high, out=out)

    return blockwise(x, formula).astype(target)


@native("DequantizeLinear", 28)
def dequantize_linear(
    x: Array,
    x_scale: Array,
    x_zero_point: Array | None = None,
    *,
    axis: int = 1,
    block_size: int = 0,
    output_dtype: int = 0,
) -> Array:
    """(x - zero point) * scale."""
    if x_scale.dtype != _F32 or (output_dtype and element_type(output_dtype) != _F32):
        more = {"axis": axis, "block_size": block_size, "output_dtype": output_dtype}
        return shared.dequantize_linear(NUMPY, x, x_scale, x_zero_point, **more)
    y = np.array(x, _F32)
    if x_zero_point is not None:
        np.subtract(y, shared.spread(NUMPY, x_zero_point.astype(_F32), x.shape, axis, block_size), y)
    return np.multiply(y, shared.spread(NUMPY, x_scale, x.shape, axis, block_size), y)
