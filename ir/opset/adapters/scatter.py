"""Placing elements by index.

| operator | version | change |
|---|---|---|
| Scatter | 11 | deprecated for ScatterElements |
| ScatterElements, ScatterND | 16 / 18 | ``reduction`` add, mul / max, min |
| MaxUnpool | 9 | introduced |

An older version places values and combines nothing. So the updates are combined before: each with all others of the
same place and with what is there. They then say the same, and it does not matter which of them is placed last. Where
their number is open, or there are too many to meet in pairs, a Loop places one after the other.
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from entrepot.ir.opset.adapters.parts.loop import loop
from entrepot.ir.opset.adapters.parts.positions import counted, from_the_front, numbers_along, places, product, sizes
from entrepot.ir.opset.builder import LARGEST_CONSTANT, OpBuilder
from entrepot.ir.opset.rules import Replacement, adapter, added, decomposition, extended, impossible, unchanged

unchanged("ScatterElements", 11, 13)
unchanged("ScatterND", 11, 13)
extended("ScatterElements", 16, 18)
extended("ScatterND", 16, 18)
impossible("Scatter", 11, 9, "Scatter 11 is deprecated and not in use")

NEUTRAL = {"add": 0, "mul": 1}
"""The neutral element of a reduction; max and min need none, as a value may meet itself."""

WIDER = {
    ir.DataType.BOOL: ir.DataType.INT32,
    ir.DataType.FLOAT16: ir.DataType.FLOAT,
    ir.DataType.BFLOAT16: ir.DataType.FLOAT,
}
"""Where several updates are combined: booleans are not reduced, and short floats would be rounded in another order."""


def elements_combined(op: OpBuilder, _node: ir.Node) -> Replacement:
    """Combine the updates of each place along the axis, then place them."""
    data, axis = op.x(0), op.attr("axis", 0) % op.need_rank(op.x(0))
    dims = op.shape(op.x(1))
    if not _are_few_pairs(dims, None if dims is None else dims[axis]):
        return _one_by_one(op, data, op.x(1), op.x(2), axis)
    place = from_the_front(op, op.x(1), sizes(op, op.Shape(data), axis, axis + 1))
    there = op.GatherElements(data, place, axis=axis)
    return op.ScatterElements(data, place, _combined(op, there, place, op.x(2), axis), axis=axis)


def slices_combined(op: OpBuilder, _node: ir.Node) -> Replacement:
    """Combine the updates of each place, one row per slice, then place them."""
    data, indices, updates = op.x(0), op.x(1), op.x(2)
    dims, tail = op.shape(indices), op.shape(updates)
    count = None if dims is None or None in dims[:-1] else int(np.prod([dim or 0 for dim in dims[:-1]]))
    rows, position = _rows(op)
    if not _are_few_pairs(tail, count):
        whole = op.Concat(sizes(op, op.Shape(position), 0, 1), sizes(op, op.Shape(rows), 1, 2), axis=0)
        summed = _one_by_one(op, rows, op.Expand(position, whole), op.Reshape(updates, whole), 0)
        return op.Reshape(summed, op.Shape(data))
    there = op.Gather(rows, op.Reshape(position, op.ints(-1)), axis=0)
    combined = _combined(op, there, position, op.Reshape(updates, op.Shape(there)), 0)
    return op.ScatterND(data, indices, op.Reshape(combined, op.Shape(updates)))


added("ScatterElements", 13, 16, reduction="none", otherwise=elements_combined)
added("ScatterND", 13, 16, reduction="none", otherwise=slices_combined)


@adapter("ScatterElements", 18, 16)
def elements_summed_only(op: OpBuilder, node: ir.Node) -> Replacement:
    """Compute the largest and the smallest of several updates, which version 16 cannot."""
    return elements_combined(op, node) if op.attr("reduction", "none") in ("max", "min") else None


@adapter("ScatterND", 18, 16)
def slices_summed_only(op: OpBuilder, node: ir.Node) -> Replacement:
    """Compute the largest and the smallest of several updates, which version 16 cannot."""
    return slices_combined(op, node) if op.attr("reduction", "none") in ("max", "min") else None


def _are_few_pairs(dims: list[int | None] | None, count: int | None) -> bool:
    """Whether it is affordable that every update meets every other one in memory."""
    if dims is None or count is None:
        return False
    return count * int(np.prod([1 if dim is None else dim for dim in dims])) <= LARGEST_CONSTANT


def _one_by_one(op: OpBuilder, data: ir.Value, indices: ir.Value, updates: ir.Value, axis: int) -> ir.Value:
    """A Loop along the axis of the updates: no two of one turn have the same place."""
    rank, dtype = op.need_rank(data), op.need_dtype(data)

    def place(body: OpBuilder, turn: ir.Value, sofar: ir.Value) -> list[ir.Value]:
        at = body.Reshape(turn, body.ints(1))
        here, update = (body.Gather(value, at, axis=axis) for value in (indices, updates))
        together = _two(body, body.GatherElements(sofar, here, axis=axis), update, dtype)
        return [body.ScatterElements(sofar, here, together, axis=axis)]

    count = op.Gather(op.Shape(indices), op.const(np.int64(axis)))
    return loop(op, count, [data], place, shapes=[ir.Shape([None] * rank)])[0]


def _two(op: OpBuilder, there: ir.Value, update: ir.Value, dtype: ir.DataType) -> ir.Value:
    both = [there, update]
    if dtype == ir.DataType.BOOL:
        both = [op.Cast(value, to=int(WIDER[dtype])) for value in both]
    together: ir.Value = op.emit(op.attr("reduction").title(), both, {})
    return together if dtype != ir.DataType.BOOL else op.Cast(together, to=int(dtype))


def _combined(op: OpBuilder, there: ir.Value, place: ir.Value, updates: ir.Value, axis: int) -> ir.Value:
    """What is ``there`` with all updates of the same place; selected, not multiplied by 0, which would spread NaN."""
    reduction, dtype = op.attr("reduction"), op.need_dtype(updates)
    wider = WIDER.get(dtype)
    if wider is not None:
        there, updates = (op.Cast(value, to=int(wider)) for value in (there, updates))
    ours, theirs = op.ints(axis + 1), op.ints(axis)
    same = op.Equal(op.Unsqueeze(place, ours), op.Unsqueeze(place, theirs))
    otherwise = op.const(NEUTRAL[reduction], like=updates) if reduction in NEUTRAL else op.Unsqueeze(updates, ours)
    chosen = op.Where(same, op.Unsqueeze(updates, theirs), otherwise)
    if reduction == "add":
        result = op.Add(there, op.ReduceSum(chosen, ours, keepdims=0))
    elif reduction == "mul":
        result = op.Mul(there, op.ReduceProd(chosen, axes=[axis + 1], keepdims=0))
    elif reduction == "max":
        result = op.Max(there, op.ReduceMax(chosen, axes=[axis + 1], keepdims=0))
    else:
        result = op.Min(there, op.ReduceMin(chosen, axes=[axis + 1], keepdims=0))
    return result if wider is None else op.Cast(result, to=int(dtype))


def _rows(op: OpBuilder) -> tuple[ir.Value, ir.Value]:
    """The data with one row per slice, and a column with each update's row."""
    data, rank = op.Shape(op.x(0)), op.need_rank(op.x(0))
    position, lead = places(op, data, op.x(1))
    shape = op.Concat(product(op, data, 0, lead), product(op, data, lead, rank), axis=0)
    return op.Reshape(op.x(0), shape), op.Reshape(position, op.ints(-1, 1))


