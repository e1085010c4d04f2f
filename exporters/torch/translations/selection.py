"""Elements chosen by their rank or count along an axis, which torch.onnx (2.13) does not translate."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from typing import Any

import torch

from entrepot.exporters.torch.translations.triangles import triu_indices

_Pair = tuple[torch.Tensor, torch.Tensor]


def kthvalue(input: torch.Tensor, k: int, dim: int = -1, keepdim: bool = False) -> _Pair:
    """The ``k``-th smallest along an axis, and where it is."""
    if input.dim() == 0:
        return input, torch.zeros((), dtype=torch.int64)
    values, indices = input.sort(dim=dim, stable=True)
    return _picked(values, indices, k - 1, dim, keepdim)


def median(input: torch.Tensor, dim: int | None = None, keepdim: bool = False) -> Any:
    """The middle element, the lower of two; NaN where there is one."""
    if dim is None:
        return median(input.reshape(-1), 0)[0]
    if input.dim() == 0:
        return input, torch.zeros((), dtype=torch.int64)
    values, indices = input.sort(dim=dim, stable=True)
    value, index = _picked(values, indices, (input.shape[dim] - 1) // 2, dim, keepdim)
    if not input.is_floating_point():
        return value, index
    unknown = input.isnan()
    first = unknown.to(torch.int64).argmax(dim, keepdim=keepdim)
    any_unknown = unknown.any(dim, keepdim=keepdim)
    return value.masked_fill(any_unknown, torch.nan), torch.where(any_unknown, first, index)


def nanmedian(input: torch.Tensor, dim: int | None = None, keepdim: bool = False) -> Any:
    """The middle element of those that are not NaN; NaN where there is none."""
    if not input.is_floating_point():
        return median(input, dim, keepdim)
    if dim is None:
        return nanmedian(input.reshape(-1), 0)[0]
    unknown = input.isnan()
    values, indices = input.masked_fill(unknown, torch.inf).sort(dim=dim, stable=True)
    known = (~unknown).sum(dim, keepdim=True)
    middle = ((known - 1) // 2).clamp(min=0)
    value = values.gather(dim, middle).masked_fill(known == 0, torch.nan)
    index = indices.gather(dim, middle)
    return (value, index) if keepdim else (value.squeeze(dim), index.squeeze(dim))


def _of_numbers(function: Callable[..., _Pair]) -> Callable[..., _Pair]:
    """Truth values as numbers, since no runtime orders them; one element by itself."""

    @functools.wraps(function)
    def called(input: torch.Tensor, *args: Any, **kwargs: Any) -> _Pair:
        if input.dim() == 0:
            return input.clone(), torch.zeros((), dtype=torch.int64)
        if input.dtype != torch.bool:
            return function(input, *args, **kwargs)
        values, indices = function(input.to(torch.uint8), *args, **kwargs)
        return values.to(torch.bool), indices

    return called


@_of_numbers
def mode(input: torch.Tensor, dim: int = -1, keepdim: bool = False) -> _Pair:
    """The most frequent value along an axis (the smallest, if there are several), and its last place."""
    x = input.movedim(dim, -1)
    counts = (x.unsqueeze(-1) == x.unsqueeze(-2)).sum(-1)
    frequent = counts == counts.amax(-1, keepdim=True)
    value = x.masked_fill(~frequent, _beyond(x.dtype, largest=True)).amin(-1, keepdim=True)
    index = _last_place(x == value).unsqueeze(-1)
    value, index = value.movedim(-1, dim), index.movedim(-1, dim)
    return (value, index) if keepdim else (value.squeeze(dim), index.squeeze(dim))


@_of_numbers
def cummax(input: torch.Tensor, dim: int) -> _Pair:
    """The largest so far along an axis, and its last place so far."""
    return _extreme(input, dim, largest=True)


@_of_numbers
def cummin(input: torch.Tensor, dim: int) -> _Pair:
    """The smallest so far along an axis, and its last place so far."""
    return _extreme(input, dim, largest=False)


def logcumsumexp(input: torch.Tensor, dim: int) -> torch.Tensor:
    """log(cumsum(exp(x))), each of the elements so far."""
    if input.dim() == 0:
        return input
    x = input.movedim(dim, -1)
    table = x.unsqueeze(-2).masked_fill(~_so_far(x.shape[-1]), -torch.inf)
    return table.logsumexp(-1).movedim(-1, dim)


def _extreme(input: torch.Tensor, dim: int, *, largest: bool) -> _Pair:
    x = input.movedim(dim, -1)
    so_far = _so_far(x.shape[-1])
    table = x.unsqueeze(-2).masked_fill(~so_far, _beyond(x.dtype, largest=not largest))
    values = table.amax(-1) if largest else table.amin(-1)
    place = _last_place((x.unsqueeze(-2) == values.unsqueeze(-1)) & so_far)
    return values.movedim(-1, dim), place.movedim(-1, dim)


def _beyond(kind: torch.dtype, *, largest: bool) -> float:
    """The value that no element of this type exceeds."""
    if kind.is_floating_point:
        return torch.inf if largest else -torch.inf
    return torch.iinfo(kind).max if largest else torch.iinfo(kind).min


def _so_far(size: int) -> torch.Tensor:
    """[size, size]: which elements (columns) have been met at each place (rows)."""
    place = torch.arange(size)
    return place <= place.unsqueeze(-1)


def _last_place(mask: torch.Tensor) -> torch.Tensor:
    """The last index under a mask along the last axis."""
    return (mask * torch.arange(mask.shape[-1])).amax(-1)


def _picked(values: torch.Tensor, indices: torch.Tensor, place: int, dim: int, keepdim: bool) -> _Pair:
    value, index = values.select(dim, place), indices.select(dim, place)
    return (value.unsqueeze(dim), index.unsqueeze(dim)) if keepdim else (value, index)


def _named(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same with ``values`` and ``indices`` by name, as torch returns them."""
    kind = getattr(torch.return_types, function.__name__)

    @functools.wraps(function)
    def named(*args: Any, **kwargs: Any) -> Any:
        result = function(*args, **kwargs)
        return kind(result) if isinstance(result, tuple) else result

    return named


