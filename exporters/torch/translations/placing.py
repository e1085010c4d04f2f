"""Values written to places that a tensor names, where torch.onnx (2.13) lacks the operator or the dtype of one."""

from __future__ import annotations

from typing import Any

import torch

from entrepot.exporters.torch.upstream import hint_of
from entrepot.ir.errors import UnsupportedOpError

aten = torch.ops.aten

_REDUCED = {"add": "sum", "multiply": "prod"}


def scatter_reduced(input: torch.Tensor, dim: int, index: torch.Tensor, src: torch.Tensor, *, reduce: str) -> Any:
    """By the newer operator, which has other names for the same."""
    return torch.scatter_reduce(input, dim, index, src, _REDUCED[reduce])


def scatter_value_reduced(input: torch.Tensor, dim: int, index: torch.Tensor, value: Any, *, reduce: str) -> Any:
    """One number for all places."""
    src = torch.full_like(index, value, dtype=input.dtype)
    return torch.scatter_reduce(input, dim, index, src, _REDUCED[reduce])


def scatter_add(input: torch.Tensor, dim: int, index: torch.Tensor, src: torch.Tensor) -> Any:
    """Of tensors without axes: as if they had one element along one."""
    if input.dim():
        return NotImplemented
    return input.reshape(1).scatter_add(0, index.reshape(-1), src.reshape(-1)).reshape(())


def scatter_reduce(
    input: torch.Tensor, dim: int, index: torch.Tensor, src: torch.Tensor, reduce: str, *, include_self: bool = True
) -> Any:
    """Of tensors without axes likewise, and means of any."""
    if not input.dim():
        flat = torch.scatter_reduce(
            input.reshape(1), 0, index.reshape(-1), src.reshape(-1), reduce, include_self=include_self
        )
        return flat.reshape(())
    if reduce != "mean":
        return NotImplemented
    rounding = None if input.is_floating_point() else "floor"
    counts = torch.zeros_like(input).scatter_add(dim, index, torch.ones_like(src))
    if include_self:
        return torch.div(input.scatter_add(dim, index, src), counts + 1, rounding_mode=rounding)
    sums = torch.zeros_like(input).scatter_add(dim, index, src)
    return torch.where(counts > 0, torch.div(sums, counts.clamp(min=1), rounding_mode=rounding), input)


def index_reduce(
    input: torch.Tensor, dim: int, index: torch.Tensor, source: torch.Tensor, reduce: str, *, include_self: bool = True
) -> Any:
    """Slices reduced into those that ``index`` names."""
    if not input.dim():
        input, source = input.reshape(1), source.reshape(-1)  # noqa: A001 - as if it had an axis
        return index_reduce(input, 0, index.reshape(-1), source, reduce, include_self=include_self).reshape(())
    shape = [-1 if axis == dim % input.dim() else 1 for axis in range(input.dim())]
    place = index.reshape(shape).expand_as(source)
    return torch.scatter_reduce(input, dim, place, source, reduce, include_self=include_self)


def put(input: torch.Tensor, index: torch.Tensor, source: torch.Tensor, accumulate: bool = False) -> Any:
    """Elements written to places counted over all axes."""
    flat, place = input.reshape(-1), index.reshape(-1)
    place = torch.where(place < 0, place + flat.shape[0], place)
    values = source.reshape(-1)
    changed = flat.scatter_add(0, place, values) if accumulate else flat.scatter(0, place, values)
    return changed.reshape(input.shape)


def index(input: torch.Tensor, indices: Any) -> Any:
    """Places of several types, which ONNX's operators do not take together."""
    alike = _of_one_type(indices)
    return NotImplemented if alike is None else aten.index(input, alike)


def _of_one_type(indices: Any) -> list[Any] | None:
    """Places as whole numbers of 64 bits, if they are of several types; ``None`` where nothing has to change."""
    kinds = [None if each is None or each.dtype in (torch.bool, torch.uint8) else each.dtype for each in indices]
    if len({*kinds} - {None}) < 2:
        return None
    return [each if kind is None else each.long() for each, kind in zip(indices, kinds, strict=True)]


