"""``x[i]`` and ``x[i] = y`` of lists, arrays and tensors, with places that vary."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from entrepot.exporters.torch.capture.numpy_arrays import element
from entrepot.exporters.torch.rewriting.chosen_part import chosen_part
from entrepot.exporters.torch.rewriting.combining import are_alike, exchange, one_of
from entrepot.exporters.torch.rewriting.environment import expression, hint
from entrepot.exporters.torch.rewriting.links import not_yet, piled
from entrepot.exporters.torch.rewriting.lists import Grown, Stacked, Tracked, Trailing
from entrepot.exporters.torch.rewriting.masked import beside_mask
from entrepot.exporters.torch.rewriting.one_tensor import in_bounds, in_index
from entrepot.exporters.torch.rewriting.part import inside
from entrepot.exporters.torch.rewriting.shapes import as_tensor
from entrepot.exporters.torch.translations.items import numbers_first
from entrepot.exporters.torch.translations.stretches import finds_stretch, set_stretch
from entrepot.exporters.torch.upstream import numpy_in_torch


def item(target: Any, index: Any) -> Any:
    """``target[rows, i]`` and ``items[i]``; beside tensors, torch would take a size that varies for a constant."""
    if (part := chosen_part(target, index)) is not None:
        return part
    if isinstance(target, Tracked) and not len(target) and inside():
        raise not_yet(target)
    if isinstance(target, list | tuple | deque) and isinstance(index, torch.SymInt):
        return one_of(target, index)
    if isinstance(target, np.ndarray):
        return element(target, index)
    if isinstance(target, Trailing) and not (isinstance(index, int) and index == target.place):
        raise piled(target)
    if not isinstance(target, torch.Tensor):
        return target[index]
    target, index = numbers_first(*beside_mask(target, in_index(index)))
    return target[_of_sizes(index)]


def cut(target: Any, bounds: Any) -> Any:
    """``target[:n]``, also of NumPy's arrays, which would take a size that varies for a constant."""
    if isinstance(target, np.ndarray):
        return element(target, bounds)
    bounds = in_bounds(target, bounds)
    if isinstance(target, list | tuple) and _depends_on_data(bounds) and _is_one_table(target):
        target = Grown(Stacked(torch.stack([*target])))
    return target[bounds]


def _depends_on_data(bounds: Any) -> bool:
    """Whether nobody knows before the graph runs where a slice begins or ends."""
    ends = (bounds.start, bounds.stop) if isinstance(bounds, slice) else ()
    return any(isinstance(end, torch.SymInt) and hint(end) is None for end in ends)


def _is_one_table(items: Sequence[Any]) -> bool:
    """Whether a list holds tensors of one type and shape."""
    return all(isinstance(each, torch.Tensor) and each.dtype is items[0].dtype for each in items) and are_alike(items)


def _of_sizes(index: Any) -> Any:
    """A list of numbers of which some may vary, as a tensor."""
    if isinstance(index, list) and any(isinstance(part, torch.SymInt) for part in index):
        return torch.stack([as_tensor(part) for part in index])
    return index


def store(target: Any, index: Any, value: Any) -> None:
    """``target[index] = value``; torch would take a size that varies for a constant there."""
    if isinstance(target, numpy_in_torch.ndarray):
        target, value = target.tensor, value.tensor if isinstance(value, numpy_in_torch.ndarray) else value
    if isinstance(target, list | deque) and isinstance(index, torch.SymInt) and not expression(index).is_Integer:
        exchange(target, index, value)
        return
    parts = index if isinstance(index, tuple) else (index,)
    if isinstance(target, torch.Tensor) and finds_stretch(parts):
        set_stretch(target, parts, value)
        return
    plain = all(part is None or part is ... or isinstance(part, int | slice | torch.SymInt) for part in parts)
    if isinstance(target, torch.Tensor) and plain and any(isinstance(part, torch.SymInt) for part in parts):
        target[index].copy_(value if isinstance(value, torch.Tensor) else as_tensor(value))
    elif isinstance(target, torch.Tensor):
        target, index = numbers_first(*beside_mask(target, in_index(index)))
        target[_of_sizes(index)] = value
    else:
        target[index] = value
