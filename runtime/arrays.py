"""Arrays of any library as NumPy arrays, without importing the library, through what the object itself offers."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from entrepot.ir.arguments import described
from entrepot.ir.errors import InputError
from entrepot.runtime.dlpack import from_dlpack

_FAILURES = (AttributeError, BufferError, TypeError, ValueError, RuntimeError, OverflowError, NotImplementedError)
"""What libraries raise if an array cannot be converted: it is on another device, sparse, or of an unknown type."""

_PLAIN_FORMS = ("detach", "resolve_conj", "resolve_neg")
"""Methods that strip what NumPy does not know from a tensor: gradient history, lazy conjugation, lazy negation."""


def is_array(value: Any) -> bool:
    """Whether an object says that it is an array or a tensor, a NumPy scalar included."""
    return hasattr(value, "__array__") or hasattr(value, "__dlpack__")


def as_array(value: Any, name: str = "") -> np.ndarray[Any, Any]:
    """The same values as a NumPy array; bfloat16 and float8 come as types of ml_dtypes.

    Args:
        value: An array or tensor of any library, a Python number or string, or a nested list of them.
        name: What to call it in messages.

    Raises:
        InputError: It cannot be read as an array, or elements of it are masked.
    """
    if type(value) is np.ndarray and value.dtype.isnative:
        return value
    if isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value):
        raise InputError(
            "an array with masked elements has no values there", value=name or None, hint="give it as array.filled(...)"
        )
    if not (is_array(value) or isinstance(value, bool | int | float | complex | str | bytes | list | tuple)):
        raise InputError(f"{described(value)} cannot be read as an array", value=name or None)
    try:
        return _native(_read(_plain(value)) if is_array(value) else np.asarray(value))
    except _FAILURES as error:
        reason = (str(error) or type(error).__name__).splitlines()[0]
        raise InputError(
            f"{described(value)} cannot be read as an array: {reason}", value=name or None, hint=_hint(value)
        ) from error


def _hint(value: Any) -> str | None:
    """How to turn a tensor into one that NumPy can read."""
    if "cpu" not in str(getattr(value, "device", "cpu")).lower():
        return "give it as tensor.cpu()"
    return "give it as tensor.to_dense()" if hasattr(value, "to_dense") and "strided" not in str(value.layout) else None


def _plain(value: Any) -> Any:
    for method in _PLAIN_FORMS:
        if callable(getattr(value, method, None)):
            value = getattr(value, method)()
    return value


def _native(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The same numbers in this machine's order of bytes, which is no part of a type."""
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


def _read(value: Any) -> np.ndarray[Any, Any]:
    try:
        return np.asarray(value) if hasattr(value, "__array__") else np.from_dlpack(value)
    except _FAILURES:
        read = from_dlpack(value) if hasattr(value, "__dlpack__") else None
        if read is None:
            raise
        return read


def array_of_tensor(tensor: ir.TensorProtocol) -> np.ndarray[Any, Any]:
    """What a tensor of a file holds, as kernels take it: onnx_ir gives strings as the bytes that they are stored as."""
    array = tensor.numpy()
    if array.dtype.kind not in "OS":
        return array
    texts = [text.decode(errors="surrogateescape") if isinstance(text, bytes) else text for text in array.reshape(-1)]
    return np.array(texts, object).reshape(array.shape)


def array_of(result: Any) -> np.ndarray[Any, Any]:
    """A kernel's result as an array: NumPy makes scalars of 0-d results, and of 0-d strings Python's own."""
    return np.array(result, dtype=object) if isinstance(result, str) else np.asarray(result)
