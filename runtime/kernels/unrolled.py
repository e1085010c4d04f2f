"""Windows without strided views: one slice per point of the window, and their transpose."""

from __future__ import annotations

import math
from itertools import product

import numpy as np

from entrepot.runtime.kernels.backend import Array, Backend
from entrepot.runtime.kernels.window import Window


def padded(xp: Backend, x: Array, win: Window, value: float) -> Array:
    """``x`` (batch, channels, ...) with ``value`` around it wherever a window reaches."""
    around = [(b, full - size - b) for full, b, size in zip(win.padded, win.begin, win.source, strict=True)]
    return xp.pad(x, [(0, 0), (0, 0), *around], "constant", value) if any(map(any, around)) else x


def taps(x: Array, win: Window) -> list[Array]:
    """One slice (batch, channels, *target) of a padded ``x`` for each point of the window, in C order."""
    return [x[(slice(None), slice(None), *_places(win, tap))] for tap in product(*map(range, win.kernel))]


def _places(win: Window, tap: tuple[int, ...]) -> list[slice]:
    axes = zip(tap, win.dilations, win.target, win.strides, strict=True)
    return [slice(t * d, t * d + max((n - 1) * s + 1, 0), s) for t, d, n, s in axes]


def folded(xp: Backend, columns: Array, win: Window) -> Array:
    """Add (batch, channels, points, positions) up into (batch, channels, *source): the transpose of the slices."""
    reach = [max((n - 1) * s + extent, 0) for n, s, extent in zip(win.target, win.strides, win.extents, strict=True)]
    # a negative crop means that the output reaches beyond what any input point touches
    before = [max(-b, 0) for b in win.begin]
    sizes = [f + max(r, max(b, 0) + n) for f, r, b, n in zip(before, reach, win.begin, win.source, strict=True)]
    flat = np.arange(math.prod(sizes)).reshape(sizes)[tuple(slice(f, None) for f in before)]
    places = np.stack([flat[tuple(_places(win, tap))].reshape(-1) for tap in product(*map(range, win.kernel))])
    batch, channels = xp.shape(columns)[:2]
    updates = xp.reshape(xp.transpose(columns, (2, 3, 0, 1)), (places.size, batch, channels))
    blank = xp.full((math.prod(sizes), batch, channels), 0, xp.dtype(columns))
    total = xp.scatter(blank, (xp.asarray(places.reshape(-1)),), updates, "add")
    total = xp.reshape(xp.transpose(total, (1, 2, 0)), (batch, channels, *sizes))
    crop = [slice(max(b, 0), max(b, 0) + n) for b, n in zip(win.begin, win.source, strict=True)]
    return total[(slice(None), slice(None), *crop)]
