"""Arithmetic over names of sizes, in Python's notation: worked out node by node, never handed to ``eval``."""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping
from typing import Any

_OPERATIONS: dict[type[ast.AST], Callable[..., Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Div: operator.truediv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
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
    "abs": abs,
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
    "FloatTrueDiv": operator.truediv,
    "FloatPow": operator.pow,
    "PowByNatural": operator.pow,
    "ToFloat": float,
    "TruncToInt": math.trunc,
    "FloorToInt": math.floor,
    "CeilToInt": math.ceil,
    "RoundToInt": round,
    "log": math.log,
    "sqrt": math.sqrt,
    "OpaqueUnaryFn_sqrt": math.sqrt,
    "IntInfinity": lambda: math.inf,
    "Eq": operator.eq,
    "Ne": operator.ne,
}


def value_of(node: ast.AST, sizes: Mapping[str, Any]) -> Any:
    """The value of a term, a comparison, or several joined.

    Args:
        node: Of a tree that ``ast.parse`` made.
        sizes: By name; numbers, or whatever else knows Python's operators.

    Raises:
        ValueError: It contains something that is not arithmetic.
        KeyError: A name is not among ``sizes``.
        ArithmeticError: It divides by zero.
    """
    meaning = _MEANINGS.get(type(node))
    if meaning is None:
        raise ValueError(ast.dump(node))
    return meaning(node, sizes)


def is_known(node: ast.AST) -> bool:
    """Whether a part of a tree has a meaning here."""
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Name) and node.func.id in _FUNCTIONS and not node.keywords
    return type(node) in _MEANINGS or type(node) in _OPERATIONS or isinstance(node, ast.Load | ast.And | ast.Or)


def _number(node: Any, _sizes: Mapping[str, Any]) -> Any:
    return node.value + 0  # adding raises an error unless it is a number


def _compared(node: Any, sizes: Mapping[str, Any]) -> bool:
    terms = [value_of(term, sizes) for term in (node.left, *node.comparators)]
    pairs = zip(node.ops, terms, terms[1:], strict=False)
    return all(_OPERATIONS[type(operation)](first, second) for operation, first, second in pairs)


def _joined(node: Any, sizes: Mapping[str, Any]) -> bool:
    join = all if isinstance(node.op, ast.And) else any
    return join(value_of(value, sizes) for value in node.values)


def _called(node: Any, sizes: Mapping[str, Any]) -> Any:
    if not isinstance(node.func, ast.Name) or node.func.id not in _FUNCTIONS:
        raise ValueError(ast.dump(node.func))
    return _FUNCTIONS[node.func.id](*(value_of(argument, sizes) for argument in node.args))


_MEANINGS: dict[type[ast.AST], Callable[[Any, Mapping[str, Any]], Any]] = {
    ast.Constant: _number,
    ast.Name: lambda node, sizes: sizes[node.id],
    ast.BinOp: lambda node, sizes: _OPERATIONS[type(node.op)](value_of(node.left, sizes), value_of(node.right, sizes)),
    ast.UnaryOp: lambda node, sizes: _OPERATIONS[type(node.op)](value_of(node.operand, sizes)),
    ast.BoolOp: _joined,
    ast.Compare: _compared,
    ast.Call: _called,
}
