"""Split, Slice and Pad: operators whose numbers moved from attributes to inputs.

| operator | version | change |
|---|---|---|
| Split | 2 | no second input |
| | 13 | ``split`` is an input |
| | 18 | ``num_outputs``, and parts may be uneven |
| Slice | 10 | ``starts``, ``ends``, ``axes`` are inputs; ``steps`` |
| Pad | 2 | ``paddings`` renamed ``pads``, which may be negative |
| | 11 | ``pads`` and the value are inputs |
| | 18 | ``axes`` |
| | 19 | mode ``wrap`` |
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from entrepot.ir.opset.adapters.parts.axes import negative_axis_allowed
from entrepot.ir.opset.adapters.parts.computed_positions import all_pads, padded, sliced
from entrepot.ir.opset.adapters.parts.positions import from_the_front
from entrepot.ir.opset.builder import OpBuilder
from entrepot.ir.opset.folding import slice_positions
from entrepot.ir.opset.rules import Replacement, adapter, extended, unchanged

unchanged("Slice", 11, 13)
unchanged("Pad", 11, 13)
unchanged("Pad", 19, 21, 23, 24, 25)
extended("Slice", 10, 11)
extended("Pad", 13, 18)
extended("Pad", 18, 19)
negative_axis_allowed("Split", 2, 11)

INT64_MAX = np.iinfo(np.int64).max


@adapter("Split", 1, 2)
def split_sizes_to_attribute(op: OpBuilder, _node: ir.Node) -> Replacement:
    """Turn a known second input into the attribute; the axis had no default."""
    if op.input(1) is not None:
        op.set(split=op.need_known(1, "split").astype(np.int64).tolist())
        op.inputs(op.x())
    return op.set(axis=op.attr("axis", 0))


@adapter("Split", 2, 1)
def split_axis_written(op: OpBuilder, _node: ir.Node) -> Replacement:
    """Write the default out, which version 1 does not have."""
    return op.set(axis=op.attr("axis", 0))


@adapter("Split", 11, 13)
def split_to_input(op: OpBuilder, _node: ir.Node) -> Replacement:
    """Move ``split`` to an input."""
    op.inputs(op.x(), op.attribute_as_input("split"))
    return op.drop("split")


@adapter("Split", 13, 11)
def split_to_attribute(op: OpBuilder, node: ir.Node) -> Replacement:
    """Move known sizes to an attribute; computed ones become slices."""
    if op.input(1) is None:
        return None
    if op.known(op.x(1)) is None:
        return _as_slices(op, node)
    sizes = op.input_as_attribute(1, "split")
    op.inputs(op.x())
    op.node.attributes.add(sizes)
    return None


def _as_slices(op: OpBuilder, node: ir.Node) -> Replacement:
    x, axis = op.x(), op.ints(op.attr("axis", 0))
    start, parts = op.ints(0), []
    for index in range(len(node.outputs)):
        end = op.Add(start, op.Slice(op.x(1), op.ints(index), op.ints(index + 1)))
        parts.append(op.Slice(x, start, end, axis))
        start = end
    return parts


@adapter("Split", 13, 18)
def split_counted(op: OpBuilder, node: ir.Node) -> Replacement:
    """Write the number of parts, which is required without sizes."""
    if op.input(1) is None:
        op.set(num_outputs=len(node.outputs))


@adapter("Split", 18, 13)
def split_sized(op: OpBuilder, node: ir.Node) -> Replacement:
    """Write out uneven sizes: without sizes, version 13 only splits evenly."""
    count = op.attr("num_outputs")
    op.drop("num_outputs")
    if count is None or op.input(1) is not None:
        return None
    if count != len(op.node.outputs):
        op.refuse(f"num_outputs={count} but it has {len(op.node.outputs)} outputs")
    x, axis = op.x(), op.attr("axis", 0)
    shape = op.shape(x)
    size = None if shape is None else shape[axis]
    if size is None:
        return op.inputs(x, _computed_sizes(op, x, axis, count))
    chunk = -(-size // count)
    if size % count:
        op.inputs(x, op.ints(*[chunk] * (count - 1), size - chunk * (count - 1)))
    return None


def _computed_sizes(op: OpBuilder, x: ir.Value, axis: int, count: int) -> ir.Value:
    size = op.Slice(op.Shape(x), op.ints(axis), op.ints(axis + 1 or INT64_MAX))
    chunk = op.Div(op.Add(size, op.ints(count - 1)), op.ints(count))
    last = op.Sub(size, op.Mul(chunk, op.ints(count - 1)))
    return op.Concat(*[chunk] * (count - 1), last, axis=0) if count > 1 else size


@adapter("Slice", 1, 10)
def slice_to_inputs(op: OpBuilder, _node: ir.Node) -> Replacement:
    """Move the numbers to inputs."""
    op.inputs(op.x(), *(op.attribute_as_input(name) for name in ("starts", "ends", "axes")))
    return op.drop("starts", "ends", "axes")


@adapter("Slice", 11, 10)
def slice_from_the_front(op: OpBuilder, _node: ir.Node) -> Replacement:
    """Count axes from the front."""
    if op.input(3) is None:
        return None
    axes = op.known(op.x(3))
    if axes is None:
        return op.inputs(op.x(0), op.x(1), op.x(2), _counted_from_the_front(op), op.input(4))
    if (axes < 0).any():
        positive = op.const(axes % op.need_rank(op.x()), dtype=op.dtype(op.x(3)))
        op.inputs(op.x(0), op.x(1), op.x(2), positive, op.input(4))
    return None


def _counted_from_the_front(op: OpBuilder) -> ir.Value:
    axes, rank = op.x(3), op.rank(op.x(0))
    count = op.Shape(op.Shape(op.x(0))) if rank is None else op.ints(rank)
    result: ir.Value = op.Cast(from_the_front(op, axes, count), to=int(op.need_dtype(axes)))
    return result


@adapter("Slice", 10, 1)
def slice_to_attributes(op: OpBuilder, _node: ir.Node) -> Replacement:
    """Move known numbers to attributes; with steps, or where one is computed, gather positions instead."""
    x, starts, ends, axes, steps = op.x(), *(op.known(op.input(index)) for index in range(1, 5))
    if starts is None or ends is None or (axes is None and op.input(3)) or (steps is None and op.input(4)):
        return sliced(op, x)
    if not starts.size:
        return op.Identity(x)
    axes = np.arange(len(starts)) if axes is None else axes
    steps = np.ones_like(starts) if steps is None else steps
    if (steps == 1).all():
        op.inputs(x)
        return op.set(starts=starts.tolist(), ends=ends.tolist(), axes=axes.tolist())
    if ((steps < 0) & (ends >= np.iinfo(np.int32).max)).any():
        op.refuse(
            "runtimes disagree about slicing backwards to the largest number", hint="let it end at the smallest number"
        )
    shape = op.shape(x)
    for start, end, axis, step in zip(starts.tolist(), ends.tolist(), axes.tolist(), steps.tolist(), strict=True):
        size = None if shape is None else shape[axis]
        if size is None:
            return sliced(op, op.x())
        x = op.Gather(x, op.const(slice_positions(size, start, end, step)), axis=axis)
    return x


@adapter("Pad", 1, 2)
def pad_renamed(op: OpBuilder, _node: ir.Node) -> Replacement:
    """``paddings`` became ``pads``."""
    op.set(pads=op.attr("paddings"))
    return op.drop("paddings")


@adapter("Pad", 2, 1)
def pad_renamed_back(op: OpBuilder, _node: ir.Node) -> Replacement:
    """``pads`` was ``paddings``, and could only add; what negative pads remove is cut off afterwards."""
    pads = op.attr("pads")
    if min(pads, default=0) < 0:
        if op.attr("mode", "constant") != "constant":
            op.refuse("negative pads are not expressible before version 2")
        return _cut(op, op.again(op.x(), drop=["pads"], paddings=[max(0, width) for width in pads]), pads)
    op.set(paddings=pads)
    return op.drop("pads")


def _cut(op: OpBuilder, x: ir.Value, pads: list[int]) -> ir.Value:
    sides = list(zip(pads[: len(pads) // 2], pads[len(pads) // 2 :], strict=True))
    axes = [axis for axis, widths in enumerate(sides) if min(widths) < 0]
    starts = [max(0, -sides[axis][0]) for axis in axes]
    ends = [min(0, sides[axis][1]) or INT64_MAX for axis in axes]
    cut: ir.Value = op.Slice(x, axes=axes, starts=starts, ends=ends)
    return cut


@adapter("Pad", 2, 11)
def pad_to_inputs(op: OpBuilder, _node: ir.Node) -> Replacement:
    """Move the widths to an input, and a value other than 0 in the input's own type."""
    value = op.attr("value", 0.0)
    op.inputs(op.x(), op.attribute_as_input("pads"), op.const(value, like=op.x()) if value else None)
    return op.drop("pads", "value")


