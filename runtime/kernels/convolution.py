"""Convolutions as matrix products over slices: right for any rank, group and stride, where a framework has no own."""

from __future__ import annotations

import math
from collections.abc import Sequence

from entrepot.ir.errors import InputError
from entrepot.runtime.kernels.axes import is_shape
from entrepot.runtime.kernels.backend import Array, Backend, HostArray
from entrepot.runtime.kernels.precision import accumulation_dtype
from entrepot.runtime.kernels.table import shared
from entrepot.runtime.kernels.unrolled import folded, padded, taps
from entrepot.runtime.kernels.window import Window, transposed_window, window


@shared("Conv", 22)
def conv(
    xp: Backend,
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
    win = conv_window(xp.shape(X), xp.shape(W), kernel_shape, group, auto_pad, dilations, pads, strides)
    wide = accumulation_dtype(xp.dtype(X))
    weights, shape = xp.astype(W, wide), xp.shape(W)
    columns = xp.stack(taps(padded(xp, xp.astype(X, wide), win, 0), win), 2)
    rows = math.prod(shape[1:])
    columns = xp.reshape(columns, (xp.shape(X)[0], group, rows, math.prod(win.target)))
    y = xp.matmul(xp.reshape(weights, (group, shape[0] // group, rows)), columns)
    y = xp.reshape(y, (xp.shape(X)[0], shape[0], *win.target))
    return xp.astype(_biased(xp, y, B), xp.dtype(X))


def conv_window(
    x_shape: Sequence[int],
    w_shape: Sequence[int],
    kernel_shape: Sequence[int] | None,
    group: int,
    auto_pad: str,
    dilations: Sequence[int] | None,
    pads: Sequence[int] | None,
    strides: Sequence[int] | None,
) -> Window:
    """The window of a convolution, after checking that weights and input fit.

    Raises:
        InputError: They do not.
    """
    if len(x_shape) != len(w_shape) or len(x_shape) < 3:
        raise InputError(f"Conv takes X and W of one rank, 3 or more, not shapes {x_shape} and {w_shape}")
    if kernel_shape and tuple(kernel_shape) != tuple(w_shape[2:]):
        raise InputError(f"kernel_shape {list(kernel_shape)} disagrees with W of shape {w_shape}")
    if x_shape[1] != w_shape[1] * group or w_shape[0] % group:
        raise InputError(f"W of shape {w_shape} with group={group} does not fit X of shape {x_shape}")
    return window(x_shape[2:], w_shape[2:], strides, dilations, pads, auto_pad)


def check_bias(shape: Sequence[int], bias: Sequence[int]) -> None:
    """Refuse a bias that is not one number for each channel of a result of this shape.

    Raises:
        InputError: It is not.
    """
    if not is_shape(bias, (shape[1],)):
        raise InputError(f"a bias of shape {tuple(bias)} for {shape[1]} channels")


def _biased(xp: Backend, y: Array, B: Array | None) -> Array:
    if B is None:
        return y
    check_bias(xp.shape(y), xp.shape(B))
    return y + xp.reshape(xp.astype(B, xp.dtype(y)), (-1, *[1] * (len(xp.shape(y)) - 2)))


@shared("ConvTranspose", 22)
def conv_transpose(
    xp: Backend,
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
    shape, weights = xp.shape(X), xp.shape(W)
    if kernel_shape and tuple(kernel_shape) != tuple(weights[2:]):
        raise InputError(f"kernel_shape {list(kernel_shape)} disagrees with W of shape {weights}")
    if len(shape) != len(weights) or shape[1] != weights[0] or weights[0] % group:
        raise InputError(f"W of shape {weights} with group={group} does not fit X of shape {shape}")
    win = transposed_window(shape[2:], weights[2:], strides, dilations, pads, auto_pad, output_padding, output_shape)
    wide, each = accumulation_dtype(xp.dtype(X)), shape[1] // group
    kernels = xp.reshape(xp.astype(W, wide), (group, each, weights[1] * win.points))
    points = xp.reshape(xp.astype(X, wide), (shape[0], group, each, math.prod(win.target)))
    columns = xp.matmul(xp.transpose(kernels, (0, 2, 1)), points)
    columns = xp.reshape(columns, (shape[0], group * weights[1], win.points, math.prod(win.target)))
    return xp.astype(_biased(xp, folded(xp, columns, win), B), xp.dtype(X))


@shared("Col2Im", 18)
def col2im(
    xp: Backend,
    input: Array,
    image_shape: HostArray,
    block_shape: HostArray,
    *,
    dilations: Sequence[int] | None = None,
    pads: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
) -> Array:
    """Add blocks, one per column, up into the image they were cut from."""
    kernel = tuple(block_shape.tolist())
    win = window(tuple(image_shape.tolist()), kernel, strides=strides, dilations=dilations, pads=pads)
    shape, count = xp.shape(input), math.prod(win.target)
    if len(shape) != 3 or shape[2] != count or shape[1] % win.points:
        raise InputError(f"Col2Im: an input of shape {shape} is not {count} blocks of {kernel}")
    return folded(xp, xp.reshape(input, (shape[0], shape[1] // win.points, win.points, count)), win)
