"""Where float16 and bfloat16 are widened: sums, exponentials and norms are taken in float32 at least."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import onnx_ir as ir

from entrepot.runtime.kernels.axes import counted
from entrepot.runtime.kernels.backend import Array, Backend

_NARROW = frozenset({np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16)})


def stash_dtype(dtype: np.dtype[Any], stash_type: int = 1) -> np.dtype[Any]:
    """The element type to compute in: the wider of ``stash_type`` (an ONNX code) and ``dtype``, float32 at least."""
    wanted = {np.dtype(dtype), ir.DataType(stash_type).numpy()}
    return np.dtype(np.float64) if np.dtype(np.float64) in wanted else np.dtype(np.float32)


def accumulation_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The element type to sum in: float32 for the narrow floats, ``dtype`` itself otherwise."""
    return np.dtype(np.float32) if dtype in _NARROW else dtype


def widen(xp: Backend, x: Array) -> Array:
    """``x``, in float32 when it is float16 or bfloat16."""
    return xp.astype(x, np.dtype(np.float32)) if xp.dtype(x) in _NARROW else x


def narrow(xp: Backend, x: Array, dtype: np.dtype[Any]) -> Array:
    """``x`` back in ``dtype``."""
    return x if xp.dtype(x) == dtype else xp.astype(x, dtype)


def trailing_axes(rank: int, axis: int) -> tuple[int, ...]:
    """The axes from ``axis`` on."""
    return tuple(range(counted(axis, rank) if rank else 0, rank))


def is_floating(dtype: np.dtype[Any]) -> bool:
    """Whether this is a floating-point type; NumPy itself does not know those of ml_dtypes."""
    return dtype.kind == "f" or "float" in dtype.name
