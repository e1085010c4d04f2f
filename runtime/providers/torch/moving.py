"""Elements picked, placed and padded: where torch's functions take other arguments than NumPy's, or know fewer."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from entrepot.runtime import room
from entrepot.runtime.providers.torch.dtypes import RAW
from entrepot.runtime.providers.torch.unsigned import moved, raw

select, flip, _gather = moved(torch.index_select), moved(torch.flip), moved(torch.gather)
_index = moved(Tensor.__getitem__)


def claim(shape: Sequence[int], itemsize: int = 8) -> None:
    """Make sure that there is room; sizes that are symbols, while a program is traced, are not looked at."""
    if all(type(size) is int for size in shape):
        room.claim(shape, itemsize)


def broadcast(*shapes: Sequence[int]) -> tuple[int, ...]:
    """The shape of arrays of these shapes together; torch's own function takes six times as long as NumPy's."""
    if torch.compiler.is_compiling() or not all(type(size) is int for shape in shapes for size in shape):
        return tuple(torch.broadcast_shapes(*shapes))
    return np.broadcast_shapes(*map(tuple, shapes))


def claim_product(x: Tensor, y: Tensor) -> None:
    """Make sure that there is room for a matrix product, which may be far larger than its operands."""
    if x.ndim > 1 and y.ndim > 1:
        claim((*broadcast(x.shape[:-2], y.shape[:-2]), x.shape[-2], y.shape[-1]), x.element_size())


def expand_dims(x: Tensor, axis: int | tuple[int, ...]) -> Tensor:
    """New axes of size 1 at these places of the result."""
    if isinstance(axis, int):
        return x.unsqueeze(axis)
    rank = x.ndim + len(axis)
    for place in sorted(counted_all(axis, rank)):
        x = x.unsqueeze(place)
    return x


def squeeze(x: Tensor, axis: int | tuple[int, ...] | None = None) -> Tensor:
    """Without these axes, which must have size 1; without all such axes if none are named."""
    if axis is None:
        return x.squeeze()
    axes = counted_all((axis,) if isinstance(axis, int) else axis, x.ndim)
    if any(x.shape[each] != 1 for each in axes):
        raise ValueError(f"cannot squeeze axes {axes} of shape {tuple(x.shape)}: not all have size 1")
    return x.squeeze(axes)


def counted_all(axes: Sequence[int], rank: int) -> tuple[int, ...]:
    """Axes counted from the front, each once."""
    if any(not -rank <= axis < rank for axis in axes):
        raise IndexError(f"axes {tuple(axes)} are out of range for an array of rank {rank}")
    counted = tuple(axis % rank for axis in axes)
    if len(set(counted)) != len(counted):
        raise ValueError(f"axes {tuple(axes)} name one twice")
    return counted


def pad(x: Tensor, widths: Sequence[tuple[int, int]], mode: str, value: Any = 0) -> Tensor:
    """Widen each axis before and behind: by ``constant``, ``reflect``, ``edge`` or ``wrap``."""
    sizes = [before + size + after for size, (before, after) in zip(x.shape, widths, strict=True)]
    claim(sizes, x.element_size())
    if mode == "constant":
        return _pad_constant(x, widths, sizes, value)
    for axis, (before, after) in enumerate(widths):
        if before or after:
            size = x.shape[axis]
            if not size:
                raise ValueError(f"cannot pad the empty axis {axis} by {mode!r}")
            places = torch.arange(-before, size + after, device=x.device)
            x = select(x, axis, _source(places, size, mode))
    return x


def _pad_constant(x: Tensor, widths: Sequence[tuple[int, int]], sizes: Sequence[int], value: Any) -> Tensor:
    if not isinstance(value, Tensor) and x.dtype not in RAW:
        flat = [width for pair in reversed(widths) for width in pair]
        return torch.constant_pad_nd(x, flat, value)
    fill = value if isinstance(value, Tensor) else torch.full((), value, dtype=x.dtype, device=x.device)
    whole = fill.to(x.dtype).expand(sizes).clone()
    inner = tuple(slice(before, before + size) for size, (before, _) in zip(x.shape, widths, strict=True))
    whole[inner] = x
    return whole


def _source(places: Tensor, size: int, mode: str) -> Tensor:
    """Which element of an axis each place of the padded one repeats."""
    if mode == "edge":
        return places.clamp(0, size - 1)
    if mode == "wrap":
        return places % size
    if mode != "reflect":
        raise ValueError(f"no padding is called {mode!r}")
    period = max(2 * (size - 1), 1)
    within = places.abs() % period
    return torch.where(within < size, within, period - within)


def from_front(indices: Tensor, size: int) -> Tensor:
    """Indices of which negative ones count from the end; torch refuses what is still out of range."""
    if not indices.dtype.is_signed:
        return indices.to(torch.int64)
    indices = indices.to(torch.int64)
    return torch.where(indices < 0, indices + size, indices)


def take(x: Tensor, indices: Tensor, axis: int) -> Tensor:
    """Whole slices along ``axis``."""
    size = x.shape[axis]
    axis = axis % x.ndim
    shape = (*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :])
    claim(shape, x.element_size())
    places = from_front(indices, size).reshape(-1)
    return select(x, axis, places).reshape(shape)


def take_along_axis(x: Tensor, indices: Tensor, axis: int) -> Tensor:
    """One element per index, along one axis; the other axes broadcast."""
    axis = axis % x.ndim
    places = from_front(indices, x.shape[axis])
    common = broadcast(*(tuple(1 if n == axis else size for n, size in enumerate(each.shape)) for each in (x, places)))
    x = x.expand([x.shape[axis] if n == axis else size for n, size in enumerate(common)])
    places = places.expand([places.shape[axis] if n == axis else size for n, size in enumerate(common)])
    return _gather(x, axis, places)


def index(x: Tensor, indices: Sequence[Tensor]) -> Tensor:
    """``x[i, j, ...]`` with one integer array per leading axis, broadcast together."""
    if not indices:
        return x
    places = broadcast(*(each.shape for each in indices))
    claim((*places, *x.shape[len(indices) :]), x.element_size())
    chosen = [from_front(each, size) for each, size in zip(indices, x.shape, strict=False)]
    if places:
        return _index(x, tuple(chosen))
    return _index(x, tuple(each.reshape(1) for each in chosen))[0]  # torch would wait for a single number


def scatter(x: Tensor, indices: Sequence[Tensor], updates: Tensor, reduction: str = "none") -> Tensor:
    """A copy of ``x`` with ``updates`` at these places; of two writes to one place the last one stays."""
    depth = len(indices)
    lead, rest = x.shape[:depth], x.shape[depth:]
    places = broadcast(*(each.shape for each in indices)) if indices else ()
    flat = _flat_places(indices, lead, places, x.device)
    rows = x.reshape(math.prod(lead), math.prod(rest))
    new = updates.expand((*places, *rest)).reshape(math.prod(places), math.prod(rest))
    return _scattered(rows, flat, new, reduction).reshape(x.shape)


def _flat_places(indices: Sequence[Tensor], lead: Sequence[int], places: Sequence[int], device: Any) -> Tensor:
    flat = torch.zeros(tuple(places), dtype=torch.int64, device=device)
    for each, size in zip(indices, lead, strict=True):
        place = from_front(each, size)
        if device.type == "cpu" and place.numel() and not bool(((place >= 0) & (place < size)).all()):
            raise IndexError(f"an index is out of range for an axis of {size} entries")
        flat = flat * size + place
    return flat.reshape(-1)


_NARROW = frozenset({torch.float16, torch.bfloat16})
_REDUCE = {"mul": "prod", "max": "amax", "min": "amin"}


def _scattered(rows: Tensor, flat: Tensor, new: Tensor, reduction: str) -> Tensor:
    if reduction == "none":
        return raw(rows).index_put((flat,), raw(new)).view(rows.dtype)
    if reduction == "add":
        return raw(rows).index_put((flat,), raw(new), accumulate=True).view(rows.dtype)
    if rows.dtype in _NARROW and reduction == "mul":  # rounded once, not after each factor
        return _scattered(rows.float(), flat, new.float(), reduction).to(rows.dtype)
    everywhere = flat[:, None].expand(new.shape)
    return rows.scatter_reduce(0, everywhere, new, _REDUCE[reduction])
