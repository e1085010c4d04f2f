"""Reductions, ArgMax, ArgMin and TopK.

| version | Reduce* |
|---|---|
| 1 | ``axes`` an attribute, counted from the front |
| 11 | negative axes |
| 13 (ReduceSum), 18 (the others) | ``axes`` an input; ``noop_with_empty_axes`` |
| 28 (ReduceLogSum, ReduceLogSumExp) | no integer types |
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from entrepot.ir.opset.adapters.parts.axes import negative_axes_allowed, negative_axis_allowed
from entrepot.ir.opset.adapters.parts.computed_axes import axis_by_axis, named, total
from entrepot.ir.opset.adapters.parts.positions import counted
from entrepot.ir.opset.builder import OpBuilder
from entrepot.ir.opset.rules import Replacement, adapter, added, extended, keep, unchanged

REDUCTIONS = (
    "ReduceL1",
    "ReduceL2",
    "ReduceLogSum",
    "ReduceLogSumExp",
    "ReduceMax",
    "ReduceMean",
    "ReduceMin",
    "ReduceProd",
    "ReduceSum",
    "ReduceSumSquare",
)
AXES_MOVED = {name: (11, 13) if name == "ReduceSum" else (13, 18) for name in REDUCTIONS}

for _name in REDUCTIONS:
    negative_axes_allowed(_name, 1, 11)
for _name in ("ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMean", "ReduceProd", "ReduceSumSquare"):
    unchanged(_name, 11, 13)
for _name in ("ReduceMax", "ReduceMin"):
    unchanged(_name, 12, 13)
    extended(_name, 11, 12)
    extended(_name, 18, 20)

for _name in ("ArgMax", "ArgMin"):
    negative_axis_allowed(_name, 1, 11)
    unchanged(_name, 12, 13)

unchanged("TopK", 11, 24)


def axes_to_input(op: OpBuilder, _node: ir.Node) -> Replacement:
    """Move ``axes`` to an input; an empty list meant "all", as an absent input does."""
    axes = op.node.attributes.get("axes")
    if axes is not None and (axes.is_ref() or axes.as_ints()):
        op.inputs(op.x(), op.attribute_as_input("axes"))
    return op.drop("axes")


def axes_to_attribute(op: OpBuilder, node: ir.Node) -> Replacement:
    """Move known ``axes`` to an attribute; "no axes means do nothing" becomes the elementwise part alone."""
    axes = op.known(op.input(1)) if op.input(1) is not None else np.zeros(0, np.int64)
    if axes is None:
        return _axis_by_axis(op, node)
    if not axes.size and op.attr("noop_with_empty_axes", 0):
        return _elementwise_part(op, node)
    op.inputs(op.x())
    op.drop("noop_with_empty_axes")
    return op.set(axes=axes.tolist()) if axes.size else None


def _axis_by_axis(op: OpBuilder, node: ir.Node) -> ir.Value:
    """Reduce along each axis that is named at run time, one after the other."""
    dtype, kind = op.need_dtype(op.x()), node.op_type
    inexact = not dtype.is_floating_point() and kind in ("ReduceL2", "ReduceLogSum", "ReduceLogSumExp")
    x = op.Cast(op.x(), to=int(ir.DataType.DOUBLE)) if inexact else op.x()
    before, step, after = _IN_STEPS.get(kind, ("Identity", kind, "Identity"))
    started = op.Mul(x, x) if before == "Mul" else op.emit(before, [x], {})
    whole_mean = kind == "ReduceMean" and not dtype.is_floating_point()  # a mean of rounded means differs
    reduced = _reduced(op, started, "ReduceSum" if whole_mean else step)
    if whole_mean:
        return op.Div(reduced, op.Cast(op.Div(op.Size(x), op.Size(reduced)), to=int(dtype)))
    result: ir.Value = op.emit(after, [reduced], {})
    return op.Cast(result, to=int(dtype)) if inexact else result


_IN_STEPS = {
    "ReduceL1": ("Abs", "ReduceL1", "Identity"),
    "ReduceL2": ("Abs", "ReduceL2", "Identity"),
    "ReduceLogSum": ("Identity", "ReduceSum", "Log"),
    "ReduceSumSquare": ("Mul", "ReduceSum", "Identity"),
}
"""The step before reducing axis by axis, how each axis is reduced, and the step after."""


def _reduced(op: OpBuilder, x: ir.Value, kind: str) -> ir.Value:
    keepdims = op.attr("keepdims", 1)

    def along(body: OpBuilder, value: ir.Value, axis: int) -> ir.Value:
        if kind == "ReduceSum":
            return total(body, value, [axis], keepdims=keepdims)
        result: ir.Value = body.emit(kind, [value], {"axes": [axis], "keepdims": keepdims})
        return result

    all_if_none = not op.attr("noop_with_empty_axes", 0)
    turns = named(op, op.x(1), op.need_rank(op.x()), empty_means_all=all_if_none)
    return axis_by_axis(op, x, turns, along)


def _elementwise_part(op: OpBuilder, node: ir.Node) -> ir.Value:
    if node.op_type == "ReduceSumSquare":
        return op.Mul(op.x(), op.x())
    part = {"ReduceL1": "Abs", "ReduceL2": "Abs", "ReduceLogSum": "Log"}.get(node.op_type, "Identity")
    return op.emit(part, [op.x()], {})


for _name, (_older, _newer) in AXES_MOVED.items():
    adapter(_name, _older, _newer)(axes_to_input)
    adapter(_name, _newer, _older)(axes_to_attribute)


adapter("ReduceLogSum", 28, 18)(keep)
adapter("ReduceLogSumExp", 28, 18)(keep)


@adapter("ReduceLogSum", 18, 28)
@adapter("ReduceLogSumExp", 18, 28)
def logarithm_of_integers(op: OpBuilder, _node: ir.Node) -> Replacement:
    """Compute integers, which version 28 does not take, in double."""
    dtype = op.dtype(op.x())
    if dtype is None or dtype.is_floating_point():
        return None
    reduced = op.again(op.Cast(op.x(), to=int(ir.DataType.DOUBLE)), op.input(1))
    return op.Cast(reduced, to=int(dtype))


@adapter("ReduceMax", 20, 18)
@adapter("ReduceMin", 20, 18)
def extremes_of_booleans(op: OpBuilder, _node: ir.Node) -> Replacement:
    """Reduce booleans as uint8, whose extremes over no elements are the same."""
    if op.dtype(op.x()) != ir.DataType.BOOL:
        return None
    return op.Cast(op.again(op.Cast(op.x(), to=int(ir.DataType.UINT8)), op.input(1)), to=int(ir.DataType.BOOL))


@adapter("ReduceMax", 12, 11)
@adapter("ReduceMin", 12, 11)
def extremes_of_bytes(op: OpBuilder, _node: ir.Node) -> Replacement:
    """Reduce bytes in float, and bring infinite extremes over no elements back into their range."""
    dtype = op.dtype(op.x())
    if dtype not in (ir.DataType.INT8, ir.DataType.UINT8):
        return None
    reduced = op.again(op.Cast(op.x(), to=int(ir.DataType.FLOAT)))
    bounded = op.Max(reduced, op.const(np.float32(dtype.min)))
    return op.Cast(op.Min(bounded, op.const(np.float32(dtype.max))), to=int(dtype))


def reversed_selection(op: OpBuilder, node: ir.Node) -> Replacement:
    """The last of equal elements is the first along the reversed axis."""
    x, axis, keepdims = op.x(), op.attr("axis", 0), op.attr("keepdims", 1)
    backwards = op.Slice(x, op.ints(-1), op.ints(np.iinfo(np.int64).min + 1), op.ints(axis), op.ints(-1))
    index = op.emit(node.op_type, [backwards], {"axis": axis, "keepdims": keepdims})
    shape = op.shape(x)
    size = None if shape is None else shape[axis]
    last = op.const(np.int64(size - 1)) if size is not None else _last_index(op, x, axis)
    return op.Sub(last, index)


def _last_index(op: OpBuilder, x: ir.Value, axis: int) -> ir.Value:
    size = op.Squeeze(op.Gather(op.Shape(x), op.ints(axis), axis=0), axes=[0])
    return op.Sub(size, op.const(np.int64(1)))


for _name in ("ArgMax", "ArgMin"):
    added(_name, 11, 12, select_last_index=0, otherwise=reversed_selection)


@adapter("TopK", 1, 10)
def topk_size_to_input(op: OpBuilder, _node: ir.Node) -> Replacement:
    """Move ``k`` to an input."""
    op.inputs(op.x(), op.ints(op.attr("k")))
    return op.drop("k")


@adapter("TopK", 10, 1)
def topk_size_to_attribute(op: OpBuilder, node: ir.Node) -> Replacement:
    """Move a known ``k`` to an attribute, counting the axis from the front; sort everything for a computed one."""
    axis = op.attr("axis", -1)
    axis = axis if axis >= 0 else axis + op.need_rank(op.x())
    known = op.known(op.x(1))
    if known is None:
        return _cut_off(op, node, axis)
    if not known.item():
        op.refuse("K is 0, but before version 10 it has to be at least 1")
    return tuple(op.emit("TopK", [op.x()], {"k": int(known.item()), "axis": axis}, len(node.outputs)))


def _cut_off(op: OpBuilder, node: ir.Node, axis: int) -> Replacement:
    shape = op.shape(op.x())
    size = None if shape is None else shape[axis]
    if not size:
        op.refuse("K and the size of the axis are computed at run time", hint="possible if one of them is fixed")
    ordered = op.emit("TopK", [op.x()], {"k": size, "axis": axis}, len(node.outputs))
    first = counted(op, op.x(1))
    return tuple(op.Gather(value, first, axis=axis) for value in ordered)


def smallest(op: OpBuilder, node: ir.Node) -> Replacement:
    """The smallest are the largest of the negated; "unsorted" permits any order and demands none."""
    if op.attr("largest", 1):
        return op.drop("sorted", "largest")
    dtype, x = op.need_dtype(op.x()), op.x()
    if not dtype.is_floating_point():
        if dtype.bitwidth > 32:
            op.refuse(f"largest=0 on {dtype.short_name()} is not expressible before version 11", hint="Cast it first")
        x = op.Cast(x, to=int(ir.DataType.DOUBLE))
    values, indices = op.emit("TopK", [op.Neg(x), op.input(1)], {"axis": op.attr("axis", -1)}, len(node.outputs))
    smallest_first = op.Neg(values)
    return smallest_first if dtype.is_floating_point() else op.Cast(smallest_first, to=int(dtype)), indices


added("TopK", 10, 11, largest=1, sorted=1, otherwise=smallest)
