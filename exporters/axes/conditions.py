"""The sizes for which a condition that a capture puts on an axis holds."""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

_OPERATIONS: dict[type[ast.AST], Callable[..., Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Div: operator.truediv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.USub: operator.neg,
    ast.Not: operator.not_,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "min": min,
    "max": max,
    "Min": min,
    "Max": max,
    "Mod": operator.mod,
    "PythonMod": operator.mod,
    "FloorDiv": operator.floordiv,
    "CleanDiv": operator.floordiv,
    "CeilDiv": lambda a, b: -(-a // b),
    "IntTrueDiv": operator.truediv,
    "IntInfinity": lambda: math.inf,
    "Eq": operator.eq,
    "Ne": operator.ne,
}
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
    meaning = _MEANINGS.get(type(node))
    if meaning is None:
        raise ValueError(ast.dump(node))
    return meaning(node, size)


def _number(node: Any, _size: int) -> Any:
    return node.value + 0  # adding raises an error unless it is a number


def _name(node: Any, size: int) -> int:
    if node.id != "size":
        raise ValueError(node.id)
    return size


def _compared(node: Any, size: int) -> bool:
    terms = [_value(term, size) for term in (node.left, *node.comparators)]
    pairs = zip(node.ops, terms, terms[1:], strict=False)
    return all(_OPERATIONS[type(operation)](first, second) for operation, first, second in pairs)


def _joined(node: Any, size: int) -> bool:
    join = all if isinstance(node.op, ast.And) else any
    return join(_value(value, size) for value in node.values)


def _called(node: Any, size: int) -> Any:
    if not isinstance(node.func, ast.Name) or node.func.id not in _FUNCTIONS:
        raise ValueError(ast.dump(node.func))
    return _FUNCTIONS[node.func.id](*(_value(argument, size) for argument in node.args))


_MEANINGS: dict[type[ast.AST], Callable[[Any, int], Any]] = {
    ast.Constant: _number,
    ast.Name: _name,
    ast.BinOp: lambda node, size: _OPERATIONS[type(node.op)](_value(node.left, size), _value(node.right, size)),
    ast.UnaryOp: lambda node, size: _OPERATIONS[type(node.op)](_value(node.operand, size)),
    ast.BoolOp: _joined,
    ast.Compare: _compared,
    ast.Call: _called,
}
