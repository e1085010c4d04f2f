"""Elements put into another shape, where torch.onnx (2.13) relies on more than torch asks for."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import torch

from entrepot.exporters.torch.upstream import statically_known_true

aten = torch.ops.aten


def contiguous(input: torch.Tensor, *, memory_format: torch.memory_format = torch.contiguous_format) -> torch.Tensor:
    """A copy, where it depends on a size whether one is needed: torch (2.13) would let the sample's size decide.

    ``x[:, :width].contiguous()`` is ``x`` itself where it has no more than ``width`` columns. A graph has no memory
    that could tell.
    """
    sizes: Sequence[Any] = (*input.shape, *input.stride())
    if memory_format is not torch.contiguous_format or all(isinstance(size, int) for size in sizes):
        return input.contiguous(memory_format=memory_format)
    step: Any = 1
    for size, stride in zip(reversed(input.shape), reversed(input.stride()), strict=True):
        if not (statically_known_true(size == 1) or statically_known_true(stride == step)):
            return input.clone(memory_format=memory_format)
        step = step * torch.sym_max(size, 1)  # as torch makes the strides of a new tensor
    return input.contiguous()


def copy(input: torch.Tensor, src: torch.Tensor, non_blocking: bool = False) -> Any:
    """``src`` in the shape and type of what it is copied into."""
    sizes: list[tuple[Any, Any]] = list(zip(src.shape, input.shape, strict=False))
    known = (pair for pair in sizes if all(isinstance(size, int) for size in pair))
    fits = src.dim() == input.dim() and all(one == other for one, other in known)
    return NotImplemented if fits else src.to(input.dtype).expand(input.shape)


def resize(input: torch.Tensor, size: Sequence[Any], *, memory_format: Any = None) -> Any:
    """The elements in another shape; there may be fewer then, while more would be anything."""
    if not all(isinstance(each, int) for each in (*input.shape, *size)) or math.prod(size) > input.numel():
        return NotImplemented
    return input.reshape(-1)[: math.prod(size)].reshape(size)


def squeeze(input: torch.Tensor, dim: int) -> Any:
    """Without an axis, if it has one element; torch.onnx (2.13) takes others out, too, which no runtime does."""
    sizes: Sequence[Any] = input.shape
    single = not sizes or statically_known_true(sizes[dim] == 1)
    return NotImplemented if single else input.detach()


def squeeze_several(input: torch.Tensor, dim: Sequence[int]) -> torch.Tensor:
    """Without those of the axes that have one element."""
    for each in sorted({each % max(input.dim(), 1) for each in dim}, reverse=True):
        input = input.squeeze(each)  # noqa: A001 - one by one
    return input.detach() if not dim else input


def pixel_unshuffle(input: torch.Tensor, downscale_factor: int) -> Any:
    """Pixels as channels, of images without any."""
    if 0 not in input.shape:
        return NotImplemented
    *batch, channels, height, width = input.shape
    by = downscale_factor
    return input.reshape(*batch, channels * by * by, height // by, width // by)


def pad(input: torch.Tensor, pad: Sequence[Any], mode: str = "constant", value: float | None = None) -> Any:
    """Copies of the border, counted from it, on sides of which some are cut off."""
    if mode != "replicate" or not any(isinstance(count, int) and count < 0 for count in pad):
        return NotImplemented
    for axis, (before, after) in enumerate(zip(pad[::2], pad[1::2], strict=True), 1):
        size: Any = input.shape[-axis]
        place = (torch.arange(before + size + after) - before).clamp(0, size - 1)
        input = input.index_select(-axis, place)  # noqa: A001 - one by one
    return input


def cat(tensors: Sequence[torch.Tensor], dim: int = 0) -> Any:
    """Tensors in a row: one axis without elements, which torch lets go with any shape, adds nothing but its type."""
    rest = [each for each in tensors if not _is_nothing(each)]
    if len(rest) == len(tensors) or (rest and rest[0].dim() == 1):
        return NotImplemented
    dtype = functools.reduce(torch.promote_types, (each.dtype for each in tensors))
    if not rest:
        return tensors[0].to(dtype, copy=True)
    return torch.cat([each.to(dtype) for each in rest], dim)


def _is_nothing(tensor: torch.Tensor) -> bool:
    sizes: Sequence[Any] = tensor.shape
    return len(sizes) == 1 and isinstance(sizes[0], int) and not sizes[0]


def at_least(rank: int, tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """Tensors with axes of one element in front, and one behind for a third; ``hstack`` and its like begin with it.

    torch.onnx (2.13) makes a function over a sequence of it, which onnxruntime does not run.
    """
    return [_with_axes(each, rank) for each in tensors]


def _with_axes(tensor: torch.Tensor, rank: int) -> torch.Tensor:
    result = tensor.unsqueeze(-1) if rank == 3 and tensor.dim() in (1, 2) else tensor.detach()
    while result.dim() < rank:
        result = result.unsqueeze(0)
    return result


DECOMPOSITIONS = {
    aten.atleast_1d.Sequence: functools.partial(at_least, 1),
    aten.atleast_2d.Sequence: functools.partial(at_least, 2),
    aten.atleast_3d.Sequence: functools.partial(at_least, 3),
    aten.cat.default: cat,
    aten.copy.default: copy,
    aten.resize.default: resize,
    aten.squeeze.dim: squeeze,
    aten.squeeze.dims: squeeze_several,
    aten.pixel_unshuffle.default: pixel_unshuffle,
    aten.pad.default: pad,
}
REPLACEMENTS = {torch.Tensor.contiguous: contiguous}