@adapter("Pad", 11, 2)
def pad_to_attributes(op: OpBuilder, _node: ir.Node) -> Replacement:
    """Move known widths and value to attributes; gather for computed ones and for values that no float holds."""
    pads, value = op.known(op.x(1)), op.input(2) if op.attr("mode", "constant") == "constant" else None
    number = 0.0 if value is None else _as_float(op.known(value))
    if pads is None or number is None or op.dtype(op.x()) in _HELD_BY_NO_FLOAT:
        return padded(op, op.x(), op.x(1))
    if value is not None:
        op.set(value=number)
    op.inputs(op.x())
    return op.set(pads=pads.tolist())


_HELD_BY_NO_FLOAT = (
    ir.DataType.INT64,
    ir.DataType.UINT64,
    ir.DataType.STRING,
    ir.DataType.COMPLEX64,
    ir.DataType.COMPLEX128,
)
"""Element types that Pad did not take, and that no type it took can stand in for."""


def _as_float(value: np.ndarray[Any, Any] | None) -> float | None:
    """A value in single precision, or ``None`` where that would change it: a double, a large integer, a string."""
    if value is None or value.dtype.kind in "OUSc":
        return None
    with np.errstate(over="ignore"):
        single = value.astype(np.float32)
    same = single.astype(value.dtype) == value or np.isnan(single)
    return single.item() if same and np.isfinite(single) == np.isfinite(value.astype(np.float64)) else None


