"""Element types of torch and of NumPy, and arrays of one as arrays of the other over the same memory."""

from __future__ import annotations

import contextlib
from typing import Any

import ml_dtypes
import numpy as np
import torch

from entrepot.ir.errors import UnsupportedOpError

_NAMES = (
    "bool", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64",
    "float16", "float32", "float64", "complex64", "complex128",
)  # fmt: skip
_NAMES_OF_ML_DTYPES = (
    "bfloat16", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu",
)  # fmt: skip

TORCH: dict[np.dtype[Any], torch.dtype] = {
    **{np.dtype(name): getattr(torch, name) for name in _NAMES},
    **{np.dtype(getattr(ml_dtypes, name)): getattr(torch, name) for name in _NAMES_OF_ML_DTYPES},
}
NUMPY: dict[torch.dtype, np.dtype[Any]] = {theirs: ours for ours, theirs in TORCH.items()}

WIDE = {torch.uint16: torch.int16, torch.uint32: torch.int32, torch.uint64: torch.int64}
"""Element types that torch stores and does not compute with, and signed ones of the same width."""

RAW: dict[torch.dtype, torch.dtype] = {
    **WIDE,
    **{TORCH[np.dtype(getattr(ml_dtypes, name))]: torch.uint8 for name in _NAMES_OF_ML_DTYPES[1:]},
}
"""What torch cannot even move everywhere, and types of the same width that it can."""

_BITS = {
    np.dtype(getattr(ml_dtypes, name)): np.dtype(np.int16 if name == "bfloat16" else np.uint8)
    for name in _NAMES_OF_ML_DTYPES
}
"""Types of which NumPy's own arrays hold the bits, as torch takes them."""


def torch_dtype(dtype: np.dtype[Any]) -> torch.dtype:
    """The element type of torch.

    Raises:
        UnsupportedOpError: It has none, as for strings and types of less than 8 bits.
    """
    found = TORCH.get(dtype)
    if found is None:
        raise UnsupportedOpError(f"torch has no element type {dtype}", hint="run this part with providers=['cpu']")
    return found


_COMMON = frozenset(np.dtype(kind) for kind in (np.float32, np.float64, np.int64, np.int32, np.bool_))
"""Types that torch takes as they are; they are looked at first."""


class _Writable:
    """Read-only memory as torch takes it, which knows no other; whoever has the tensor must not write to it."""

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        self.kept = array
        self.__array_interface__ = {
            **array.__array_interface__, "data": (array.__array_interface__["data"][0], False)
        }  # fmt: skip


def tensor_of(array: np.ndarray[Any, Any]) -> torch.Tensor:
    """A tensor over the memory of a NumPy array, read-only or not; a copy where torch cannot stride like that."""
    if array.dtype in _COMMON and array.flags.carray:
        with contextlib.suppress(ValueError):  # a reversed axis of one element counts as contiguous for NumPy
            return torch.from_numpy(array)
    dtype = torch_dtype(array.dtype)
    array = array.view(_BITS.get(array.dtype, array.dtype))
    if min(array.strides, default=0) < 0 or not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="), order="C")
    if not array.flags.writeable and array.size:
        array = np.asarray(_Writable(array))
    tensor = torch.from_numpy(array if array.flags.writeable else array.copy())
    return tensor if tensor.dtype == dtype else tensor.view(dtype)


def array_of_tensor(tensor: torch.Tensor) -> np.ndarray[Any, Any]:
    """A NumPy array over the memory of a tensor on the host."""
    tensor, dtype = tensor.detach(), NUMPY[tensor.dtype]
    bits = _BITS.get(dtype)
    return tensor.numpy() if bits is None else tensor.view(TORCH[bits]).numpy().view(dtype)
