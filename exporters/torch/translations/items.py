"""Items where single numbers of a graph say: ``scores[row, :] = 0`` with a tensor ``row`` of no axes.

torch (2.13) asks such a tensor for its number, which a graph does not have; a tensor of one such number it asks for
nothing. The same goes for a truth: ``scores[valid] = 1`` with a tensor ``valid`` of no axes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from entrepot.exporters.torch.translations.stretches import finds_stretch, set_stretch
from entrepot.exporters.torch.translations.unknown import is_unknown

_PLAIN = (int, torch.SymInt, slice, type(None), type(...))


def get_item(self: torch.Tensor, index: Any) -> torch.Tensor:
    """``self[index]``."""
    if _is_truth(index):
        return self.unsqueeze(0)[index.reshape(1)]
    part, rest = numbers_first(self, index)
    return part[rest]


def set_item(self: torch.Tensor, index: Any, value: Any) -> None:
    """``self[index] = value``."""
    if _is_truth(index):
        self.unsqueeze(0)[index.reshape(1)] = value
        return
    part, rest = numbers_first(self, index)
    if part is not self:
        part[rest] = value
        return
    if finds_stretch(index if isinstance(index, tuple) else (index,)):
        set_stretch(self, index if isinstance(index, tuple) else (index,), value)
        return
    items = list(index) if isinstance(index, tuple) else [index]
    places = [at for at, item in enumerate(items) if is_unknown(item)]
    if not places or not all(isinstance(item, _PLAIN) for at, item in enumerate(items) if at not in places):
        self[index] = value
        return
    numbers = [_tensor(items[at]).reshape(1) for at in places]
    part = self[tuple(slice(None) if at in places else item for at, item in enumerate(items))]
    axes = _axes(items, places, self.dim())
    if isinstance(value, torch.Tensor):
        value = _fitting(value.to(self.dtype), axes, part.dim())
    chosen: list[Any] = [slice(None)] * (axes[-1] + 1)
    for axis, number in zip(axes, numbers, strict=True):
        chosen[axis] = number
    part[tuple(chosen)] = value


def numbers_first(tensor: torch.Tensor, index: Any) -> tuple[torch.Tensor, Any]:
    """What is left to look up once numbers beside tensors have been: ``x[row, :, places]`` is ``x[row][:, places]``.

    torch's capture (2.13) makes tensors of such numbers, and tensors that a slice keeps apart order the axes otherwise.
    """
    items = index if isinstance(index, tuple) else ()
    others = [item for item in items if isinstance(item, bool) or not isinstance(item, _PLAIN)]
    tensors = [item for item in others if isinstance(item, torch.Tensor)]
    beside = len(tensors) == len(others) and any(item.dim() for item in tensors)
    if not beside or not any(isinstance(item, torch.SymInt) for item in items):
        return tensor, index
    left: list[Any] = []
    axis, spare = 0, tensor.dim() - sum(map(_axes_of, items))
    for item in items:
        if isinstance(item, int | torch.SymInt):
            tensor = tensor.select(axis, item)
        else:
            left.append(item)
            axis += spare if item is ... else _axes_of(item)
    return tensor, tuple(left)


def _axes_of(item: Any) -> int:
    """How many axes it looks something up in."""
    if item is None or item is ...:
        return 0
    return item.dim() if isinstance(item, torch.Tensor) and item.dtype in (torch.bool, torch.uint8) else 1


def _is_truth(index: Any) -> bool:
    return isinstance(index, torch.Tensor) and index.dim() == 0 and index.dtype is torch.bool


def _tensor(number: Any) -> torch.Tensor:
    return number if isinstance(number, torch.Tensor) else torch.scalar_tensor(number, dtype=torch.int64)


def _axes(items: Sequence[Any], places: Sequence[int], rank: int) -> list[int]:
    """Where the axes lie, once all other items are applied."""
    given = sum(item is not None and item is not ... for item in items)
    axes, axis = [], 0
    for at, item in enumerate(items):
        if at in places:
            axes.append(axis)
        axis += rank - given if item is ... else at in places or not isinstance(item, int | torch.SymInt)
    return axes


def _fitting(value: torch.Tensor, axes: Sequence[int], rank: int) -> torch.Tensor:
    """A value for all axes but these, with one of one element for them; it comes first where they are apart."""
    left = rank - len(axes)
    if (more := value.dim() - left) > 0:  # of one element each, as torch takes them
        value = value.reshape(value.shape[more:])
    first = axes[0] if axes[-1] - axes[0] < len(axes) else 0
    behind = left - first
    return value.unsqueeze(-behind - 1) if value.dim() >= behind else value


def unravel_index(indices: torch.Tensor, shape: Any) -> tuple[torch.Tensor, ...]:
    """The place on each axis; torch makes a tensor of the sizes, which fixes them."""
    sizes = shape if isinstance(shape, Sequence) else [shape]
    places = []
    for size in reversed(sizes):
        places.append(indices % size)
        indices = indices // size
    return tuple(reversed(places))


REPLACEMENTS: dict[Any, Any] = {
    torch.Tensor.__getitem__: get_item,
    torch.Tensor.__setitem__: set_item,
    torch.unravel_index: unravel_index,
}
