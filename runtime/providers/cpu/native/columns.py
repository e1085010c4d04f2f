from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from entrepot.ir.errors import InputError
from entrepot.runtime.kernels.window import window
from entrepot.runtime.providers.cpu.native.convolution import folded
from entrepot.runtime.providers.cpu.table import native
from entrepot.runtime.threads import one_blas_thread

Array: TypeAlias = np.ndarray[Any, Any]


@native("Col2Im", 18)
def col2im(
    input: Array,
    image_shape: Array,
    block_shape: Array,
    *,
    dilations: Sequence[int] | None = None,
    pads: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
) -> Array:
    """Add blocks, one per column, up into the image they were cut from."""
    sizes, kernel = tuple(int(n) for n in image_shape), tuple(int(n) for n in block_shape)
    win = window(sizes, kernel, strides=strides, dilations=dilations, pads=pads)
    if input.ndim != 3 or input.shape[2] != math.prod(win.target) or input.shape[1] % win.points:
        raise InputError(f"Col2Im: an input of shape {input.shape} is not {math.prod(win.target)} blocks of {kernel}")
    return folded(input.reshape(input.shape[0], -1, *kernel, *win.target), win)


@native("Det", 22)
def det(X: Array) -> Array:
    """The determinant of each matrix in the last two axes."""
    dtype = np.float64 if X.dtype == np.float64 else np.float32
    with one_blas_thread:
        return np.asarray(np.linalg.det(X.astype(dtype, copy=False))).astype(X.dtype, copy=False)
