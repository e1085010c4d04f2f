"""Slicing and padding by gathering from positions computed at run time, where the numbers were attributes.

Every number is an int64 vector of one element, so that all broadcast.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import onnx_ir as ir

from entrepot.ir.opset.adapters.parts.computed_axes import total
from entrepot.ir.opset.adapters.parts.positions import counted, from_the_front
from entrepot.ir.opset.builder import OpBuilder

INT64 = int(ir.DataType.INT64)
INT64_MAX = np.iinfo(np.int64).max


class Range(NamedTuple):
    """What a Slice takes of one axis."""

    start: ir.Value
    end: ir.Value
    step: ir.Value


def sliced(op: OpBuilder, x: ir.Value) -> ir.Value:
    """The Slice under conversion, of whose numbers some are known at run time only."""
    axes = _known_axes(op)
    ranges = _ranges_of_all_axes(op, x) if axes is None else {axis: _range(op, i) for i, axis in enumerate(axes)}
    if (
        len(ranges) > 1 and op.dtype(x) == ir.DataType.STRING
    ):  # onnxruntime 1.31 gives empty ones: test_computed_numbers
        op.refuse("strings are not gathered along several axes", hint="possible along a single axis that is a constant")
    for axis, taken in ranges.items():
        x = op.Gather(x, _taken_positions(op, taken, _size(op, x, axis)), axis=axis)
    return x


def _known_axes(op: OpBuilder) -> list[int] | None:
    if op.input(3) is not None:
        axes = op.known(op.x(3))
        return None if axes is None else [int(axis) for axis in axes]
    shape = op.shape(op.x(1))
    if not shape or shape[0] is None:
        op.refuse("how many axes it slices is unknown", hint="possible with a fixed number of starts")
    return list(range(shape[0]))


def _range(op: OpBuilder, index: int) -> Range:
    start, end = (_entry(op, op.x(place), index) for place in (1, 2))
    return Range(start, end, op.ints(1) if op.input(4) is None else _entry(op, op.x(4), index))


def _entry(op: OpBuilder, vector: ir.Value, index: int) -> ir.Value:
    entry: ir.Value = op.Cast(op.Gather(vector, op.ints(index), axis=0), to=INT64)
    return entry


def _ranges_of_all_axes(op: OpBuilder, x: ir.Value) -> dict[int, Range]:
    """What is given for an axis that is named, else the whole axis."""
    rank = op.need_rank(x)
    axes = from_the_front(op, op.x(3), op.ints(rank))
    wide = [None if op.input(place) is None else op.Cast(op.x(place), to=INT64) for place in (1, 2, 4)]
    ranges = {}
    for axis in range(rank):
        naming = op.Cast(op.Equal(axes, op.ints(axis)), to=INT64)
        rest = op.Sub(op.ints(1), total(op, naming, [0], keepdims=1))
        start, end, step = (
            op.ints(0) if value is None else total(op, op.Mul(naming, value), [0], keepdims=1) for value in wide
        )
        ranges[axis] = Range(
            start,
            op.Add(end, op.Mul(rest, op.ints(INT64_MAX))),
            op.ints(1) if wide[2] is None else op.Add(step, rest),
        )
    return ranges


def _taken_positions(op: OpBuilder, taken: Range, size: ir.Value) -> ir.Value:
    """The positions in an axis that a slice takes; backwards it clamps to the first and last."""
    back = _is_negative(op, taken.step)
    high = op.Sub(size, back)
    start = _clamped(op, taken.start, size, op.ints(0), high)
    end = _clamped(op, taken.end, size, back, high)
    sign = op.Sub(op.ints(1), op.Add(back, back))
    ahead = op.Mul(op.Sub(end, start), sign)
    steps = op.Div(op.Sub(ahead, op.ints(1)), op.Mul(taken.step, sign))
    count = op.Mul(_is_positive(op, ahead), op.Add(steps, op.ints(1)))
    positions: ir.Value = op.Add(start, op.Mul(counted(op, count), taken.step))
    return positions


def _clamped(op: OpBuilder, bound: ir.Value, size: ir.Value, below: ir.Value, high: ir.Value) -> ir.Value:
    """A bound, counted from the front, between ``-below`` and ``high``; no step overflows at the largest numbers."""
    front = op.Add(bound, op.Mul(_is_negative(op, bound), size))
    raised = op.Sub(_or_zero(op, front), op.Mul(_is_negative(op, front), below))
    clamped: ir.Value = op.Sub(high, _or_zero(op, op.Sub(high, raised)))
    return clamped


def _is_negative(op: OpBuilder, number: ir.Value) -> ir.Value:
    return _compared(op, "Less", number)


def _is_positive(op: OpBuilder, number: ir.Value) -> ir.Value:
    return _compared(op, "Greater", number)


def _compared(op: OpBuilder, how: str, number: ir.Value) -> ir.Value:
    """1 or 0; as a float a number keeps its sign, and before opset 9 only floats were compared."""
    sign = op.Cast(number, to=int(ir.DataType.FLOAT))
    result: ir.Value = op.Cast(op.emit(how, [sign, op.const(np.zeros(1, np.float32))], {}), to=INT64)
    return result


def _or_zero(op: OpBuilder, number: ir.Value) -> ir.Value:
    """The number, or 0 in place of a negative one."""
    result: ir.Value = op.Mul(number, _is_positive(op, number))
    return result


def _size(op: OpBuilder, x: ir.Value, axis: int) -> ir.Value:
    size: ir.Value = op.Gather(op.Shape(x), op.ints(axis), axis=0)
    return size


def all_pads(op: OpBuilder, rank: int) -> ir.Value:
    """The widths of all axes, 0 for those that computed ``axes`` do not name."""
    axes = from_the_front(op, op.x(3), op.ints(rank))
    naming = op.Cast(
        op.Equal(op.Reshape(axes, op.ints(1, 1, -1)), op.const(np.arange(rank).reshape(1, -1, 1))), to=INT64
    )
    widths = op.Mul(naming, op.Reshape(op.x(1), op.ints(2, 1, -1)))
    result: ir.Value = op.Reshape(total(op, widths, [2], keepdims=0), op.ints(-1))
    return result


def padded(op: OpBuilder, x: ir.Value, pads: ir.Value) -> ir.Value:
    """The Pad under conversion, by widths of all axes; negative ones are cut off before anything is put beside."""
    rank, mode = op.need_rank(x), op.attr("mode", "constant")
    for axis in range(rank):
        before, after = _entry(op, pads, axis), _entry(op, pads, rank + axis)
        size = _size(op, x, axis)
        wide = [_or_zero(op, width) for width in (before, after)]
        cut = op.Sub(before, wide[0])
        kept = op.Add(size, op.Add(cut, op.Sub(after, wide[1])))
        position = op.Sub(counted(op, op.Add(kept, op.Add(*wide))), wide[0])
        if mode == "constant":
            position = _outside_at(op, op.Sub(position, cut), kept, cut, size)
            x = op.Concat(x, _filled(op, x, axis), axis=axis)
        else:
            position = op.Sub(_MODES[mode](op, position, kept), cut)
        x = op.Gather(x, position, axis=axis)
    return x


def _outside_at(op: OpBuilder, position: ir.Value, kept: ir.Value, cut: ir.Value, size: ir.Value) -> ir.Value:
    """Positions among what is kept as they are, all others at the end of the axis, where the value is."""
    inside = op.Mul(
        op.Sub(op.ints(1), _is_negative(op, op.Add(position, cut))),
        _is_negative(op, op.Sub(op.Add(position, cut), kept)),
    )
    result: ir.Value = op.Add(op.Mul(inside, op.Sub(position, size)), size)
    return result


def _filled(op: OpBuilder, x: ir.Value, axis: int) -> ir.Value:
    """One place of an axis filled with the value to pad with."""
    dtype, value = op.need_dtype(x), op.input(2)
    shape = op.Shape(x)
    lead, tail = (list(range(axis)), list(range(axis + 1, op.need_rank(x))))
    sizes = [op.Gather(shape, op.ints(*part), axis=0) for part in (lead, tail) if part]
    sizes.insert(bool(lead), op.ints(1))
    whole = op.Concat(*sizes, axis=0) if len(sizes) > 1 else sizes[0]
    if value is None and dtype == ir.DataType.STRING:  # which ConstantOfShape cannot produce
        value = op.const(0, like=x)
    if value is None:
        zero = ir.tensor(np.zeros(1, dtype.numpy()), dtype=dtype)
        filled: ir.Value = op.ConstantOfShape(whole, value=zero)
    else:
        filled = op.Expand(op.Reshape(value, op.ints(1)), whole)
    return filled


def _nearest(op: OpBuilder, position: ir.Value, size: ir.Value) -> ir.Value:
    last = op.Sub(size, op.ints(1))
    result: ir.Value = op.Sub(last, _or_zero(op, op.Sub(last, _or_zero(op, position))))
    return result


def _reflected(op: OpBuilder, position: ir.Value, size: ir.Value) -> ir.Value:
    last = op.Sub(size, op.ints(1))
    alone = op.Sub(op.ints(1), _is_positive(op, last))  # a single element is its own reflection
    turned = op.Mod(position, op.Add(op.Add(last, last), alone))
    result: ir.Value = op.Sub(last, op.Abs(op.Sub(turned, last)))
    return result


def _wrapped(op: OpBuilder, position: ir.Value, size: ir.Value) -> ir.Value:
    result: ir.Value = op.Mod(position, size)
    return result


_MODES = {"edge": _nearest, "reflect": _reflected, "wrap": _wrapped}
