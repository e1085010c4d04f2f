"""A slice of a tensor replaced: what comes before it, the new slice, and what comes after, one behind the other.

torch.onnx (2.13) scatters the new slice to numbered places of the first axis, and transposes all three tensors to get
there and back: on a tensor of any size most of the time of a model that writes to slices.
"""

from __future__ import annotations

import sys
from typing import Any

import torch

from entrepot.exporters.torch.upstream import statically_known_true

aten = torch.ops.aten

_FEW = 1 << 12
"""Numbers that onnxruntime scatters in no more time than it takes to put three parts together."""


def slice_scatter(
    input: torch.Tensor, src: torch.Tensor, dim: int = 0, start: Any = None, end: Any = None, step: Any = 1
) -> Any:
    """Slices that lie together, and whose first place is counted from the beginning, or end counted like it."""
    begin = 0 if start is None else start
    open_ended = end is None or (isinstance(end, int) and end == sys.maxsize)
    backwards = isinstance(begin, int) and begin < 0
    if not input.dim() or not isinstance(step, int) or step != 1 or src.dtype != input.dtype:
        return NotImplemented
    if not isinstance(begin, int) and not statically_known_true(begin >= 0):
        return NotImplemented
    if backwards and not (open_ended or (isinstance(end, int) and begin <= end < 0)):
        return NotImplemented
    if isinstance(begin, int) and begin == 0 and (open_ended or _is_size(end, input.shape[dim])):
        return src.clone()
    parts = [src]
    if not (isinstance(begin, int) and begin == 0):
        parts.insert(0, aten.slice.Tensor(input, dim, 0, begin))
    if not open_ended:
        parts.append(aten.slice.Tensor(input, dim, _after(src, dim, begin, end), sys.maxsize))
    return torch.cat(parts, dim)


def select_scatter(input: torch.Tensor, src: torch.Tensor, dim: int, index: Any) -> Any:
    """One element of an axis, as a slice of one; what is scattered in one step is left so."""
    if not isinstance(index, int):  # the turn of a loop, which would have to take every step as well
        return NotImplemented
    if all(isinstance(size, int) for size in src.shape) and src.numel() <= _FEW:
        return NotImplemented
    end = sys.maxsize if index == -1 else index + 1
    return slice_scatter(input, src.unsqueeze(dim), dim, index, end)


def _after(src: torch.Tensor, dim: int, begin: Any, end: Any) -> Any:
    """The first place behind a slice."""
    numbers = isinstance(begin, int) and isinstance(end, int)
    if (isinstance(begin, int) and begin <= 0) or (numbers and begin <= end):
        return end
    return begin + src.shape[dim]  # a slice that would end before it begins is empty, and nothing may be there twice


def _is_size(end: Any, size: Any) -> bool:
    return isinstance(end, int) and isinstance(size, int) and end >= size


DECOMPOSITIONS = {aten.slice_scatter.default: slice_scatter, aten.select_scatter.default: select_scatter}
