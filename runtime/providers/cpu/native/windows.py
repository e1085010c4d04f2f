"""Windows of an array as strided views."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.lib.stride_tricks import as_strided

from entrepot.runtime import room
from entrepot.runtime.kernels.window import Window

Array: TypeAlias = np.ndarray[Any, Any]


def padded(x: Array, win: Window, value: Any = 0) -> Array:
    """``x`` (batch, channels, ...) with ``value`` around it wherever a window reaches; ``x`` itself if none does."""
    sizes = win.padded
    if sizes == win.source and not any(win.begin):
        return x
    y = room.full((*x.shape[:2], *sizes), value, x.dtype)
    inner = [slice(b, b + size) for b, size in zip(win.begin, win.source, strict=True)]
    y[(slice(None), slice(None), *inner)] = x
    return y


def windows(x: Array, win: Window) -> Array:
    """A view (batch, channels, *kernel, *target) of a padded ``x``."""
    spatial = x.strides[2:]
    return as_strided(
        x,
        (*x.shape[:2], *win.kernel, *win.target),
        (
            *x.strides[:2],
            *(stride * d for stride, d in zip(spatial, win.dilations, strict=True)),
            *(stride * s for stride, s in zip(spatial, win.strides, strict=True)),
        ),
        writeable=False,
    )


def taps(x: Array, win: Window) -> list[Array]:
    """One view (batch, channels, *target) of a padded ``x`` for each point of the window, in C order."""
    views = windows(x, win)
    return [views[(slice(None), slice(None), *tap)] for tap in np.ndindex(*win.kernel)]
