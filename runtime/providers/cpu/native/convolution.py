"""Convolutions as matrix products over unrolled windows, for any rank, group and dtype."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from entrepot.ir.errors import InputError
from entrepot.runtime import room
from entrepot.runtime.kernels.convolution import check_bias, conv_window
from entrepot.runtime.kernels.precision import accumulation_dtype
from entrepot.runtime.kernels.window import Window, transposed_window
from entrepot.runtime.providers.cpu.native.quantized import exact_product, less_zero, requantized
from entrepot.runtime.providers.cpu.native.windows import padded, windows
from entrepot.runtime.providers.cpu.products import matmul
from entrepot.runtime.providers.cpu.table import native

Array: TypeAlias = np.ndarray[Any, Any]


@native("Conv", 22)
def conv(
    X: Array,
    W: Array,
    B: Array | None = None,
    *,
    auto_pad: str = "NOTSET",
    dilations: Sequence[int] | None = None,
    group: int = 1,
    kernel_shape: Sequence[int] | None = None,
    pads: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
) -> Array:
    """The sum of products of W with each window of X."""
    win = conv_window(X.shape, W.shape, kernel_shape, group, auto_pad, dilations, pads, strides)
    dtype = accumulation_dtype(X.dtype)
    y = _product(X.astype(dtype, copy=False), W.astype(dtype, copy=False), win, group, matmul)
    return biased(y, B).astype(X.dtype, copy=False)


def _product(X: Array, W: Array, win: Window, group: int, product: Any) -> Array:
    """The windows unrolled into columns, times W."""
    unrolled = X if win.is_pointwise else windows(padded(X, win), win)
    return weighted(W, unrolled, win, group, product)


def weighted(W: Array, columns: Array, win: Window, group: int, product: Any = matmul) -> Array:
    """One matrix product per sample and group; ``columns`` hold (batch, channels, points, target) in this order."""
    batch, outputs, rows = columns.shape[0], W.shape[0], math.prod(W.shape[1:])
    room.claim(columns.shape, columns.dtype.itemsize)
    columns = columns.reshape(batch, group, rows, math.prod(win.target))
    return product(W.reshape(group, outputs // group, rows), columns).reshape(batch, outputs, *win.target)


def biased(y: Array, B: Array | None) -> Array:
    """``y`` itself, with one number per channel added to it."""
    if B is not None:
        check_bias(y.shape, B.shape)
        y += B.astype(y.dtype, copy=False).reshape(-1, *[1] * (y.ndim - 2))
    return y


@native("ConvInteger", 10)
def conv_integer(
    x: Array,
    w: Array,
    x_zero_point: Array | None = None,
    w_zero_point: Array | None = None,
    *,
    auto_pad: str = "NOTSET",
    dilations: Sequence[int] | None = None,
    group: int = 1,
    kernel_shape: Sequence[int] | None = None,
    pads: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
) -> Array:
    """The exact convolution of 8-bit integers less their zero points, in int32; padding counts as zero."""
    win = conv_window(x.shape, w.shape, kernel_shape, group, auto_pad, dilations, pads, strides)
    weights = less_zero(w, w_zero_point, (-1, *[1] * (w.ndim - 1)))
    return _product(less_zero(x, x_zero_point, (-1,)), weights, win, group, exact_product)


@native("QLinearConv", 10)
def qlinear_conv(
    x: Array,
    x_scale: Array,
    x_zero_point: Array,
    w: Array,
    w_scale: Array,
    w_zero_point: Array,
    y_scale: Array,
    y_zero_point: Array,
    B: Array | None = None,
    *,
    auto_pad: str = "NOTSET",
    dilations: Sequence[int] | None = None,
    group: int = 1,
    kernel_shape: Sequence[int] | None = None,
    pads: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
) -> Array:
    """ConvInteger plus an int32 bias, brought to the output's scale, rounded half to even and saturated."""
    total = conv_integer(
        x, w, x_zero_point, w_zero_point, auto_pad=auto_pad, dilations=dilations, group=group,
        kernel_shape=kernel_shape, pads=pads, strides=strides,
    )  # fmt: skip
    channel = (-1, *[1] * (x.ndim - 2))
    if B is not None:
        total = total + B.reshape(channel)
    factor = x_scale * (w_scale.reshape(channel) if w_scale.size > 1 else w_scale.reshape(())) / y_scale
    return requantized(total, factor, y_zero_point)


@native("ConvTranspose", 22)
def conv_transpose(
    X: Array,
    W: Array,
    B: Array | None = None,
    *,
    auto_pad: str = "NOTSET",
    dilations: Sequence[int] | None = None,
    group: int = 1,
    kernel_shape: Sequence[int] | None = None,
    output_padding: Sequence[int] | None = None,
    output_shape: Sequence[int] | None = None,
    pads: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
) -> Array:
    """The gradient of Conv by its input: every input point adds a scaled W to the output."""
    if kernel_shape and tuple(kernel_shape) != W.shape[2:]:
        raise InputError(f"kernel_shape {list(kernel_shape)} disagrees with W of shape {W.shape}")
    if X.ndim != W.ndim or X.shape[1] != W.shape[0] or W.shape[0] % group:
        raise InputError(f"W of shape {W.shape} with group={group} does not fit X of shape {X.shape}")
    win = transposed_window(X.shape[2:], W.shape[2:], strides, dilations, pads, auto_pad, output_padding, output_shape)
    dtype = accumulation_dtype(X.dtype)
    batch, channels, per_group = X.shape[0], X.shape[1], W.shape[1]
    weights = W.astype(dtype, copy=False).reshape(group, channels // group, per_group * win.points)
    points = X.astype(dtype, copy=False).reshape(batch, group, channels // group, math.prod(win.target))
    columns = matmul(weights.transpose(0, 2, 1), points)
    y = folded(columns.reshape(batch, group * per_group, *win.kernel, *win.target), win)
    return biased(y, B).astype(X.dtype, copy=False)


def folded(columns: Array, win: Window) -> Array:
    """Add (batch, channels, *kernel, *target) up into (batch, channels, *source): the transpose of ``windows``."""
    full = [
        max((n - 1) * s + extent, max(b, 0) + size)
        for n, s, extent, b, size in zip(win.target, win.strides, win.extents, win.begin, win.source, strict=True)
    ]
    # a negative crop means that the output reaches beyond what any input point touches
    before = [max(-b, 0) for b in win.begin]
    total = room.zeros((*columns.shape[:2], *[f + b for f, b in zip(full, before, strict=True)]), columns.dtype)
    overlapping = any(extent > stride for extent, stride in zip(win.extents, win.strides, strict=True))
    for tap in np.ndindex(*win.kernel):
        place = tuple(
            slice(f + t * d, f + t * d + (n - 1) * s + 1, s)
            for f, t, d, n, s in zip(before, tap, win.dilations, win.target, win.strides, strict=True)
        )
        if overlapping:
            total[(slice(None), slice(None), *place)] += columns[(slice(None), slice(None), *tap)]
        else:
            total[(slice(None), slice(None), *place)] = columns[(slice(None), slice(None), *tap)]
    crop = tuple(slice(max(b, 0), max(b, 0) + size) for b, size in zip(win.begin, win.source, strict=True))
    return np.ascontiguousarray(total[(slice(None), slice(None), *crop)])