@adapter("Pad", 18, 13)
def pad_all_axes(op: OpBuilder, _node: ir.Node) -> Replacement:
    """Write the widths of all axes, 0 for those not named."""
    if op.input(3) is None:
        return None
    rank, axes = op.need_rank(op.x()), op.known(op.x(3))
    if axes is None:
        return op.inputs(op.x(), all_pads(op, rank), op.input(2))
    axes = axes % rank
    pads, count = op.known(op.x(1)), len(axes)
    if pads is not None:
        full = np.zeros((2, rank), np.int64)
        full[:, axes] = pads.reshape(2, count)
        return op.inputs(op.x(), op.ints(*full.ravel().tolist()), op.input(2))
    zero, place = op.ints(0), {int(axis): index for index, axis in enumerate(axes)}
    parts = [
        op.Slice(op.x(1), op.ints(side * count + place[axis]), op.ints(side * count + place[axis] + 1))
        if axis in place
        else zero
        for side in (0, 1)
        for axis in range(rank)
    ]
    return op.inputs(op.x(), op.Concat(*parts, axis=0), op.input(2))


@adapter("Pad", 19, 18)
def pad_without_wrap(op: OpBuilder, _node: ir.Node) -> Replacement:
    """Gather from where the positions lie modulo the size of their axis."""
    if op.attr("mode", "constant") != "wrap":
        return None
    pads = op.x(1) if op.input(3) is None else all_pads(op, op.need_rank(op.x()))
    return padded(op, op.x(), pads)
