"""Formulas of sizes, in Python's notation or as sympy prints them: their value, and the ONNX nodes that compute it."""

from __future__ import annotations

import ast
import functools
import math
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

_OPERATORS: dict[type[ast.AST], Callable[..., Any]] = {
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
    ast.Invert: operator.not_,
    ast.Not: operator.not_,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "Min": min,
    "Max": max,
    "Abs": abs,
    "Mod": operator.mod,
    "PythonMod": operator.mod,
    "FloorDiv": operator.floordiv,
    "CleanDiv": operator.floordiv,
    "CeilDiv": lambda a, b: -(-a // b),
    "IntTrueDiv": operator.truediv,
    "FloatTrueDiv": operator.truediv,
    "ToFloat": float,
    "TruncToInt": math.trunc,
    "FloorToInt": math.floor,
    "CeilToInt": math.ceil,
    "RoundToInt": round,
    "Eq": operator.eq,
    "Ne": operator.ne,
    "log": math.log,
    "sqrt": math.sqrt,
    "OpaqueUnaryFn_sqrt": math.sqrt,
}


@dataclass(frozen=True)
class Expression:
    """A formula.

    Args:
        text: ``Eq(Mod(height, 4), 0)``, ``height // 2 + 1``.

    Raises:
        ValueError: It contains something that is not known here.
    """

    text: str

    def __post_init__(self) -> None:
        """Refuse what could not be evaluated later."""
        for node in ast.walk(self.tree):
            _check(node)

    def __str__(self) -> str:
        return self.text

    @functools.cached_property
    def tree(self) -> ast.expr:
        """Its syntax."""
        try:
            return ast.parse(self.text.strip(), mode="eval").body
        except SyntaxError as error:
            raise ValueError(self.text) from error

    @functools.cached_property
    def names(self) -> frozenset[str]:
        """The symbols in it."""
        functions = {id(node.func) for node in ast.walk(self.tree) if isinstance(node, ast.Call)}
        names = (node for node in ast.walk(self.tree) if isinstance(node, ast.Name) and id(node) not in functions)
        return frozenset(node.id for node in names)

    def __call__(self, sizes: Mapping[str, int]) -> Any:
        """Its value; ``None`` where there is none, as for a division by zero."""
        try:
            return _value(self.tree, sizes)
        except (ArithmeticError, ValueError):
            return None

    def specialised(self) -> tuple[Expression, float] | None:
        """The formula and the number that it was equal to: ``height // 2`` and 5 of ``Eq(height // 2, 5)``."""
        match self.tree:
            case ast.Call(ast.Name("Eq"), [left, ast.Constant(value=int() | float() as number)]):
                return Expression(ast.unparse(left)), number
            case ast.Compare(left, [ast.Eq()], [ast.Constant(value=int() | float() as number)]):
                return Expression(ast.unparse(left)), number
        return None


def _check(node: ast.AST) -> None:
    match node:
        case ast.Call(ast.Name(name), _, []) if name in _FUNCTIONS:
            return
        case ast.Constant(value=int() | float() | bool()):
            return
        case (
            ast.BinOp() | ast.UnaryOp() | ast.BoolOp() | ast.Compare() | ast.Name() | ast.Load() | ast.And() | ast.Or()
        ):
            return
        case _ if type(node) in _OPERATORS:
            return
    raise ValueError(ast.dump(node))


def _value(node: ast.AST, sizes: Mapping[str, int]) -> Any:
    match node:
        case ast.Constant(value=number):
            return number
        case ast.Name(id=name):
            return sizes[name]
        case ast.BinOp(left, operation, right):
            return _OPERATORS[type(operation)](_value(left, sizes), _value(right, sizes))
        case ast.UnaryOp(operation, operand):
            return _OPERATORS[type(operation)](_value(operand, sizes))
        case ast.BoolOp(operation, values):
            return (all if isinstance(operation, ast.And) else any)(_value(each, sizes) for each in values)
        case ast.Compare(left, operations, rights):
            terms = [_value(term, sizes) for term in (left, *rights)]
            pairs = zip(operations, terms, terms[1:], strict=False)
            return all(_OPERATORS[type(operation)](first, second) for operation, first, second in pairs)
        case ast.Call(ast.Name(name), arguments):
            return _FUNCTIONS[name](*(_value(argument, sizes) for argument in arguments))
    raise ValueError(ast.dump(node))
