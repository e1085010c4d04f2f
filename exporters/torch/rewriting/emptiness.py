"""A branch that keeps code from tensors without elements: its arms differ in the form of what has none.

``if n > 0: boxes = boxes.reshape(n, -1, 4)`` leaves a tensor of another rank where there are no boxes. A graph has no
such thing, and needs none: what it makes of nothing has no elements either.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import sympy  # type: ignore[import-untyped]
import torch

from entrepot.exporters.torch.rewriting.environment import expression, none_where, samples, value_of
from entrepot.exporters.torch.rewriting.trees import Undefined, UnlikeError

_SIZES = range(5)
_MOST_SYMBOLS = 3


class FormError(UnlikeError):
    """The arms of a branch differ only in the form of what has no elements.

    Attributes:
        arm: The number of the arm that does as the other does, but for that form, where the other is taken.
    """

    def __init__(self, message: str, arm: int) -> None:
        super().__init__(message)
        self.arm = arm


def sufficient_arm(condition: Any, pairs: Sequence[tuple[Any, Any]], env: Any = None) -> int | None:
    """The number of an arm that may be taken always, or ``None``.

    Args:
        condition: On sizes that depend on data; the first arm is taken where it holds.
        pairs: What the two arms leave.
        env: The shape environment, if there is one, which may know more of these sizes.
    """
    for arm, taken in zip((1, 0), (condition, sympy.Not(condition)), strict=True):
        if _are_alike(pairs, [{**none_where(env, sizes), **sizes} for sizes in _where(taken)]):
            return arm
    return None


def _where(condition: Any) -> Iterator[dict[Any, int]]:
    """Sizes at which a condition holds."""
    symbols = sorted(condition.free_symbols, key=str)
    if len(symbols) > _MOST_SYMBOLS:
        return
    small = (dict(zip(symbols, values, strict=True)) for values in itertools.product(_SIZES, repeat=len(symbols)))
    yield from (sizes for sizes in itertools.chain(small, samples(symbols, {})) if value_of(condition, sizes))


def _are_alike(pairs: Sequence[tuple[Any, Any]], sizes: Sequence[Mapping[Any, int]]) -> bool:
    """Whether all that the arms leave is the same at some sizes; nothing is at no sizes."""
    return bool(sizes) and all(_is_alike(*pair, each) for pair in pairs for each in sizes)


def _is_alike(one: Any, other: Any, sizes: Mapping[Any, int]) -> bool:
    if isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor):
        alike = one is other or (_count(one.shape, sizes) == 0 and _count(other.shape, sizes) == 0)
        return alike and one.dtype == other.dtype
    if isinstance(one, Undefined) or isinstance(other, Undefined):
        return isinstance(one, Undefined) and isinstance(other, Undefined)
    if isinstance(one, torch.Tensor) or isinstance(other, torch.Tensor):
        return False
    return bool(_at(one, sizes) == _at(other, sizes))


def _count(shape: Iterable[Any], sizes: Mapping[Any, int]) -> Any:
    """The number of elements, which sizes that are not known have no say in where another is 0."""
    return sympy.Mul(*(_at(size, sizes) for size in shape))


def _at(number: Any, sizes: Mapping[Any, int]) -> Any:
    return sympy.sympify(expression(number)).xreplace({symbol: sympy.Integer(size) for symbol, size in sizes.items()})
