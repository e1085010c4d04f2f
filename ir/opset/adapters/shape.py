"""Operators that move elements without computing on them.

| operator | version | change |
|---|---|---|
| Reshape | 5 | ``shape`` is an input |
| | 14 | ``allowzero`` |
| Squeeze, Unsqueeze | 11 / 13 | negative axes / ``axes`` is an input |
| Shape | 15 | ``start``, ``end`` |
| Concat | 4 | ``axis`` is required |
| Tile | 6 | ``repeats`` instead of ``tiles`` and ``axis`` |
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from entrepot.ir.opset.adapters.parts.axes import negative_axes_allowed, negative_axis_allowed
from entrepot.ir.opset.adapters.parts.computed_axes import axis_by_axis, named
from entrepot.ir.opset.builder import EXACTLY_WIDER, OpBuilder
from entrepot.ir.opset.extents import Extents
from entrepot.ir.opset.rules import Replacement, adapter, added, decomposition, extended, unchanged

FLOATS = (ir.DataType.FLOAT16, ir.DataType.FLOAT, ir.DataType.DOUBLE)

unchanged("Reshape", 5, 13)
unchanged("Reshape", 14, 19, 21, 23, 24, 25)
unchanged("Transpose", 1, 13, 21, 23, 24, 25)
unchanged("Identity", 1, 13)
unchanged("Identity", 14, 16, 19, 21, 23, 24, 25)
extended("Identity", 13, 14)
unchanged("Expand", 8, 13)
unchanged("Tile", 6, 13)
unchanged("Size", 1, 13, 19, 21, 23, 24, 25)
unchanged("Shape", 1, 13)
unchanged("Shape", 15, 19, 21, 23, 24, 25)
unchanged("Flatten", 1, 9)
unchanged("Flatten", 11, 13, 21, 23, 24, 25)
unchanged("Concat", 11, 13)
for _name in ("Squeeze", "Unsqueeze"):
    unchanged(_name, 13, 21, 23, 24, 25)
negative_axis_allowed("Flatten", 9, 11, default=1)
negative_axis_allowed("Concat", 4, 11)
negative_axes_allowed("Squeeze", 1, 11)
extended("Unsqueeze", 1, 11)


@adapter("Reshape", 1, 5)
def reshape_to_input(op: OpBuilder, _node: ir.Node) -> Replacement:
    """Move ``shape`` to an input."""
    op.inputs(op.x(), op.attribute_as_input("shape"))
    return op.drop("shape", "consumed_inputs")


@adapter("Reshape", 5, 1)
def reshape_to_attribute(op: OpBuilder, _node: ir.Node) -> Replacement:
    """Move a known shape to an attribute."""
    shape = op.need_known(1, "the shape")
    op.inputs(op.x())
    return op.set(shape=shape.tolist())


def reshape_zero_means_zero(op: OpBuilder, _node: ir.Node) -> Replacement:
    """Drop ``allowzero`` where a zero means the same without it, else build the empty result another way."""
    x, shape = op.x(), op.x(1)
    known = op.known(shape)
    if known is not None and (known == 0).any():  # the result is empty: only its shape matters
        return op.ConstantOfShape(shape, value=ir.tensor(np.zeros(1, op.need_dtype(x).numpy())))
    if _no_zero_or_copied(op, x, shape):
        return op.drop("allowzero")
    return _reshape_then_empty(op, x, shape)


def _no_zero_or_copied(op: OpBuilder, x: ir.Value, shape: ir.Value) -> bool:
    """Whether each size is a number other than 0, or that of the same axis of ``x``, which a 0 would copy."""
    extents = Extents(op.around.known, op.around.types)
    sizes = extents.of(shape)
    return sizes is not None and all(
        (isinstance(size, int) and size != 0) or extents.same(size, x, axis) for axis, size in enumerate(sizes)
    )


def _reshape_then_empty(op: OpBuilder, x: ir.Value, shape: ir.Value) -> ir.Value:
    """Reshape with 1 in place of each 0, adding the elements that needs, then shrink those axes to nothing."""
    if op.need_dtype(x) == ir.DataType.STRING:
        op.refuse("an empty result is not expressible for strings", hint="possible if the shape is a constant")
    zeros = op.Equal(shape, op.ints(0))
    sizes = op.Where(zeros, op.ints(1), shape)
    is_empty = op.ReduceMax(op.Cast(zeros, to=int(ir.DataType.INT64)), axes=[0], keepdims=1)
    fill = op.ConstantOfShape(
        op.Mul(op.ReduceProd(sizes, axes=[0], keepdims=1), is_empty),
        value=ir.tensor(np.zeros(1, op.need_dtype(x).numpy())),
    )
    whole = op.Reshape(op.Concat(op.Reshape(x, op.ints(-1)), fill, axis=0), sizes)
    result: ir.Value = op.Expand(whole, op.Cast(op.Not(zeros), to=int(ir.DataType.INT64)))  # 1 broadcasts to 0 as well
    return result


added("Reshape", 13, 14, allowzero=0, otherwise=reshape_zero_means_zero)


@adapter("Unsqueeze", 11, 1)
def unsqueeze_from_the_front(op: OpBuilder, _node: ir.Node) -> Replacement:
    """Count the axes from the front; they count in the output."""
    axes = op.attr("axes")
    if not axes:
        return op.Identity(op.x())
    if min(axes) < 0:
        rank = op.need_rank(op.x()) + len(axes)
        op.set(axes=sorted(axis % rank for axis in axes))
    return None


@adapter("Squeeze", 11, 13)
@adapter("Unsqueeze", 11, 13)
def axes_to_input(op: OpBuilder, _node: ir.Node) -> Replacement:
    """Move ``axes`` to an input; absent stays absent."""
    op.inputs(op.x(), op.attribute_as_input("axes"))
    return op.drop("axes")


@adapter("Squeeze", 13, 11)
@adapter("Unsqueeze", 13, 11)
def axes_to_attribute(op: OpBuilder, node: ir.Node) -> Replacement:
    """Move known axes to an attribute; take computed ones each in turn."""
    if op.input(1) is None:
        return None
    known = op.known(op.x(1))
    if known is not None and not known.size and (node.op_type == "Unsqueeze" or _has_no_ones(op.shape(op.x()))):
        return op.Identity(op.x())
    if known is None and "value_ints" not in getattr(op.x(1).producer(), "attributes", {}):
        return _axis_by_axis(op, node.op_type)
    axes = op.input_as_attribute(1, "axes")
    op.inputs(op.x())
    op.node.attributes.add(axes)
    return None


def _has_no_ones(shape: list[int | None] | None) -> bool:
    """Whether no axes and all axes of size 1 are the same: evaluators disagree about an empty list."""
    return shape is not None and not {1, None}.intersection(shape)


def _axis_by_axis(op: OpBuilder, kind: str) -> ir.Value:
    x, axes = op.x(), op.x(1)
    shape = op.shape(axes)
    count = None if shape is None else [*shape, 1][0]
    if not count:
        op.refuse("how many axes are named is unknown", hint="possible with a fixed number of axes")
    adding = kind == "Unsqueeze"
    turns = named(op, axes, op.need_rank(x) + (count if adding else 0))

    def moved(body: OpBuilder, value: ir.Value, axis: int) -> ir.Value:
        result: ir.Value = body.emit(kind, [value], {"axes": [axis]})
        return result

    return axis_by_axis(op, x, turns, moved, first_to_last=adding)


@adapter("Shape", 13, 15)
def shape_whole(_op: OpBuilder, _node: ir.Node) -> Replacement:
    """Keep: all axes are the default."""
    return None


@adapter("Shape", 15, 13)
def shape_then_slice(op: OpBuilder, _node: ir.Node) -> Replacement:
    """Take the asked part of the whole shape."""
    start, end = op.attr("start", 0), op.attr("end")
    if start == 0 and end is None:
        return op.drop("start")
    last = np.iinfo(np.int64).max if end is None else end
    return op.Slice(op.Shape(op.x()), op.ints(start), op.ints(last))


@decomposition("Expand", 8)
def expand_by_tiling(op: OpBuilder, _node: ir.Node) -> Replacement:
    """Tile as often as both shapes say, known or computed; multiply by ones where not even the rank is known."""
    x, shape, own = op.x(), op.known(op.x(1)), op.shape(op.x())
    if shape is not None and own is not None and None not in own:
        sizes = [dim or 0 for dim in own]
        full = np.broadcast_shapes(tuple(sizes), tuple(shape.tolist()))
        more = len(full) - len(sizes)
        padded = [1] * more + sizes
        same_rank = op.Unsqueeze(x, axes=list(range(more))) if more else x
        return op.Tile(same_rank, op.ints(*(new // (old or 1) for new, old in zip(full, padded, strict=True))))
    if shape is not None and own is None:
        op.need_small(int(np.prod(shape)))
        return op.Mul(x, op.const(np.ones(shape.tolist()), like=x))
    return _tiled_to(op, x, op.x(1))


def _tiled_to(op: OpBuilder, x: ir.Value, shape: ir.Value) -> ir.Value:
    """Repeat the axes of one as often as a shape says, be it shorter or longer than that of ``x``."""
    length, rank = op.shape(shape), op.need_rank(x)
    if length is None or length[0] is None:
        op.refuse("the rank it expands to is unknown", hint="possible if the shape has a fixed length")
    more = length[0] - rank
    if more > 0:
        x = op.Unsqueeze(x, axes=list(range(more)))
    elif more < 0:
        shape = op.Concat(op.ints(*[1] * -more), shape, axis=0) if length[0] else op.ints(*[1] * rank)
    single = op.Cast(op.Equal(op.Shape(x), op.ints(1)), to=int(ir.DataType.INT64))
    repeats = op.Add(op.Mul(single, op.Sub(shape, op.ints(1))), op.ints(1))
    tiled: ir.Value = op.Tile(x, repeats) if max(length[0], rank) else x
    return tiled


@adapter("Concat", 1, 4)
def concat_axis_written(op: OpBuilder, _node: ir.Node) -> Replacement:
    """Write the old default out."""
    return op.set(axis=op.attr("axis", 1))


@adapter("Concat", 4, 1)
def concat_axis_optional(_op: OpBuilder, _node: ir.Node) -> Replacement:
    """Keep: the axis is always written."""
    return None


@adapter("Tile", 1, 6)
def tile_along_one_axis(op: OpBuilder, _node: ir.Node) -> Replacement:
    """Turn one count for a known axis into a count for every axis."""
    x = op.x()
    axis, rank = int(op.need_known(2, "axis").item()), op.need_rank(x)
    count = op.Reshape(op.Cast(op.x(1), to=int(ir.DataType.INT64)), op.ints(1))
    parts = [op.ints(*[1] * axis)] * bool(axis) + [count] + [op.ints(*[1] * (rank - axis - 1))] * (axis < rank - 1)
    return op.inputs(x, op.Concat(*parts, axis=0) if len(parts) > 1 else count)


@adapter("Tile", 6, 1)
def tile_axis_by_axis(op: OpBuilder, _node: ir.Node) -> Replacement:
    """One Tile per axis that repeats; both numbers are of the input's type, which is a float."""
    x, own = op.x(), op.need_dtype(op.x())
    repeats = op.need_known(1, "repeats").tolist()
    wide = own if own in FLOATS else _float_around(op, own)
    if any(int(wide.numpy().type(count)) != count for count in repeats):
        op.refuse(f"before version 6 counts are {wide.name.lower()}, which cannot hold {max(repeats)}")
    x = x if wide == own else op.Cast(x, to=int(wide))
    for axis, count in enumerate(repeats):
        if count != 1:
            x = op.Tile(x, op.const([count], dtype=wide), op.const([axis], dtype=wide))
    return x if wide == own else op.Cast(x, to=int(own))


def _float_around(op: OpBuilder, dtype: ir.DataType) -> ir.DataType:
    """The narrowest float that holds every value of another type."""
    found = [ir.DataType[name] for name in EXACTLY_WIDER.get(dtype.name, ()) if ir.DataType[name] in FLOATS]
    if not found:
        op.refuse(f"before version 6 only floats are repeated, and none holds every {dtype.name.lower()}")
    return found[0]
