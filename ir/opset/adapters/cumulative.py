"""Cumulative sums and products below the opsets that have them."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import onnx_ir as ir

from entrepot.ir.opset.adapters.parts.computed_axes import axis_by_axis, named
from entrepot.ir.opset.adapters.parts.loop import loop
from entrepot.ir.opset.builder import OpBuilder
from entrepot.ir.opset.rules import Replacement, decomposition, unchanged

unchanged("CumSum", 11, 14)

MOST_PARTS = 64
"""Up to this many parts a product is written out; for more, or an open number, a Loop takes one at a time."""


@decomposition("CumSum", 11)
def cumsum(op: OpBuilder, _node: ir.Node) -> Replacement:
    """Add the elements 1, 2, 4, ... places away: a product with a triangle would carry a NaN or infinity backwards.

    An axis of open size is added up by a Loop.
    """
    return _cumulated(op, _sums)


@decomposition("CumProd", 26)
def cumprod(op: OpBuilder, _node: ir.Node) -> Replacement:
    """Multiply slice by slice, which rounds as the operator does."""
    return _cumulated(op, _products)


def _cumulated(op: OpBuilder, along: Callable[[OpBuilder, ir.Value, int], ir.Value]) -> ir.Value:
    x, shape, rank = op.x(), op.around.types.shape(op.x()), op.need_rank(op.x())
    if shape is not None and 0 in list(shape):
        result: ir.Value = op.Identity(x)
        return result
    known = np.zeros(()) if rank == 1 else op.known(op.x(1))  # a vector has only one axis
    if known is not None:
        return along(op, x, int(known.item()) % rank)
    return axis_by_axis(op, x, named(op, op.x(1), rank), along, shape=shape)


def _sums(op: OpBuilder, x: ir.Value, axis: int) -> ir.Value:
    size, backwards = (op.shape(x) or [])[axis], bool(op.attr("reverse", 0))
    if size is None:
        return _one_at_a_time(op, x, axis, "Add", 0)
    summed = _shifted(op, x, axis, size, backwards=backwards) if op.attr("exclusive", 0) else op.Identity(x)
    reach = 1
    while reach < size:
        near, far = _part(op, summed, axis, 0, size - reach), _part(op, summed, axis, reach, size)
        ends = _part(op, summed, axis, size - reach, size) if backwards else _part(op, summed, axis, 0, reach)
        both = op.Add(near, far)
        summed = op.Concat(*((both, ends) if backwards else (ends, both)), axis=axis)
        reach *= 2
    return summed


def _shifted(op: OpBuilder, x: ir.Value, axis: int, size: int, *, backwards: bool) -> ir.Value:
    """Shifted one place along the axis, with a zero coming in."""
    zero = ir.tensor(np.zeros(1, op.need_dtype(x).numpy()))
    zeros: ir.Value = op.ConstantOfShape(op.Shape(_part(op, x, axis, 0, 1)), value=zero)
    if size == 1:
        return zeros
    kept = _part(op, x, axis, 1, size) if backwards else _part(op, x, axis, 0, size - 1)
    result: ir.Value = op.Concat(*((kept, zeros) if backwards else (zeros, kept)), axis=axis)
    return result


def _products(op: OpBuilder, x: ir.Value, axis: int) -> ir.Value:
    size = (op.shape(x) or [])[axis]
    if size is None or size > MOST_PARTS:
        return _one_at_a_time(op, x, axis, "Mul", 1)
    parts = [_part(op, x, axis, i, i + 1) for i in range(size)]
    if op.attr("reverse", 0):
        parts.reverse()
    if op.attr("exclusive", 0):
        parts = [op.Expand(op.const(1, like=x), op.Shape(parts[0])), *parts[:-1]]
    products = list(itertools.accumulate(parts, op.Mul))
    if op.attr("reverse", 0):
        products.reverse()
    result: ir.Value = op.Concat(*products, axis=axis)
    return result


def _one_at_a_time(op: OpBuilder, x: ir.Value, axis: int, combine: str, neutral: int) -> ir.Value:
    """A Loop along the axis that carries the result so far."""
    rank, dtype, backwards = op.need_rank(x), op.need_dtype(x), bool(op.attr("reverse", 0))
    shape = op.Shape(x)
    count = op.Gather(shape, op.const(np.int64(axis)))
    start = op.const(neutral, dtype=dtype)
    others = [other for other in range(rank) if other != axis]
    if others:
        start = op.Expand(start, op.Gather(shape, op.ints(*others)))

    def take(body: OpBuilder, turn: ir.Value, sofar: ir.Value) -> list[ir.Value]:
        place = body.Sub(body.Sub(count, body.const(np.int64(1))), turn) if backwards else turn
        together = body.emit(combine, [sofar, body.Gather(x, place, axis=axis)], {})
        return [together, body.Identity(sofar if op.attr("exclusive", 0) else together)]

    collected = loop(op, count, [start], take, shapes=[ir.Shape([None] * (rank - 1))])[1]
    if backwards:
        last = np.iinfo(np.int64).min + 1
        collected = op.Slice(collected, op.ints(-1), op.ints(last), op.ints(0), op.ints(-1))
    order = [0 if other == axis else other + (other < axis) for other in range(rank)]
    result: ir.Value = op.Transpose(collected, perm=order) if axis else collected
    return result


def _part(op: OpBuilder, x: ir.Value, axis: int, start: int, end: int) -> ir.Value:
    part: ir.Value = op.Slice(x, op.ints(start), op.ints(end), op.ints(axis))
    return part
