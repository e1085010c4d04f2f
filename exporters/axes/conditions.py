"""The sizes for which a condition that a capture puts on an axis holds."""

from __future__ import annotations

import ast
import math
from collections.abc import Sequence
from typing import Any

from entrepot.ir.typing.arithmetic import value_of

_FAR = 2**31


def holding_range(condition: str, present: int) -> tuple[int, float] | None:
    """The smallest and the largest size around ``present`` between which a condition holds throughout.

    Args:
        condition: In Python's notation, with functions as sympy prints them, of the one name ``size``: ``2 <= size``.
        present: A size for which it holds.

    Returns:
        The sizes, infinity where there is no largest one; ``None`` when the condition is not understood.
    """
    try:
        tree = ast.parse(condition.strip(), mode="eval").body
        if not _value(tree, present):
            return None
        return _edge(tree, [*range(present - 1, 0, -1)], present), _largest(tree, present)
    except (ValueError, SyntaxError, ArithmeticError, TypeError, KeyError):
        return None


def _largest(tree: ast.expr, present: int) -> float:
    """Try the sizes next to the present one, next to each number in the condition, and ever larger ones."""
    numbers = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, int)]
    near = {number + step for number in numbers for step in (-1, 0, 1, 2)} | set(range(present + 1, present + 130))
    far = {present * 2**power for power in range(32)}
    sizes = sorted(size for size in near | far if present < size <= _FAR)
    edge = _edge(tree, sizes, present)
    return math.inf if edge == sizes[-1] else edge


def _edge(tree: ast.expr, sizes: Sequence[int], last: int) -> int:
    """The last size before the condition fails, found between two tried ones by halving."""
    for size in sizes:
        if not _value(tree, size):
            return _halved(tree, last, size)
        last = size
    return last


def _halved(tree: ast.expr, good: int, bad: int) -> int:
    while abs(good - bad) > 1:
        middle = (good + bad) // 2
        good, bad = (middle, bad) if _value(tree, middle) else (good, middle)
    return good


def _value(node: ast.AST, size: int) -> Any:
    return value_of(node, {"size": size})
