"""Two-sided arithmetic, comparisons and logic.

| version | change |
|---|---|
| 6 | ``consumed_inputs`` dropped |
| 7 | NumPy broadcasting instead of ``broadcast`` and ``axis`` |
| 8 | Max, Min, Mean and Sum broadcast |
| later | element types |
"""

from __future__ import annotations

import functools

import numpy as np
import onnx_ir as ir

from entrepot.ir.opset.adapters.parts.broadcasting import broadcasting_changed
from entrepot.ir.opset.adapters.parts.consumed import hint_dropped
from entrepot.ir.opset.adapters.parts.remainder import remainder_of_floats
from entrepot.ir.opset.bodies import expanded
from entrepot.ir.opset.builder import OpBuilder
from entrepot.ir.opset.rules import Replacement, adapter, decomposition, extended, unchanged

for _name in ("Add", "Sub", "Mul", "Div"):
    hint_dropped(_name)
    broadcasting_changed(_name, 6)
    unchanged(_name, 7, 13, 14)
for _name in ("Pow", "And", "Or", "Xor", "Equal", "Less", "Greater"):
    broadcasting_changed(_name, 1)
for _name in ("Max", "Min", "Mean", "Sum"):
    hint_dropped(_name)
    extended(_name, 6, 8)
for _name in ("Mean", "Sum"):
    unchanged(_name, 8, 13)
for _name in ("Max", "Min"):
    unchanged(_name, 12, 13)
for _name in ("Less", "Greater"):
    unchanged(_name, 9, 13)
for _name in ("GreaterOrEqual", "LessOrEqual"):
    expanded(_name, 12)
    unchanged(_name, 12, 16)
unchanged("Pow", 12, 13, 15)
unchanged("Equal", 11, 13, 19)
unchanged("Mod", 10, 13)
extended("Pow", 7, 12)
extended("Equal", 7, 11)
extended("Less", 7, 9)
extended("Greater", 7, 9)
extended("Max", 8, 12)
extended("Min", 8, 12)
extended("Mod", 13, 28)


@adapter("Sum", 8, 6)
@adapter("Mean", 8, 6)
def chained_sum(op: OpBuilder, node: ir.Node) -> Replacement:
    """Add broadcasts from version 7 on, one operand after the other."""
    if _equal_shapes(op, node):
        return None
    total = functools.reduce(op.Add, (op.x(index) for index in range(len(node.inputs))))
    return total if node.op_type == "Sum" else op.Div(total, op.const(len(node.inputs), like=op.x()))


@adapter("Max", 8, 6)
@adapter("Min", 8, 6)
def extremes_of_one_shape(op: OpBuilder, node: ir.Node) -> Replacement:
    """Against one known number it is a Clip; otherwise all are brought to the shape they broadcast to."""
    if _equal_shapes(op, node):
        return None
    bound = _bound(op, node)
    if bound is not None:
        place, number = bound
        limits = {"min": number, "max": np.inf} if node.op_type == "Max" else {"min": -np.inf, "max": number}
        return op.Clip(op.x(1 - place), **limits)
    none = functools.reduce(op.Add, (_nothing_of_its_shape(op, op.x(index)) for index in range(len(node.inputs))))
    return op.inputs(*(op.Add(op.x(index), none) for index in range(len(node.inputs))))


def _bound(op: OpBuilder, node: ir.Node) -> tuple[int, float] | None:
    """Which of two inputs is one known number, and that number; as an attribute it is a float."""
    if op.dtype(op.x()) != ir.DataType.FLOAT or len(node.inputs) != 2:
        return None
    for place, value in enumerate(node.inputs):
        array = op.known(value)
        if array is None or array.size != 1:
            continue
        if (op.rank(value) or 0) <= (op.rank(op.x(1 - place)) or 0):
            return place, float(array.item())
    return None


def _nothing_of_its_shape(op: OpBuilder, value: ir.Value) -> ir.Value:
    """Zeros, by way of booleans: infinity times zero is NaN."""
    truth = op.Cast(op.Cast(value, to=int(ir.DataType.BOOL)), to=int(op.need_dtype(value)))
    zeros: ir.Value = op.Mul(truth, op.const(0, like=value))
    return zeros


def _equal_shapes(op: OpBuilder, node: ir.Node) -> bool:
    shapes = [op.shape(value) for value in node.inputs]
    return all(shape is not None and None not in shape and shape == shapes[0] for shape in shapes)


@adapter("Pow", 12, 7)
def one_type_power(op: OpBuilder, _node: ir.Node) -> Replacement:
    """Bring the exponent to the base's type; an integer base and a fractional exponent meet in double."""
    base, exponent = op.need_dtype(op.x(0)), op.need_dtype(op.x(1))
    whole = _whole_power(op) if base in (ir.DataType.INT32, ir.DataType.INT64) else None
    if whole is not None:
        return whole
    if base == exponent:
        return None
    if base.is_floating_point():
        return op.inputs(op.x(0), op.Cast(op.x(1), to=int(base)))
    if base == ir.DataType.INT64:
        op.refuse("an int64 base is not expressible before version 12", hint="Cast it to double first")
    double = int(ir.DataType.DOUBLE)
    return op.Cast(op.Pow(op.Cast(op.x(0), to=double), op.Cast(op.x(1), to=double)), to=int(base))


