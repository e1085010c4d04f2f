"""Element types of TensorFlow as NumPy and ONNX have them."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
import tensorflow as tf

_REALS = {np.dtype(np.complex64): np.dtype(np.float32), np.dtype(np.complex128): np.dtype(np.float64)}


def numpy_type(dtype: tf.DType) -> np.dtype[Any]:
    """NumPy's type, or that of ml_dtypes: quantised integers are plain ones; strings, and handles, are objects."""
    base = dtype.base_dtype
    if base in (tf.qint8, tf.quint8, tf.qint16, tf.quint16, tf.qint32):
        return np.dtype(base.name.removeprefix("q"))
    return np.dtype(object) if base in (tf.resource, tf.variant) else np.dtype(base.as_numpy_dtype)


def onnx_type(dtype: np.dtype[Any]) -> ir.DataType:
    """ONNX's type; of the parts, for a complex one."""
    if dtype.kind in "OSU":
        return ir.DataType.STRING
    real: Any = _REALS.get(dtype, dtype)
    return ir.DataType.from_numpy(real)
