"""Sizes that vary: the symbols that a function is traced with, and what is computed from them as values of a graph."""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import jax
import numpy as np
import onnx_ir as ir

from entrepot.exporters.arrays import Array
from entrepot.exporters.axes.groups import Axis, Group
from entrepot.exporters.building import Builder

Size: TypeAlias = "int | ir.Value"

_OPERATORS = {ast.Add: "Add", ast.Sub: "Sub", ast.Mult: "Mul"}


def symbolic_specs(
    arrays: Sequence[Array], groups: Sequence[Group], constraints: Sequence[str], known: Mapping[str, int]
) -> list[jax.ShapeDtypeStruct]:
    """What to trace with: the axes of groups bear their symbols, in steps where only some sizes are taken.

    Args:
        arrays: The sample.
        groups: The axes that vary.
        constraints: What JAX is told of the symbols.
        known: Those of groups whose size is one number in this trace.
    """
    texts = {axis: str(known.get(group.symbol, _text(group))) for group in groups for axis in group.axes}
    scope = jax.export.SymbolicScope(constraints)
    return [jax.ShapeDtypeStruct(_shape(array.shape, at, texts, scope), array.dtype) for at, array in enumerate(arrays)]


def _shape(shape: Sequence[int], at: int, texts: Mapping[Axis, str], scope: Any) -> tuple[Any, ...]:
    if not any((at, axis) in texts for axis in range(len(shape))):
        return tuple(shape)
    found = jax.export.symbolic_shape(
        ", ".join(texts.get((at, axis), str(size)) for axis, size in enumerate(shape)) + ",", scope=scope
    )
    return tuple(found)


def _text(group: Group) -> str:
    if group.formula is not None or group.step == 1:
        return group.symbol
    return f"{group.step}*{steps_of(group)} + {group.remainder}"


def steps_of(group: Group) -> str:
    """What the number of steps in a size is called."""
    return f"{group.symbol}_steps"


def symbol_values(build: Builder, inputs: Sequence[ir.Value], groups: Sequence[Group]) -> dict[str, ir.Value]:
    """The value of each symbol, taken from an input; in the outermost graph, where bodies can reach it."""
    values = {}
    for group in groups:
        if group.formula is not None:
            continue
        index, axis = min(group.axes)
        size = build.size(inputs[index], axis)
        if group.step == 1:
            values[group.symbol] = size
        else:
            values[steps_of(group)] = build.op("Div", build.op("Sub", size, group.remainder), group.step)
    return values


class Sizes:
    """Sizes in one graph.

    Args:
        build: Where nodes go.
        symbols: Values of symbols, from the outermost graph, or numbers.
    """

    def __init__(self, build: Builder, symbols: Mapping[str, Size]) -> None:
        self._build, self._symbols = build, symbols

    def of(self, dim: Any) -> Size:
        """A number, or an int64 scalar for an expression over symbols."""
        return int(dim) if is_known(dim) else self.of_text(str(dim))

    def of_text(self, text: str) -> Size:
        """The same, of an expression as JAX writes it."""
        return self._value(_parsed(text))

    def value(self, dim: Any) -> ir.Value:
        """The same, as a value in any case."""
        size = self.of(dim)
        return self._build.constant(np.array(size, np.int64)) if isinstance(size, int) else size

    def vector(self, dims: Sequence[Any]) -> ir.Value:
        """Sizes as ``int64[n]``."""
        if all(is_known(dim) for dim in dims):
            return self._build.constant(np.array([int(dim) for dim in dims], np.int64))
        parts = [
            self._build.constant(np.array([int(dim)], np.int64))
            if is_known(dim)
            else self._build.op("Unsqueeze", self.of(dim), [0])
            for dim in dims
        ]
        return parts[0] if len(parts) == 1 else self._build.op("Concat", *parts, axis=0)

    def _value(self, node: ast.expr) -> Size:
        match node:
            case ast.Constant(value=int(number)):
                return number
            case ast.Name(id=name):
                return self._symbols[name]
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return self.combined("Mul", self._value(operand), -1)
            case ast.BinOp(left=base, op=ast.Pow(), right=ast.Constant(value=int(power))):
                return functools.reduce(lambda x, y: self.combined("Mul", x, y), [self._value(base)] * power)
            case ast.BinOp(left=left, op=operator, right=right):
                return self.combined(_OPERATORS[type(operator)], self._value(left), self._value(right))
            case ast.Call(func=ast.Name(id=name), args=[left, right]):
                return self._called(name, self._value(left), self._value(right))
            case _:
                raise AssertionError(ast.dump(node))

    def _called(self, name: str, left: Size, right: Size) -> Size:
        if name in ("max", "min"):
            return self.combined(name.capitalize(), left, right)
        remainder = self.combined("Mod", left, right)  # as Python's, with the sign of the divisor
        if name == "mod":
            return remainder
        return self.combined("Div", self.combined("Sub", left, remainder), right)

    def combined(self, operator: str, left: Size, right: Size) -> Size:
        """Two sizes taken together by an operator of ONNX; a number if both are."""
        if isinstance(left, int) and isinstance(right, int):
            return _NUMBERS[operator](left, right)
        both = [
            self._build.constant(np.array(size, np.int64)) if isinstance(size, int) else size for size in (left, right)
        ]
        result: ir.Value = self._build.op(operator, *both)
        return result


_NUMBERS: dict[str, Callable[[int, int], int]] = {
    "Add": lambda x, y: x + y,
    "Sub": lambda x, y: x - y,
    "Mul": lambda x, y: x * y,
    "Max": max,
    "Min": min,
    "Mod": lambda x, y: x % y,
    "Div": lambda x, y: x // y,
}


def evaluated(text: str, sizes: Mapping[str, int]) -> int:
    """What an expression of JAX is for sizes of its symbols."""
    found = Sizes(Builder("numbers"), sizes).of_text(text)
    assert isinstance(found, int)
    return found


def names_in(text: str) -> set[str]:
    """The symbols of an expression of JAX."""
    called = {node.func for node in ast.walk(_parsed(text)) if isinstance(node, ast.Call)}
    return {node.id for node in ast.walk(_parsed(text)) if isinstance(node, ast.Name) and node not in called}


def is_known(dim: Any) -> bool:
    """Whether a size is a number, not an expression over symbols."""
    return isinstance(dim, int | np.integer)


def stated(shape: Sequence[Any]) -> list[int | str | None]:
    """A shape as a graph states it: what is neither a number nor a symbol by itself is left open."""
    texts = [int(dim) if is_known(dim) else str(dim) for dim in shape]
    return [text if isinstance(text, int) or text.isidentifier() else None for text in texts]


@functools.lru_cache(maxsize=4096)
def _parsed(text: str) -> ast.expr:
    """JAX writes sizes as Python does, but for powers."""
    return ast.parse(text.replace("^", "**"), mode="eval").body
