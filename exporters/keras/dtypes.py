"""Element types: Keras calls them by name."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import onnx_ir as ir

_BY_NAME = {
    "bool": ir.DataType.BOOL, "int8": ir.DataType.INT8, "int16": ir.DataType.INT16, "int32": ir.DataType.INT32,
    "int64": ir.DataType.INT64, "uint8": ir.DataType.UINT8, "uint16": ir.DataType.UINT16,
    "uint32": ir.DataType.UINT32, "uint64": ir.DataType.UINT64, "float16": ir.DataType.FLOAT16,
    "bfloat16": ir.DataType.BFLOAT16, "float32": ir.DataType.FLOAT, "float64": ir.DataType.DOUBLE,
    "complex64": ir.DataType.COMPLEX64, "complex128": ir.DataType.COMPLEX128, "string": ir.DataType.STRING,
    "int4": ir.DataType.INT4, "uint4": ir.DataType.UINT4,
    "float8_e4m3fn": ir.DataType.FLOAT8E4M3FN, "float8_e5m2": ir.DataType.FLOAT8E5M2,
}  # fmt: skip
_NAMES = {kind: name for name, kind in _BY_NAME.items()}


def element_of(dtype: Any) -> ir.DataType:
    """ONNX's name of an element type: of Keras' name, of NumPy's type, of its own."""
    if isinstance(dtype, ir.DataType):
        return dtype
    name = dtype if isinstance(dtype, str) else str(np.dtype(dtype).name)
    return _BY_NAME[keras.backend.standardize_dtype(name)]


def keras_dtype(dtype: Any) -> str:
    """Keras' name of an element type."""
    return _NAMES[dtype] if isinstance(dtype, ir.DataType) else keras.backend.standardize_dtype(dtype)


def is_float(kind: ir.DataType | None) -> bool:
    """Whether values of the type are floating-point numbers."""
    return kind is not None and kind.is_floating_point()
