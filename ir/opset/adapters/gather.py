"""Picking elements by index; placing them has its own file.

| operator | version | change |
|---|---|---|
| Gather, Compress | 11 | negative axis |
| GatherND | 12 | ``batch_dims`` |
| OneHot | 11 | negative indices wrap; negative axis |
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from entrepot.ir.opset.adapters.parts.axes import normalised_axis
from entrepot.ir.opset.adapters.parts.positions import counted, from_the_front, numbers_along, places, product, sizes
from entrepot.ir.opset.builder import OpBuilder
from entrepot.ir.opset.rules import Replacement, adapter, added, decomposition, extended, impossible, unchanged

unchanged("Gather", 11, 13)
unchanged("GatherElements", 11, 13)
unchanged("GatherND", 12, 13)
unchanged("Compress", 11, 28)
unchanged("NonZero", 9, 13)
unchanged("OneHot", 11, 28)
unchanged("Unique", 11, 28)
extended("Gather", 1, 11)
extended("Compress", 9, 11)
extended("OneHot", 9, 11)
impossible("NonZero", 9, 0, "no operator produced a shape that depends on values before opset 9")
impossible("Unique", 11, 0, "no operator sorted and compared before opset 11")


@adapter("Gather", 11, 1)
def gather_from_the_front(op: OpBuilder, _node: ir.Node) -> Replacement:
    """Count the axis and known indices from the front; runtimes always accepted computed negative ones."""
    normalised_axis(op)
    indices = op.known(op.x(1))
    if indices is not None and (indices < 0).any():
        shape, axis = op.shape(op.x()), op.attr("axis", 0)
        size = None if shape is None else shape[axis]
        if size is not None:
            positive = op.const(np.where(indices < 0, indices + size, indices), dtype=op.dtype(op.x(1)))
        else:
            place = op.const(np.array(axis, np.int64))
            computed = op.Mul(op.const((indices < 0).astype(np.int64)), op.Gather(op.Shape(op.x()), place))
            positive = op.Add(op.const(indices, dtype=ir.DataType.INT64), computed)
        op.inputs(op.x(), positive)


@adapter("Compress", 11, 9)
def compress_from_the_front(op: OpBuilder, node: ir.Node) -> Replacement:
    """Count the axis from the front; without one the input is flattened."""
    return normalised_axis(op) if "axis" in node.attributes else None


@decomposition("Compress", 9)
def compress_known(op: OpBuilder, _node: ir.Node) -> Replacement:
    """Gather the positions that a known condition selects."""
    chosen = op.const(np.flatnonzero(op.need_known(1, "the condition")).astype(np.int64))
    axis = op.attr("axis")
    x = op.x() if axis is not None else op.Reshape(op.x(), op.ints(-1))
    return op.Gather(x, chosen, axis=axis or 0)


def _static(op: OpBuilder, value: ir.Value) -> list[int] | None:
    shape = op.shape(value)
    fixed = [dim for dim in shape or [] if dim is not None]
    return fixed if shape is not None and len(fixed) == len(shape) else None


def _wrapped(op: OpBuilder, indices: ir.Value, size: int) -> ir.Value:
    """Negative indices, counted from the end."""
    known = op.known(indices)
    if known is not None:
        return op.const(np.where(known < 0, known + size, known).astype(np.int64))
    wide = op.Cast(indices, to=int(ir.DataType.INT64))
    sign = op.Cast(indices, to=int(ir.DataType.FLOAT))  # before opset 9 Less takes floats only
    negative = op.Less(sign, op.const(np.float32(0)))  # scalars: a scalar index must stay one
    shift = op.Mul(op.Cast(negative, to=int(ir.DataType.INT64)), op.const(np.int64(size)))
    return op.Add(wide, shift)


@decomposition("GatherElements", 11)
def gather_elements(op: OpBuilder, _node: ir.Node) -> Replacement:
    """Gather from the flattened data at computed positions."""
    x, indices = op.x(0), op.x(1)
    data, picked = _static(op, x), _static(op, indices)
    if data is None or picked is None:
        return _gather_elements_of_any_size(op, x, indices)
    axis = op.attr("axis", 0) % len(data)
    strides = [int(np.prod(data[index + 1 :])) for index in range(len(data))]
    op.need_small(int(np.prod(picked)))
    grids = np.indices(picked)
    offset = sum(grids[index] * strides[index] for index in range(len(data)) if index != axis)
    moved = op.Mul(_wrapped(op, indices, data[axis]), op.ints(strides[axis]))
    position = op.Add(moved, op.const(np.broadcast_to(offset, picked).astype(np.int64)))
    return op.Gather(op.Reshape(x, op.ints(-1)), position, axis=0)


def _gather_elements_of_any_size(op: OpBuilder, x: ir.Value, indices: ir.Value) -> ir.Value:
    rank = op.need_rank(x)
    axis = op.attr("axis", 0) % rank
    data, picked = op.Shape(x), op.Shape(indices)
    position = from_the_front(op, indices, sizes(op, data, axis, axis + 1))
    position = op.Mul(position, product(op, data, axis + 1, rank))
    for other in range(rank):
        if other != axis:
            step = product(op, data, other + 1, rank)
            position = op.Add(position, op.Mul(numbers_along(op, picked, other, rank), step))
    result: ir.Value = op.Gather(op.Reshape(x, op.ints(-1)), position, axis=0)
    return result


def _gather_nd_of_any_size(op: OpBuilder, x: ir.Value, indices: ir.Value) -> ir.Value:
    batch, rank = op.attr("batch_dims", 0), op.need_rank(indices) - 1
    data, picked = op.Shape(x), op.Shape(indices)
    position, lead = places(op, data, indices, batch=batch)
    for axis in range(batch):
        position = op.Add(position, op.Mul(numbers_along(op, picked, axis, rank), product(op, data, axis + 1, lead)))
    if rank == 0:  # every factor is a vector of one element, which became an axis
        position = op.Squeeze(position, axes=[0])
    tail = [sizes(op, data, lead)] if lead < op.need_rank(x) else []
    flat = op.Reshape(x, op.Concat(product(op, data, 0, lead), *tail, axis=0))
    result: ir.Value = op.Gather(flat, position, axis=0)
    return result


def gather_nd_flat(op: OpBuilder, _node: ir.Node) -> Replacement:
    """Gather from the flattened leading axes at computed positions."""
    x, indices = op.x(0), op.x(1)
    data, picked = _static(op, x), _static(op, indices)
    if data is None or picked is None:
        return _gather_nd_of_any_size(op, x, indices)
    batch, depth = op.attr("batch_dims", 0), picked[-1]
    if not 0 <= batch < min(len(data), len(picked)):
        op.refuse(f"batch_dims={batch} exceeds the number of axes of its inputs")
    lead = batch + depth
    if lead > len(data):
        op.refuse(f"indices of {depth} axes exceed those of its input")
    strides = [int(np.prod(data[index + 1 : lead])) for index in range(lead)]
    op.need_small(int(np.prod(picked[:-1])))
    grids = np.indices(picked[:-1])
    position: ir.Value = op.const(
        np.asarray(sum((grids[index] * strides[index] for index in range(batch)), np.zeros(picked[:-1], np.int64)))
    )
    for index in range(depth):
        column = op.Gather(indices, op.const(np.int64(index)), axis=len(picked) - 1)
        column = _wrapped(op, column, data[batch + index])
        position = op.Add(position, op.Mul(column, op.const(np.int64(strides[batch + index]))))
    rows, tail = int(np.prod(data[:lead])), data[lead:]
    if (rows, *tail).count(0) > 1:
        op.refuse("its data has no elements along two axes")
    flat = op.Reshape(x, op.ints(rows or -1, *(size or -1 for size in tail)))  # 0 would copy a size
    return op.Gather(flat, position, axis=0)


decomposition("GatherND", 11)(gather_nd_flat)
added("GatherND", 11, 12, batch_dims=0, otherwise=gather_nd_flat)


@adapter("OneHot", 11, 9)
def one_hot_wrapped(op: OpBuilder, _node: ir.Node) -> Replacement:
    """Wrap negative indices; only -1, the last, is a negative axis."""
    if op.attr("axis", -1) < -1:
        op.set(axis=op.attr("axis") + op.need_rank(op.x()) + 1)
    indices, depth = op.x(0), op.x(1)
    known = op.known(indices)
    if known is not None and (known >= 0).all():
        return None
    dtype = op.need_dtype(indices)
    zero, outside = op.const(0, dtype=dtype), op.Cast(op.Reshape(depth, op.ints()), to=int(dtype))
    wrapped = op.Where(op.Less(indices, zero), op.Add(indices, outside), indices)
    return op.inputs(op.Where(op.Less(wrapped, zero), outside, wrapped), depth, op.x(2))


@decomposition("OneHot", 9)
def one_hot(op: OpBuilder, _node: ir.Node) -> Replacement:
    """Compare with the numbers up to the depth, and gather one of the two values."""
    indices, depth = op.x(0), op.known(op.x(1))
    rank, axis = op.need_rank(indices), op.attr("axis", -1)
    axis = axis if axis >= 0 else axis + rank + 1
    wide = op.Unsqueeze(op.Cast(indices, to=int(ir.DataType.INT64)), axes=[axis])
    after = [1] * (rank - axis)
    if depth is not None:
        numbers = op.const(np.arange(int(depth.item())).reshape(-1, *after))
    else:
        wide_depth = op.Reshape(op.Cast(op.x(1), to=int(ir.DataType.INT64)), op.ints(1))
        numbers = op.Reshape(counted(op, wide_depth), op.ints(-1, *after))
    hot = op.Cast(op.Equal(wide, numbers), to=int(ir.DataType.INT64))
    return op.Gather(op.x(2), hot, axis=0)


@decomposition("Trilu", 14)
def trilu(op: OpBuilder, _node: ir.Node) -> Replacement:
    """Select by a mask: a constant where sizes and diagonal are known, else made from ranges."""
    x, upper = op.x(), op.attr("upper", 1)
    shape, k = op.shape(x), op.known(op.input(1))
    diagonal = np.zeros((), np.int64) if op.input(1) is None else k
    rows, columns = (None, None) if shape is None else shape[-2:]
    if rows is not None and columns is not None and diagonal is not None:
        ones = np.ones((rows, columns), bool)
        offset = int(diagonal.item())
        mask = op.const(np.triu(ones, offset) if upper else np.tril(ones, offset))
    else:
        mask = _computed_triangle(op, x, upper=bool(upper))
    if op.dtype(x) == ir.DataType.BOOL:
        return op.And(x, mask)  # onnxruntime has no Where for booleans
    return op.Where(mask, x, op.const(0, like=x))


def _computed_triangle(op: OpBuilder, x: ir.Value, *, upper: bool) -> ir.Value:
    zero, one, last = (op.const(np.int64(value)) for value in (0, 1, -1))
    shape = op.Shape(x)
    rows = op.Range(zero, op.Gather(shape, op.const(np.int64(-2))), one)
    columns = op.Range(zero, op.Gather(shape, last), one)
    away = op.Sub(columns, op.Unsqueeze(rows, op.ints(1)))
    k = zero if op.input(1) is None else op.x(1)
    return op.Not(op.Less(away, k)) if upper else op.Not(op.Greater(away, k))