def index_put(input: torch.Tensor, indices: Any, values: torch.Tensor, accumulate: bool = False) -> Any:
    """A mask beside whole axes or beside places (``x[:, mask] = values``) is the places that it names."""
    if (alike := _of_one_type(indices)) is not None:
        return aten.index_put(input, alike, values, accumulate)
    masks = [index for index in indices if index is not None and index.dtype is torch.bool]
    if len(masks) != 1 or len(indices) == 1:
        return NotImplemented
    places: list[Any] = []
    for index in indices:
        places += index.nonzero().unbind(1) if index is masks[0] else [index]
    return aten.index_put(input, places, values, accumulate)


def as_strided(input: torch.Tensor, size: Any, stride: Any, storage_offset: Any = None) -> Any:
    """Places of the memory, which a graph has in the order of the axes: those of a tensor that lies otherwise.

    Where it leaves gaps in its memory, what is read there may be of another tensor, which no graph knows.
    """
    beginning = input.storage_offset()
    if not input.dim() or (input.is_contiguous() and isinstance(beginning, int) and beginning == 0):
        return NotImplemented
    strides = input.stride()
    order = sorted(range(input.dim()), key=lambda axis: -hint_of(strides[axis]))
    lying = input.permute(order)
    if not lying.is_contiguous():
        raise UnsupportedOpError(
            f"as_strided reads the memory of a tensor of strides {tuple(map(str, strides))}, which has gaps",
            hint="call contiguous() on it first",
        )
    start = None if storage_offset is None else storage_offset - beginning
    return aten.as_strided.default(lying.clone(memory_format=torch.contiguous_format), size, stride, start)


def as_strided_scatter(
    input: torch.Tensor, src: torch.Tensor, size: Any, stride: Any, storage_offset: Any = None
) -> Any:
    """Elements written to where ``as_strided`` reads them."""
    place = torch.full((), storage_offset or 0, dtype=torch.int64)
    for count, step in zip(size, stride, strict=True):
        place = place.unsqueeze(-1) + torch.arange(count) * step
    return input.reshape(-1).scatter(0, place.reshape(-1), src.reshape(-1)).reshape(input.shape)


def repeat_interleave(repeats: torch.Tensor, *, output_size: Any = None) -> Any:
    """The number of each element, as often as it says."""
    if repeats.dtype is not torch.int64:  # torch.onnx (2.13) counts on it
        return aten.repeat_interleave.Tensor(repeats.long(), output_size=output_size).to(repeats.dtype)
    ends = repeats.cumsum(0)
    if not isinstance(output_size, int):
        return NotImplemented
    place = torch.arange(output_size)
    return (place.unsqueeze(-1) >= ends).sum(-1)


def repeat_each(input: torch.Tensor, repeats: Any, dim: Any = None, *, output_size: Any = None) -> Any:
    """Each element as often as a size says."""
    if isinstance(repeats, int) or not input.dim():
        return NotImplemented
    if dim is None:
        input, dim = input.reshape(-1), 0  # noqa: A001 - as if it had one axis
    dim %= input.dim()
    times = [repeats if axis == dim + 1 else -1 for axis in range(input.dim() + 1)]
    return input.unsqueeze(dim + 1).expand(times).flatten(dim, dim + 1)


DECOMPOSITIONS = {
    aten.scatter.reduce: scatter_reduced,
    aten.scatter.value_reduce: scatter_value_reduced,
    aten.scatter_add.default: scatter_add,
    aten.scatter_reduce.two: scatter_reduce,
    aten.index_reduce.default: index_reduce,
    aten.put.default: put,
    aten.index.Tensor: index,
    aten.index_put.default: index_put,
    aten.as_strided.default: as_strided,
    aten.as_strided_scatter.default: as_strided_scatter,
    aten.repeat_interleave.Tensor: repeat_interleave,
    aten.repeat_interleave.self_int: repeat_each,
}
