"""Shapes and movement by torch's own functions, which torch.export can follow with sizes that vary."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from entrepot.runtime.kernels.axes import counted
from entrepot.runtime.kernels.movement import slices
from entrepot.runtime.kernels.shape import resolve_shape
from entrepot.runtime.providers.torch import moving
from entrepot.runtime.providers.torch.table import native
from entrepot.runtime.providers.torch.unsigned import raw

HostArray = np.ndarray[Any, Any]


@native("Reshape", 25)
def reshape(data: Tensor, shape: HostArray, *, allowzero: int = 0) -> Tensor:
    """The same elements in another shape."""
    wanted = shape.tolist()
    if data.numel() and 0 not in wanted and min(wanted, default=0) >= -1:
        return data.reshape(wanted)
    return data.reshape(resolve_shape(data.shape, wanted, allowzero))


@native("Transpose", 25)
def transpose(data: Tensor, *, perm: Sequence[int] | None = None) -> Tensor:
    """The axes in the order ``perm``; reversed without it."""
    return data.permute(tuple(range(data.ndim))[::-1] if perm is None else tuple(perm))


@native("Flatten", 25)
def flatten(input: Tensor, *, axis: int = 1) -> Tensor:
    """Two axes: the product of the sizes before ``axis``, and of the rest."""
    cut = input.ndim if axis == input.ndim else counted(axis, input.ndim)
    return input.reshape(math.prod(input.shape[:cut]), math.prod(input.shape[cut:]))


@native("Gather", 13)
def gather(data: Tensor, indices: Tensor, *, axis: int = 0) -> Tensor:
    """Whole slices along ``axis``; the axes of ``indices`` take its place."""
    return moving.take(data, indices, axis)


@native("Slice", 13)
def slice_(
    data: Tensor, starts: HostArray, ends: HostArray, axes: HostArray | None = None, steps: HostArray | None = None
) -> Tensor:
    """From start to end by step on some axes; a negative step runs backwards."""
    for axis, wanted in slices(data.ndim, starts, ends, axes, steps):
        places = range(*wanted.indices(data.shape[axis]))
        forward = places if places.step > 0 else places[::-1]
        lead = (slice(None),) * axis
        data = data[(*lead, slice(forward.start, forward.stop, forward.step) if len(forward) else slice(0, 0))]
        data = data if places.step > 0 else moving.flip(data, (axis,))
    return data


@native("Expand", 13)
def expand(input: Tensor, shape: HostArray) -> Tensor:
    """Broadcast with ``shape``, in both directions, as a view."""
    wanted = np.broadcast_shapes(tuple(input.shape), tuple(shape.tolist()))
    moving.claim(wanted, input.element_size())
    return input.expand(wanted)


@native("Concat", 13)
def concat(*inputs: Tensor, axis: int) -> Tensor:
    """The inputs one after the other along ``axis``."""
    moving.claim((sum(each.nbytes for each in inputs),), 1)
    return torch.cat(inputs, axis)


@native("Trilu", 14)
def trilu(input: Tensor, k: HostArray | None = None, *, upper: int = 1) -> Tensor:
    """The part of every matrix on and above its k-th diagonal, or on and below it; zero elsewhere."""
    diagonal = 0 if k is None else max(min(int(k.item()), 2**31), -(2**31))
    bits = raw(input)
    return (bits.triu(diagonal) if upper else bits.tril(diagonal)).view(input.dtype)