@adapter("Scatter", 9, 11)
def scatter_renamed(op: OpBuilder, node: ir.Node) -> Replacement:
    """The same meaning under another name."""
    return op.ScatterElements(*node.inputs, axis=op.attr("axis", 0))


@decomposition("ScatterElements", 11)
def scatter_elements(op: OpBuilder, node: ir.Node) -> Replacement:
    """The same meaning under another name; the axis counted from the front."""
    axis = op.attr("axis", 0)
    axis = axis if axis >= 0 else axis + op.need_rank(op.x())
    return op.Scatter(*node.inputs, axis=axis)


@decomposition("ScatterND", 11)
def scatter_rows(op: OpBuilder, _node: ir.Node) -> Replacement:
    """Place rows element by element."""
    rows, position = _rows(op)
    count = op.Concat(sizes(op, op.Shape(position), 0, 1), sizes(op, op.Shape(rows), 1, 2), axis=0)
    placed = op.Scatter(rows, op.Expand(position, count), op.Reshape(op.x(2), count), axis=0)
    return op.Reshape(placed, op.Shape(op.x(0)))


@decomposition("Scatter", 9)
def scatter_by_gathering(op: OpBuilder, _node: ir.Node) -> Replacement:
    """Gather every element from the data, or from the last update of its place; one by one where sizes are open."""
    if any(shape is None or None in shape for shape in (op.shape(op.x(0)), op.shape(op.x(1)))):
        return _written_one_by_one(op)
    data, picked = _fixed(op, 0), _fixed(op, 1)
    flat, updates = (op.Reshape(op.x(index), op.ints(-1)) for index in (0, 2))
    if not np.prod(picked):
        return op.x(0)
    return op.Reshape(placed(op, flat, updates, op.x(1), data, picked), op.ints(*data))