def take(input: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    """Elements by their places in a row; torch makes a size of a single place."""
    return input.flatten()[index.flatten()].reshape(index.shape)


def take_along_dim(input: torch.Tensor, indices: torch.Tensor, dim: int | None = None) -> torch.Tensor:
    """With other axes of one element repeated; torch asks of every size whether it is 1."""
    if dim is None:
        return input.flatten()[indices.flatten()]
    if input.dim() != indices.dim():
        return torch.take_along_dim(input, indices, dim)
    dim %= input.dim()
    sizes = [_wider(one, other) for one, other in zip(input.shape, indices.shape, strict=True)]
    along = [-1 if axis == dim else size for axis, size in enumerate(sizes)]
    return input.expand(along).gather(dim, indices.expand(along))


def _wider(one: Any, other: Any) -> Any:
    return other if isinstance(one, int) and one == 1 else one


def combinations(input: torch.Tensor, r: int = 2, with_replacement: bool = False) -> torch.Tensor:
    """By the indices of the elements; torch chooses them with a mask, whose result has any size."""
    size: Any = input.shape[0]
    if r == 2:
        first = 0 if with_replacement else 1
        return input[triu_indices(size, size, first, device=input.device).T]
    if isinstance(size, torch.SymInt) or r == 0:
        return torch.combinations(input, r, with_replacement)
    chosen = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    rows = list(chosen(range(size), r))
    return input[torch.tensor(rows, dtype=torch.int64, device=input.device).reshape(len(rows), r)]


REPLACEMENTS = {
    original: _named(replacement)
    for replacement in (kthvalue, median, nanmedian, mode, cummax, cummin)
    for original in (getattr(torch, replacement.__name__), getattr(torch.Tensor, replacement.__name__))
} | {
    torch.logcumsumexp: logcumsumexp,
    torch.Tensor.logcumsumexp: logcumsumexp,
    torch.take: take,
    torch.Tensor.take: take,
    torch.take_along_dim: take_along_dim,
    torch.Tensor.take_along_dim: take_along_dim,
    torch.combinations: combinations,
}
