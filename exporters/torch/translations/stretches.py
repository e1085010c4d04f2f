"""Stretches that a graph finds: ``image[top:bottom, left:right] = patch`` with bounds that depend on data.

torch (2.13) asks for their numbers, or whether the patch has their size. Here every place is written: what lies outside
of the stretch keeps its value.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from entrepot.exporters.torch.translations.unknown import is_unknown


def finds_stretch(items: Sequence[Any]) -> bool:
    """Whether an index has slices with such bounds, and nothing beside them but numbers and other slices."""
    plain = all(isinstance(item, int | torch.SymInt | slice | type(...)) for item in items)
    return plain and any(map(_is_open, items)) and not any(isinstance(item, bool) for item in items)


def set_stretch(tensor: torch.Tensor, items: Sequence[Any], value: Any) -> None:
    """``tensor[items] = value``."""
    left: list[Any] = []
    bounds: dict[int, slice] = {}
    axis, spare = 0, tensor.dim() - sum(item is not ... for item in items)
    for item in items:
        if is_open := _is_open(item):
            bounds[axis] = item
        left.append(slice(None) if is_open else item)
        axis += spare if item is ... else isinstance(item, slice)
    part = tensor[tuple(left)]
    inside: Any = True
    if isinstance(value, torch.Tensor):
        more = max(value.dim() - part.dim(), 0)  # axes of one element, as torch takes them
        value = value.to(part.dtype).reshape(value.shape[more:]) if more else value.to(part.dtype)
    for at, stretch in bounds.items():
        behind = part.dim() - at
        places = torch.arange(part.shape[at], device=part.device)
        start, end = (
            _place(bound, part.shape[at], usual) for bound, usual in ((stretch.start, 0), (stretch.stop, None))
        )
        inside = inside & ((places >= start) & (places < end)).reshape(-1, *[1] * (behind - 1))
        if isinstance(value, torch.Tensor) and value.dim() >= behind:
            value = _spread(value, places - start, -behind)
    part.copy_(torch.where(inside, value, part))


def _is_open(item: Any) -> bool:
    return isinstance(item, slice) and item.step in (None, 1) and (is_unknown(item.start) or is_unknown(item.stop))


def _place(bound: Any, size: Any, usual: int | None) -> Any:
    """From the front of an axis; one beyond its ends has every place on one side."""
    if bound is None:
        return size if usual is None else usual
    number = bound if isinstance(bound, torch.Tensor) else torch.scalar_tensor(bound, dtype=torch.int64)
    return torch.where(number < 0, number + size, number).clamp(min=0)


def _spread(value: torch.Tensor, places: torch.Tensor, axis: int) -> torch.Tensor:
    """A value with an element for each place of an axis; a single one is for all. What is read outside is dropped."""
    row = list(value.shape)
    row[axis] = 1
    filled = torch.cat([value, value.new_zeros(row)], axis)  # an empty stretch has an empty value
    return filled.index_select(axis, places.clamp(max=value.shape[axis] - 1).clamp(min=0))
