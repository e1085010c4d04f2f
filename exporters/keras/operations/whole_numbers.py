"""Bits, divisors and places of whole numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from entrepot.exporters.building import typed
from entrepot.exporters.keras.reading.step import Step, rank_of, shape_of
from entrepot.exporters.keras.reading.table import operation

_BITWISE = {"BitwiseAnd": "BitwiseAnd", "BitwiseOr": "BitwiseOr", "BitwiseXor": "BitwiseXor"}
_SHIFTS = {
    "BitwiseLeftShift": "LEFT", "LeftShift": "LEFT", "BitwiseRightShift": "RIGHT", "RightShift": "RIGHT",
}  # fmt: skip


@operation(*_BITWISE)
def bitwise(step: Step, x: Any, y: Any) -> ir.Value:
    """Of integers, and of truth."""
    name = _BITWISE[type(step.operation).__name__]
    name = name.removeprefix("Bitwise") if step.dtype == ir.DataType.BOOL else name
    return step.op(name, step.value(x, step.dtype), step.value(y, step.dtype))


@operation("BitwiseNot", "BitwiseInvert")
def bitwise_not(step: Step, x: Any) -> ir.Value:
    """Of integers, and of truth."""
    value = step.value(x, step.dtype)
    return step.op("Not" if value.dtype == ir.DataType.BOOL else "BitwiseNot", value)


@operation(*_SHIFTS)
def shift(step: Step, x: Any, y: Any) -> ir.Value:
    """To the left as a product; to the right as a quotient that is rounded down, which keeps the sign."""
    left, right = step.value(x, step.dtype), step.value(y, step.dtype)
    power = step.build.cast(step.op("Pow", step.value(2.0, np.float64), step.build.cast(right, np.float64)), step.dtype)
    if _SHIFTS[type(step.operation).__name__] == "LEFT":
        return step.op("Mul", left, power)
    return step.op("Div", step.op("Sub", left, step.op("Mod", left, power)), power)


@operation("Gcd", "Lcm")
def divisor(step: Step, x1: Any, x2: Any) -> ir.Value:
    """The greatest common divisor by Euclid's algorithm, as long as something is left; the product by it."""
    left, right = (step.op("Abs", step.value(x, np.int64)) for x in (x1, x2))
    largest, _ = _divided(step, step.op("Add", left, step.op("Mul", right, 0)), right)
    if type(step.operation).__name__ == "Gcd":
        return step.build.cast(largest, step.dtype)
    safe = step.op("Max", largest, 1)
    return step.build.cast(step.op("Mul", step.op("Div", left, safe), right), step.dtype)


def _divided(step: Step, left: ir.Value, right: ir.Value) -> list[ir.Value]:
    right = step.op("Add", right, step.op("Mul", left, 0))
    body, shape = step.build.body("euclid"), [None] * len(step.shape)
    body.input("turn", np.int64, [])
    body.input("goes_on", np.bool_, [])
    one, two = body.input("dividend", np.int64, shape), body.input("divisor", np.int64, shape)
    with step.reader.inside(body):
        ends = step.op("Equal", two, 0)
        rest = step.op("Where", ends, 0, step.op("Mod", one, step.op("Max", two, 1)))
        count = step.op("ReduceSum", step.build.cast(step.build.cast(rest, np.bool_), np.int32), keepdims=0)
        results = [step.op("Greater", count, 0), step.op("Where", ends, one, two), rest]
    made: list[ir.Value] = step.op("Loop", None, True, left, right, outputs=2, body=body.graph(results))
    return [typed(each, np.int64, shape) for each in made]


@operation("UnravelIndex")
def unravel_index(step: Step, indices: Any) -> tuple[ir.Value, ...]:
    """Places in an array by their number in a row, which may count from its end."""
    sizes = [int(size) for size in step.operation.shape]
    rest, found = step.value(indices, np.int64), []
    for size in reversed(sizes):
        part = step.op("Mod", rest, size)
        found.append(step.build.cast(part, step.dtype))
        rest = step.op("Div", step.op("Sub", rest, part), size)
    return tuple(reversed(found))


@operation("IsIn")
def is_in(step: Step, x1: Any, x2: Any) -> ir.Value:
    """Whether an element is equal to any of others."""
    value, others = step.operands(x1, x2 if isinstance(x2, ir.Value) else np.asarray(x2))
    rank = rank_of(value)
    flat = step.reshaped(others, [*([1] * rank), -1])
    same = step.build.cast(step.op("Equal", step.op("Unsqueeze", value, [rank]), flat), np.int32)
    some = step.op("Greater", step.op("ReduceSum", same, [rank], keepdims=0), 0)
    return typed(step.op("Not", some) if step.operation.invert else some, np.bool_, shape_of(value))
