"""Positions in a flattened tensor whose sizes are known at run time only, at opsets 9 to 17."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from entrepot.ir.opset.adapters.parts.loop import loop
from entrepot.ir.opset.builder import OpBuilder

INT64_MAX = np.iinfo(np.int64).max


def sizes(op: OpBuilder, shape: ir.Value, start: int, end: int = INT64_MAX) -> ir.Value:
    """Some entries of a shape, as a vector."""
    if op.version < 10:
        result: ir.Value = op.Slice(shape, starts=[start], ends=[end])
    else:
        result = op.Slice(shape, op.ints(start), op.ints(end))
    return result


def product(op: OpBuilder, shape: ir.Value, start: int, end: int) -> ir.Value:
    """The number of elements in the axes from ``start`` up to ``end``, as a vector of one."""
    if start >= end:
        return op.ints(1)
    chosen = sizes(op, shape, start, end)
    if op.version < 18:
        result: ir.Value = op.ReduceProd(chosen, axes=[0], keepdims=1)
    else:
        result = op.ReduceProd(chosen, op.ints(0), keepdims=1)
    return result


def numbers_along(op: OpBuilder, shape: ir.Value, axis: int, rank: int) -> ir.Value:
    """0, 1, 2, … along one of ``rank`` axes, whose size is that entry of ``shape``; the other axes have size 1."""
    numbers = counted(op, sizes(op, shape, axis, axis + 1))
    others = [other for other in range(rank) if other != axis]
    result: ir.Value = op.Unsqueeze(numbers, axes=others) if others else numbers
    return result


def counted(op: OpBuilder, count: ir.Value) -> ir.Value:
    """0, 1, 2, … up to a count that a vector of one holds."""
    if op.version >= 11:
        zero, one = op.const(np.int64(0)), op.const(np.int64(1))
        result: ir.Value = op.Range(zero, op.Reshape(count, op.ints()), one)
    elif op.around.targets.get("", op.version) >= 9:
        ones = op.ConstantOfShape(count, value=ir.tensor(np.ones(1, np.int64)))
        result = op.Squeeze(op.NonZero(ones), axes=[0])
    else:
        turns = op.Reshape(count, op.ints())
        result = loop(op, turns, [turns], lambda _body, turn, carried: [carried, turn])[1]
    result.type, result.shape = ir.TensorType(ir.DataType.INT64), ir.Shape([None])  # stated, so that it stays known
    return result


def from_the_front(op: OpBuilder, indices: ir.Value, size: ir.Value) -> ir.Value:
    """Indices as int64, negative ones counted from the end of an axis of this size."""
    wide = op.Cast(indices, to=int(ir.DataType.INT64))
    sign = op.Cast(indices, to=int(ir.DataType.FLOAT))  # before opset 9 Less takes floats only
    shift = op.Mul(op.Cast(op.Less(sign, op.const(np.zeros(1, np.float32))), to=int(ir.DataType.INT64)), size)
    result: ir.Value = op.Add(wide, shift)
    return result


def places(op: OpBuilder, data: ir.Value, indices: ir.Value, *, batch: int = 0) -> tuple[ir.Value, int]:
    """Where the slices that GatherND and ScatterND name begin, counted in slices, and how many axes it counts over.

    Args:
        op: The place.
        data: The shape of what is indexed.
        indices: Indices of whole slices along the last axis.
        batch: Leading axes that are not indexed; what they add to the positions is left to the caller.
    """
    shape = op.shape(indices)
    depth = None if shape is None else shape[-1]
    if shape is None or depth is None:
        op.refuse("the number of indices per element is not fixed", hint="possible with a fixed last axis")
    lead = batch + depth
    position = op.ints(0)
    for index in range(depth):
        column = op.Gather(indices, op.const(np.int64(index)), axis=len(shape) - 1)
        column = from_the_front(op, column, sizes(op, data, batch + index, batch + index + 1))
        position = op.Add(position, op.Mul(column, product(op, data, batch + index + 1, lead)))
    return position, lead
