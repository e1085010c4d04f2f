"""Arrays of other libraries in element types that NumPy lacks, read through DLPack, the struct that they all share.

``numpy.from_dlpack`` knows only NumPy's own types. The struct says where the data is and what it is; bfloat16 and the
8-bit types are copied out of it as types of ml_dtypes.
"""

from __future__ import annotations

import ctypes
import math
from typing import Any

import ml_dtypes
import numpy as np

_CPU = 1
_TYPES = {
    (4, 16): "bfloat16",
    (7, 8): "float8_e3m4",
    (8, 8): "float8_e4m3",
    (9, 8): "float8_e4m3b11fnuz",
    (10, 8): "float8_e4m3fn",
    (11, 8): "float8_e4m3fnuz",
    (12, 8): "float8_e5m2",
    (13, 8): "float8_e5m2fnuz",
    (14, 8): "float8_e8m0fnu",
}
"""Type code and bits of DLPack 1.1, to the name in ml_dtypes."""


class _Tensor(ctypes.Structure):
    """``DLTensor``, the first member of ``DLManagedTensor``."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


def from_dlpack(exporter: Any) -> np.ndarray[Any, Any] | None:
    """A copy of an array on the host whose element type NumPy lacks; ``None`` for any other array.

    Args:
        exporter: An object with ``__dlpack__``; what that raises passes through.
    """
    capsule = exporter.__dlpack__()  # owns the struct, and frees it when it is collected
    tensor = _Tensor.from_address(_pointer(capsule, b"dltensor"))
    name = _TYPES.get((tensor.code, tensor.bits))
    if name is None or tensor.lanes != 1 or tensor.device_type != _CPU:
        return None
    dtype = np.dtype(getattr(ml_dtypes, name))
    shape = tuple(tensor.shape[axis] for axis in range(tensor.ndim))
    if math.prod(shape) == 0:
        return np.empty(shape, dtype)
    strides = [tensor.strides[axis] for axis in range(tensor.ndim)] if tensor.strides else None
    return _copied((tensor.data or 0) + tensor.byte_offset, dtype, shape, strides)


def _copied(
    address: int, dtype: np.dtype[Any], shape: tuple[int, ...], strides: list[int] | None
) -> np.ndarray[Any, Any]:
    """The elements from ``address`` on; strides count elements, ``None`` for C order."""
    reach = (
        math.prod(shape) if strides is None else 1 + sum((n - 1) * step for n, step in zip(shape, strides, strict=True))
    )
    memory = memoryview((ctypes.c_char * (reach * dtype.itemsize)).from_address(address))
    steps = None if strides is None else tuple(step * dtype.itemsize for step in strides)
    return np.ndarray(shape, dtype, memory, strides=steps).copy()


_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.restype, _pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