def _written_one_by_one(op: OpBuilder) -> ir.Value:
    """A Loop over the updates, each gathered into its place of the flattened data."""
    rank = op.need_rank(op.x(0))
    axis, data, picked = op.attr("axis", 0) % rank, op.Shape(op.x(0)), op.Shape(op.x(1))
    flat, updates = (op.Reshape(op.x(index), op.ints(-1)) for index in (0, 2))
    place = op.Mul(from_the_front(op, op.x(1), sizes(op, data, axis, axis + 1)), product(op, data, axis + 1, rank))
    for other in range(rank):
        if other != axis:
            along = numbers_along(op, picked, other, rank)
            place = op.Add(place, op.Mul(along, product(op, data, other + 1, rank)))
    place = op.Reshape(place, op.ints(-1))
    own, end = counted(op, product(op, data, 0, rank)), product(op, data, 0, rank)

    def write(body: OpBuilder, turn: ir.Value, sofar: ir.Value) -> list[ir.Value]:
        at = body.Reshape(turn, body.ints(1))
        here = body.Cast(body.Equal(own, body.Gather(place, at, axis=0)), to=int(ir.DataType.INT64))
        source = body.Add(own, body.Mul(here, body.Sub(end, own)))
        return [body.Gather(body.Concat(sofar, body.Gather(updates, at, axis=0), axis=0), source, axis=0)]

    written = loop(op, op.Size(op.x(1)), [flat], write, shapes=[ir.Shape([None])])[0]
    result: ir.Value = op.Reshape(written, data)
    return result


@decomposition("MaxUnpool", 9)
def unpool_by_gathering(op: OpBuilder, _node: ir.Node) -> Replacement:
    """Gather every element from the input, or from zeros."""
    if op.input(2) is not None:
        op.refuse("output_shape is not expressible before opset 9")
    picked, kernel = _fixed(op, 0), op.attr("kernel_shape")
    axes = len(kernel)
    strides, pads = op.attr("strides", [1] * axes), op.attr("pads", [0] * 2 * axes)
    sizes = [
        (size - 1) * stride + window - before - after
        for size, stride, window, before, after in zip(
            picked[2:], strides, kernel, pads[:axes], pads[axes:], strict=True
        )
    ]
    shape = [*picked[:2], *sizes]
    count = int(np.prod(shape))
    op.need_small(count)
    if not count:
        return op.const(np.zeros(shape), like=op.x(0))
    flat, indices = (op.Reshape(op.x(index), op.ints(-1)) for index in (0, 1))
    zeros = op.const(np.zeros(count), like=op.x(0))
    return op.Reshape(placed(op, zeros, flat, indices, [count], [int(np.prod(picked))]), op.ints(*shape))


def placed(
    op: OpBuilder, flat: ir.Value, updates: ir.Value, indices: ir.Value, data: list[int], picked: list[int]
) -> ir.Value:
    """Flattened data of shape ``data`` with flattened updates of shape ``picked`` put in at indices along the axis."""
    axis, known = op.attr("axis", 0) % len(data), op.known(indices)
    elements, count = int(np.prod(data)), int(np.prod(picked))
    op.need_small(elements * (1 if known is not None else count))
    stride, size = int(np.prod(data[axis + 1 :])), data[axis]
    steps = [0 if other == axis else int(np.prod(data[other + 1 :])) for other in range(len(data))]
    along = np.asarray(sum(grid * step for grid, step in zip(np.indices(picked), steps, strict=True)))
    own, number = np.arange(elements), np.arange(count)
    if known is not None:
        own[(along + np.where(known < 0, known + size, known) * stride).ravel()] = elements + number
        source = op.const(own)
    else:
        place = op.Add(op.Mul(from_the_front(op, indices, op.ints(size)), op.ints(stride)), op.const(along))
        hit = op.Cast(op.Equal(op.Reshape(place, op.ints(-1, 1)), op.const(own)), to=int(ir.DataType.INT64))
        beyond = op.Add(op.const(elements + number[:, None]), op.const(-own))  # how far back an update lies
        source = op.Add(op.const(own), op.ReduceMax(op.Mul(hit, beyond), axes=[0], keepdims=0))
    result: ir.Value = op.Gather(op.Concat(flat, updates, axis=0), source, axis=0)
    return result


def _fixed(op: OpBuilder, index: int) -> list[int]:
    shape = op.shape(op.x(index))
    if shape is None or None in shape:
        op.refuse("placing by index before opset 9 needs fixed shapes", hint="possible with fixed shapes")
    return [dim or 0 for dim in shape]
