"""Gelu where a framework spells it out by the error function or its complement: one operator instead of a formula."""

from __future__ import annotations

import math
from collections.abc import Iterator

import onnx_ir as ir

from entrepot.exporters.building import Builder

_NOTE = "entrepot.error_function_of"
_ROUNDING = {ir.DataType.FLOAT: 1e-6, ir.DataType.FLOAT16: 1e-2, ir.DataType.BFLOAT16: 1e-2}
"""How far constants may be from what they stand for. In float64 the operator has fewer digits than erfc in the tail."""
_DEEPEST = 3
"""Products of products that are looked at."""


def note(result: ir.Value, of: ir.Value, *, complement: bool) -> ir.Value:
    """Remember what the error function was taken of, however it is computed; the result itself."""
    result.meta[_NOTE] = (of, complement)
    return result


def as_gelu(build: Builder, left: ir.Value, right: ir.Value) -> ir.Value | None:
    """``Gelu(x)`` where ``left * right`` is x / 2 times 1 + erf(x / sqrt(2)), or erfc(-x / sqrt(2)), in any order."""
    found = next(filter(None, map(_share, _factors_of(left, right, None))), None)
    if found is None:
        return None
    share, x = found
    factors = [*_factors_of(left, right, x)]
    numbers = [number for number in map(_number, factors) if number is not None]
    values = [factor for factor in factors if _number(factor) is None]
    if sorted(map(id, values)) != sorted((id(share), id(x))) or not _near(math.prod(numbers), 0.5, x):
        return None
    result: ir.Value = build.op("Gelu", x)
    return result


def _factors_of(left: ir.Value, right: ir.Value, x: ir.Value | None) -> Iterator[ir.Value]:
    yield from _factors(left, x, _DEEPEST)
    yield from _factors(right, x, _DEEPEST)


def _factors(value: ir.Value, x: ir.Value | None, depth: int) -> Iterator[ir.Value]:
    """What a value is the product of; ``x`` is one factor however it is made."""
    inputs = _inputs(value, "Mul")
    if value is x or inputs is None or not depth:
        yield value
    else:
        for each in inputs:
            yield from _factors(each, x, depth - 1)


def _share(value: ir.Value) -> tuple[ir.Value, ir.Value] | None:
    """Twice the share of a normal distribution below x, and x."""
    noted = _noted(value, complement=True)
    if noted is not None:
        x = _scaled(noted, -math.sqrt(0.5))
        return None if x is None else (value, x)
    for one, other in _either_way(value, "Add"):
        noted = _noted(other, complement=False)
        if noted is not None and _is(one, 1.0):
            x = _scaled(noted, math.sqrt(0.5))
            return None if x is None else (value, x)
    return None


def _noted(value: ir.Value, *, complement: bool) -> ir.Value | None:
    of, is_complement = value.meta.get(_NOTE, (None, complement))
    return of if is_complement == complement else None


def _scaled(value: ir.Value, factor: float) -> ir.Value | None:
    """What a value is this many times."""
    number, found = 1.0, value
    for _ in range(_DEEPEST):
        if _near(number, factor, value):
            return found
        split = _without_number(found)
        if split is None:
            return None
        found, number = split[0], number * split[1]
    return found if _near(number, factor, value) else None


def _without_number(value: ir.Value) -> tuple[ir.Value, float] | None:
    """A value as another one and what that is multiplied by."""
    if (negated := _inputs(value, "Neg")) is not None:
        return negated[0], -1.0
    for one, other in _either_way(value, "Mul"):
        if (number := _number(other)) is not None:
            return one, number
    divided = _inputs(value, "Div")
    divisor = None if divided is None else _number(divided[1])
    return (divided[0], 1 / divisor) if divided is not None and divisor else None


def _either_way(value: ir.Value, op_type: str) -> Iterator[tuple[ir.Value, ir.Value]]:
    inputs = _inputs(value, op_type)
    if inputs is not None:
        one, other = inputs
        yield one, other
        yield other, one


def _inputs(value: ir.Value, op_type: str) -> list[ir.Value] | None:
    node = value.producer()
    if node is None or node.op_type != op_type or node.domain:
        return None
    found = [each for each in node.inputs if each is not None]
    return found if len(found) == len(node.inputs) else None


def _is(value: ir.Value, number: float) -> bool:
    known = _number(value)
    return known is not None and _near(known, number, value)


def _number(value: ir.Value) -> float | None:
    if value.const_value is None or value.const_value.size != 1:
        return None
    return float(value.const_value.numpy().reshape(()))


def _near(number: float, wanted: float, like: ir.Value) -> bool:
    """Whether constants are what they stand for, rounded to their type."""
    return like.dtype in _ROUNDING and math.isclose(number, wanted, rel_tol=_ROUNDING[like.dtype])
