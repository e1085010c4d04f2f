"""A sequence of numbers as one tensor: ``torch.tensor(list(range(n)))`` where ``n`` varies."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import torch

from entrepot.exporters.torch.rewriting.combining import Choices, Product
from entrepot.exporters.torch.rewriting.links import whole
from entrepot.exporters.torch.rewriting.lists import Columns, Grown, Piled
from entrepot.exporters.torch.rewriting.sequences import Backwards, Chained, Elements, Numbers, Part, Span, Unfinished
from entrepot.exporters.torch.rewriting.shapes import as_tensor
from entrepot.exporters.torch.rewriting.trees import NUMBERS
from entrepot.exporters.torch.upstream import numpy_in_torch


def one_tensor(value: Any) -> torch.Tensor | None:
    """The numbers of a sequence whose length varies, or of a list that data decide; ``None`` of anything else.

    Whole numbers are int64, others of the default type, as in ``torch.tensor``; an array is no sequence of numbers.
    """
    value = value if isinstance(value, numpy_in_torch.ndarray) else whole(value)
    return _listed(value) if isinstance(value, list | tuple) else _of_sequence(value)


def _listed(value: Sequence[Any]) -> torch.Tensor | None:
    numbers = unknown(value) if all(isinstance(each, NUMBERS) for each in value) else None
    return None if numbers is None else _of_default_type(numbers)


def _of_sequence(value: Any) -> torch.Tensor | None:
    if isinstance(value, Span):
        return torch.arange(value.length) * value.step + value.start
    if isinstance(value, Elements):
        return value.tensor
    if isinstance(value, Numbers | Grown):
        return _of_default_type(value.tensor if isinstance(value, Numbers) else value.stacked())
    if isinstance(value, Choices | Columns | Product):
        return _table(value)
    if isinstance(value, Chained):
        pieces = [one_tensor(each) if isinstance(each, Unfinished) else torch.tensor(each) for each in value.pieces]
        return None if any(each is None for each in pieces) else torch.cat(pieces)  # type: ignore[arg-type]
    inside = one_tensor(value.whole) if isinstance(value, Backwards | Part) else None
    return None if inside is None else _arranged(inside, value)


def unknown(numbers: Sequence[Any]) -> torch.Tensor | None:
    """Numbers and tensors of one as one tensor, if nobody knows some of them before the graph runs."""
    if not all(isinstance(each, (torch.Tensor, *NUMBERS)) for each in numbers) or all(map(_is_known, numbers)):
        return None
    return torch.stack([as_tensor(each).reshape(()) for each in numbers])


def _is_known(number: Any) -> bool:
    sizes = torch.SymInt | torch.SymFloat | torch.SymBool
    return bool(number.node.has_hint()) if isinstance(number, sizes) else not isinstance(number, torch.Tensor)


def in_index(index: Any) -> Any:
    """What is between the brackets in ``scores[range(n), kind]``: a sequence whose length varies as one tensor."""
    if type(index) is tuple:
        return tuple(map(in_index, index))
    numbers = one_tensor(index) if isinstance(index, Unfinished | Piled) else None
    return index if numbers is None else numbers


def in_bounds(target: Any, bounds: Any) -> Any:
    """What is between the brackets in ``items[:count]``: a list takes a tensor of one whole number for that number."""
    if isinstance(target, torch.Tensor) or not isinstance(bounds, slice):
        return bounds
    return slice(*(_whole_number(end) for end in (bounds.start, bounds.stop, bounds.step)))


def _whole_number(value: Any) -> Any:
    """What ``operator.index`` finds, which is asked of the sample nowhere."""
    if not isinstance(value, torch.Tensor) or value.numel() != 1 or value.is_floating_point() or value.is_complex():
        return value
    return (value.to(torch.int64) if value.dtype is torch.bool else value).item()


def _table(value: Choices | Columns | Product) -> torch.Tensor | None:
    """Rows of numbers."""
    if isinstance(value, Product):
        found = [one_tensor(each) if isinstance(each, Unfinished) else torch.tensor(each) for each in value.wholes]
        columns = [column for column in found if column is not None and column.dim() == 1]
        return _every(columns) if len(columns) == len(found) else None
    if isinstance(value, Choices):
        return _side_by_side(value.columns().columns) if isinstance(value.whole, Span) else None
    return _side_by_side(value.columns)


def _every(columns: Sequence[torch.Tensor]) -> torch.Tensor:
    """Each number with each of the next column, and so on."""
    count, sizes = len(columns), [column.shape[0] for column in columns]
    axes = [column.reshape([-1 if at == axis else 1 for at in range(count)]) for axis, column in enumerate(columns)]
    return _side_by_side([axis.expand(sizes).reshape(-1) for axis in axes])


def _side_by_side(columns: Sequence[torch.Tensor]) -> torch.Tensor:
    dtype = functools.reduce(torch.promote_types, [column.dtype for column in columns])
    return _of_default_type(torch.stack([column.to(dtype) for column in columns], 1))


def _arranged(inside: torch.Tensor, value: Backwards | Part) -> torch.Tensor:
    if isinstance(value, Backwards):
        return inside.flip(0)
    spaced = inside[value.start :: value.step] if value.step > 1 else inside
    return spaced.narrow(0, 0 if value.step > 1 else value.start, value.length)


def _of_default_type(tensor: torch.Tensor) -> torch.Tensor:
    if tensor.dtype.is_floating_point:
        return tensor.to(torch.get_default_dtype())
    return tensor if tensor.dtype is torch.bool else tensor.to(torch.int64)
