from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from entrepot.ir.errors import InputError
from entrepot.runtime.kernels.precision import accumulation_dtype
from entrepot.runtime.providers.cpu.table import native

Array: TypeAlias = np.ndarray[Any, Any]


@native("Dropout", 22)
def dropout(
    data: Array,
    ratio: Array | None = None,
    training_mode: Array | None = None,
    *,
    seed: int | None = None,
    n_outputs: int = 1,
) -> tuple[Array, ...]:
    """The data itself, unless training: then a random share is zeroed and the rest scaled up."""
    share = 0.5 if ratio is None else float(ratio.item())
    if training_mode is None or not training_mode.item() or share == 0.0:
        return (data, np.ones(data.shape, np.bool_)) if n_outputs > 1 else (data,)
    if not 0.0 <= share < 1.0:
        raise InputError(f"Dropout takes a ratio from 0 to below 1, not {share}")
    # the legacy generator: onnx's own tests expect its stream for a seed
    mask = np.asarray(np.random.RandomState(seed).uniform(0, 1, data.shape)) >= share
    dtype = accumulation_dtype(data.dtype) if data.dtype.itemsize > 1 else np.dtype(np.float32)
    y = np.where(mask, data.astype(dtype) * dtype.type(1 / (1 - share)), dtype.type(0)).astype(data.dtype)
    return (y, mask) if n_outputs > 1 else (y,)