def _whole_power(op: OpBuilder) -> ir.Value | None:
    """Products in place of a known whole power: they keep more digits than a double has."""
    known = op.known(op.x(1))
    if known is None or known.size != 1 or known.ndim > (op.rank(op.x(0)) or 0):
        return None
    power = known.item()
    if power not in range(1, POWERS_END):
        return None
    factors, square = [], op.x(0)
    for bit in range(int(power).bit_length()):
        square = op.Mul(square, square) if bit else square
        if int(power) >> bit & 1:
            factors.append(square)
    result: ir.Value = functools.reduce(op.Mul, factors)
    return result if result is not op.x(0) else op.Identity(result)


POWERS_END = 64
"""To this power or a higher one, no whole number but 0, 1 and -1 fits its type."""


@adapter("Equal", 11, 7)
def equal_floats(op: OpBuilder, _node: ir.Node) -> Replacement:
    """Neither less nor greater, and not NaN: Equal takes no floats before version 11; uint64 in two halves."""
    a, b = op.x(0), op.x(1)
    dtype = op.dtype(a)
    if dtype == ir.DataType.UINT64:
        return op.And(*(op.Equal(*pair) for pair in zip(_halves(op, a), _halves(op, b), strict=True)))
    if dtype is None or not dtype.is_floating_point():
        return None
    apart = op.Or(op.Less(a, b), op.Greater(a, b))
    zero, minus_one = op.const(0, dtype=dtype), op.const(-1, dtype=dtype)
    numbers = [op.Or(op.Less(x, zero), op.Greater(x, minus_one)) for x in (a, b)]
    return op.And(op.Not(apart), op.And(*numbers))


@adapter("Less", 9, 7)
@adapter("Greater", 9, 7)
def compare_integers(op: OpBuilder, node: ir.Node) -> Replacement:
    """Compare 64 bits in two halves that double holds exactly: versions before 9 take floats only."""
    if op.dtype(op.x()) not in (ir.DataType.INT64, ir.DataType.UINT64):
        return None
    highs, lows = zip(*(_halves(op, op.x(index)) for index in (0, 1)), strict=True)
    high, low = (
        op.emit(node.op_type, [op.Cast(x, to=int(ir.DataType.DOUBLE)) for x in pair], {}) for pair in (highs, lows)
    )
    return op.Or(high, op.And(op.Equal(*highs), low))


def _halves(op: OpBuilder, x: ir.Value) -> tuple[ir.Value, ir.Value]:
    """Quotient and remainder by 2**31, both of which int64 and double hold."""
    half = op.const(1 << 31, like=x)
    high = op.Div(x, half)
    low = op.Sub(x, op.Mul(high, half))
    int64 = int(ir.DataType.INT64)
    return op.Cast(high, to=int64), op.Cast(low, to=int64)


@adapter("Max", 12, 8)
@adapter("Min", 12, 8)
def integer_extremes(op: OpBuilder, node: ir.Node) -> Replacement:
    """Select by comparison: Max and Min take floats only before version 12."""
    dtype = op.dtype(op.x())
    if dtype is None or dtype.is_floating_point():
        return None
    compare = op.Greater if node.op_type == "Max" else op.Less
    values = [op.x(index) for index in range(len(node.inputs))]
    return functools.reduce(lambda a, b: op.Where(compare(a, b), a, b), values)


@adapter("Mod", 28, 13)
def floored_float_remainder(op: OpBuilder, _node: ir.Node) -> Replacement:
    """The remainder with the divisor's sign, from the one with the dividend's: floats need ``fmod=1`` before 28."""
    x, y = op.x(0), op.x(1)
    dtype = op.need_dtype(x)
    if op.attr("fmod", 0) or not dtype.is_floating_point():
        return None
    zero = op.const(0, dtype=dtype)
    rest = op.Mod(x, y, fmod=1)
    crossed = op.And(op.Not(op.Equal(rest, zero)), op.Xor(op.Less(rest, zero), op.Less(y, zero)))
    return op.Where(crossed, op.Add(rest, y), rest)


@decomposition("Mod", 10)
def remainder(op: OpBuilder, _node: ir.Node) -> Replacement:
    """X - y * (x / y), which is exact for integers; for floats in several steps."""
    x, y = op.x(0), op.x(1)
    dtype = op.need_dtype(x)
    if dtype.is_floating_point():
        return remainder_of_floats(op, x, y, dtype)
    rest = op.Sub(x, op.Mul(y, op.Div(x, y)))
    if op.attr("fmod", 0) or not dtype.is_signed():
        return rest
    zero = op.const(0, dtype=dtype)
    crossed = op.And(op.Not(op.Equal(rest, zero)), op.Xor(op.Less(rest, zero), op.Less(y, zero)))
    return op.Where(crossed, op.Add(rest, y), rest)
