"""A convolution whose windows' points are each moved by an offset, over gathered samples."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from entrepot.ir.errors import InputError
from entrepot.runtime.kernels.convolution import check_bias, conv_window
from entrepot.runtime.kernels.window import Window
from entrepot.runtime.providers.torch.table import native


@native("DeformConv", 22)
def deform_conv(
    X: Tensor,
    W: Tensor,
    offset: Tensor,
    B: Tensor | None = None,
    mask: Tensor | None = None,
    *,
    dilations: Sequence[int] | None = None,
    group: int = 1,
    kernel_shape: Sequence[int] | None = None,
    offset_group: int = 1,
    pads: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
) -> Tensor:
    """A convolution whose windows' points are each moved by an offset, read by linear interpolation."""
    win = conv_window(tuple(X.shape), tuple(W.shape), kernel_shape, group, "NOTSET", dilations, pads, strides)
    batch, channels, rank = X.shape[0], X.shape[1], len(win.kernel)
    if tuple(offset.shape) != (batch, offset_group * win.points * rank, *win.target) or channels % offset_group:
        raise InputError(f"DeformConv: offset of shape {tuple(offset.shape)} does not fit outputs of {win.target}")
    dtype = X.dtype if X.dtype is torch.float64 else torch.float32
    moves = offset.to(dtype).reshape(batch, offset_group, win.points, rank, *win.target)
    columns = _sampled(X.to(dtype), moves, win)
    if mask is not None:
        columns = columns * mask.to(dtype).reshape(batch, offset_group, 1, win.points, *win.target)
    rows = math.prod(W.shape[1:])
    flat = columns.reshape(batch, group, rows, math.prod(win.target))
    y = torch.matmul(W.to(dtype).reshape(group, W.shape[0] // group, rows), flat)
    y = y.reshape(batch, W.shape[0], *win.target)
    if B is None:
        return y.to(X.dtype)
    check_bias(y.shape, B.shape)
    return (y + B.to(dtype).reshape(-1, *[1] * rank)).to(X.dtype)


def _sampled(x: Tensor, moves: Tensor, win: Window) -> Tensor:
    """(batch, offset groups, channels of a group, points, *target): the input where the moved windows look."""
    batch, groups, rank = x.shape[0], moves.shape[1], len(win.kernel)
    at = [moves[:, :, :, axis] + _grid(win, axis, x) for axis in range(rank)]
    flat = x.reshape(batch, groups, x.shape[1] // groups, math.prod(win.source))
    base = [torch.floor(position) for position in at]
    shape = (*flat.shape[:3], win.points, *win.target)
    total: Any = 0
    for corner in itertools.product((0, 1), repeat=rank):
        index, weight = torch.zeros_like(base[0], dtype=torch.int64), torch.ones_like(base[0])
        for axis, step in enumerate(corner):
            place = base[axis] + step
            inside = (place >= 0) & (place <= win.source[axis] - 1)
            distance = at[axis] - base[axis]
            weight = torch.where(inside, weight * (distance if step else 1 - distance), 0.0)
            index = index * win.source[axis] + torch.where(inside, place, 0.0).to(torch.int64)
        places = index.reshape(batch, groups, 1, win.points * math.prod(win.target)).expand(-1, -1, flat.shape[2], -1)
        total = total + flat.gather(3, places).reshape(shape) * weight.unsqueeze(2)
    return torch.as_tensor(total)


def _grid(win: Window, axis: int, like: Tensor) -> Tensor:
    """(points, *target): where the undisturbed windows look along one axis."""
    rank = len(win.kernel)
    inner = math.prod(win.kernel[axis + 1 :])
    taps = torch.arange(win.points, device=like.device, dtype=torch.int64)
    tap = taps // inner % win.kernel[axis] * win.dilations[axis]
    start = torch.arange(win.target[axis], device=like.device) * win.strides[axis] - win.begin[axis]
    grid = tap.reshape(-1, *[1] * rank) + start.reshape([-1 if i == axis else 1 for i in range(rank)])
    return grid.to(like.dtype)
