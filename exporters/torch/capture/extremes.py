"""``min`` and ``max`` of sizes: torch (2.13) follows them of two whole numbers, but not of three or of fractions."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any
from unittest import mock

import torch

from entrepot.exporters.torch.upstream import builtins_in_captures

_SIZES = (torch.SymInt, torch.SymFloat)
_NUMBERS = (int, float, *_SIZES)


@contextlib.contextmanager
def extremes_followed() -> Iterator[None]:
    """Inside, a capture follows the least and the largest of any numbers of which one depends on a size."""
    plain: Callable[..., Any] = builtins_in_captures._tensor_min_max  # noqa: SLF001 - what a capture puts in place of min and max

    def extreme(*values: Any, real_callable: Any, tensor_callable: Any, **how: Any) -> Any:
        several = len(values) == 1 and not isinstance(values[0], torch.Tensor) and not how
        items = list(values[0]) if several else list(values)  # of an iterator, there is one only
        choose = torch.sym_max if tensor_callable is torch.maximum else torch.sym_min
        followed = None if how else extreme_of_sizes(choose, items)
        if followed is None and not how:
            followed = extreme_of_elements(items, largest=choose is torch.sym_max)
        if followed is None:
            return plain(
                *([items] if several else values), real_callable=real_callable, tensor_callable=tensor_callable, **how
            )
        return followed

    with mock.patch.object(builtins_in_captures, "_tensor_min_max", extreme):
        yield


def extreme_of_sizes(choose: Callable[[Any, Any], Any], items: Sequence[Any]) -> Any:
    """The extreme of numbers of which one depends on a size, others maybe on data; ``None`` for other things."""
    if not any(isinstance(item, _SIZES) for item in items):
        return None
    if all(isinstance(item, _NUMBERS) for item in items):
        return functools.reduce(choose, items)
    if all(isinstance(item, int | torch.SymInt) or _is_whole(item) for item in items):
        of_tensors = torch.maximum if choose is torch.sym_max else torch.minimum
        return functools.reduce(of_tensors, map(_as_tensor, items))
    return None


def extreme_of_elements(items: Sequence[Any], *, largest: bool) -> Any:
    """The extreme of tensors of one element, and numbers, as Python finds it; ``None`` for other things.

    Python would ask which of two is larger. It keeps the first that nothing exceeds, also where that is NaN.
    """
    tensors = [item for item in items if isinstance(item, torch.Tensor)]
    if not tensors or len(items) < 2 or {(each.dtype, each.shape) for each in tensors} != {_kind(tensors[0])}:
        return None
    numbers = float if tensors[0].is_floating_point() else int
    if any(size != 1 for size in tensors[0].shape) or not all(_goes_with(each, tensors[0], numbers) for each in items):
        return None
    like = tensors[0]
    found, *others = (each if isinstance(each, torch.Tensor) else torch.full_like(like, each) for each in items)
    for other in others:
        found = torch.where(other > found if largest else other < found, other, found)
    return found


def _kind(tensor: torch.Tensor) -> tuple[torch.dtype, torch.Size]:
    return tensor.dtype, tensor.shape


def _goes_with(item: Any, like: torch.Tensor, numbers: type) -> bool:
    """Whether it is a tensor, or a number that may take the place of one."""
    taken = (int, float, *_SIZES) if numbers is float else (int,)
    return isinstance(item, torch.Tensor) or (like.dim() == 0 and type(item) in taken)


def _is_whole(item: Any) -> bool:
    return isinstance(item, torch.Tensor) and item.dim() == 0 and item.dtype in (torch.int32, torch.int64)


def _as_tensor(item: Any) -> torch.Tensor:
    return item if isinstance(item, torch.Tensor) else torch.scalar_tensor(item, dtype=torch.int64)
