"""Formulas of sizes, in Python's notation or as sympy prints them: their value, and the ONNX nodes that compute it."""

from __future__ import annotations

import ast
import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from entrepot.ir.typing.arithmetic import is_known, value_of


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
        if not all(map(is_known, ast.walk(self.tree))):
            raise ValueError(self.text)

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
            return value_of(self.tree, sizes)
        except (ArithmeticError, ValueError):
            return None

    def numbers(self) -> list[Expression]:
        """Of a comparison the difference of its sides, and a number that is 1 on one side of it and 0 on the other."""
        match self.tree:
            case ast.Call(ast.Name("Eq" | "Ne"), [left, right]) | ast.Compare(left, [ast.Eq() | ast.NotEq()], [right]):
                one, other = (f"({ast.unparse(side)})" for side in (left, right))
                differs = f"Min(1, Max({one} - {other}, {other} - {one}))"
            case ast.Compare(left, [ast.Gt() | ast.LtE()], [right]):
                one, other = (f"({ast.unparse(side)})" for side in (left, right))
                differs = f"Min(1, Max(0, {one} - {other}))"
            case ast.Compare(left, [ast.GtE() | ast.Lt()], [right]):
                one, other = (f"({ast.unparse(side)})" for side in (left, right))
                differs = f"Min(1, Max(0, {one} - {other} + 1))"
            case _:
                return []
        return [Expression(f"{one} - {other}"), Expression(differs)]

    def specialised(self) -> tuple[Expression, float] | None:
        """The formula and the number that it was equal to: ``height // 2`` and 5 of ``Eq(height // 2, 5)``."""
        match self.tree:
            case ast.Call(ast.Name("Eq"), [left, ast.Constant(value=int() | float() as number)]):
                return Expression(ast.unparse(left)), number
            case ast.Compare(left, [ast.Eq()], [ast.Constant(value=int() | float() as number)]):
                return Expression(ast.unparse(left)), number
        return None
