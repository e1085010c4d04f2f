"""Axes and shapes, joining and splitting, padding and repeating."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from entrepot.exporters.building import typed
from entrepot.exporters.keras.reading.step import Step, rank_of, shape_of
from entrepot.exporters.keras.reading.table import operation


@operation("Reshape")
def reshape(step: Step, x: Any) -> ir.Value:
    """Into a shape in which unknown sizes are those of the operand, in their order."""
    value = step.value(x)
    wanted = step.operation.newshape
    wanted = [wanted] if isinstance(wanted, int | ir.Value) or wanted is None else list(wanted)
    return step.reshaped(value, resolved(step, value, wanted))


def resolved(step: Step, value: ir.Value, wanted: list[Any]) -> list[Any]:
    """A shape without unknown sizes: one of them is left to the runtime, more are taken from the operand.

    Code that asks for sizes gets them from their axes, and mostly leaves them there.
    """
    unknown = [at for at, size in enumerate(wanted) if size is None]
    if not unknown or (len(unknown) == 1 and -1 not in wanted):
        return [-1 if size is None else size for size in wanted]
    source = [at for at, size in enumerate(shape_of(value)) if size is None]
    same = [at for at in unknown if at in source]
    rest = [at for at in source if at not in same]
    axes = {at: at for at in same} | dict(zip([at for at in unknown if at not in same], rest, strict=False))
    if len(axes) < len(unknown):
        raise step.refuse("it is not known which sizes its shape has")
    return [step.build.size(value, axes[at]) if size is None else size for at, size in enumerate(wanted)]


@operation("Ravel")
def ravel(step: Step, x: Any) -> ir.Value:
    """Everything in a row."""
    return step.reshaped(step.value(x), [-1])


@operation("Transpose")
def transpose(step: Step, x: Any) -> ir.Value:
    """Axes in another order, by default the reverse."""
    value, axes = step.value(x), step.operation.axes
    rank = rank_of(value)
    return step.transposed(value, [axis % rank for axis in (reversed(range(rank)) if axes is None else axes)])


@operation("Swapaxes")
def swapaxes(step: Step, x: Any) -> ir.Value:
    """Two axes exchanged."""
    value, given = step.value(x), step.operation
    order = list(range(rank_of(value)))
    order[given.axis1], order[given.axis2] = order[given.axis2], order[given.axis1]
    return step.transposed(value, order)


@operation("Moveaxis")
def moveaxis(step: Step, x: Any) -> ir.Value:
    """Axes at other places."""
    value, given = step.value(x), step.operation
    order = np.moveaxis(np.empty(range(rank_of(value))), given.source, given.destination).shape
    return step.transposed(value, list(order))


@operation("ExpandDims")
def expand_dims(step: Step, x: Any) -> ir.Value:
    """More axes of size 1."""
    axis = step.operation.axis
    return step.op("Unsqueeze", step.value(x), [axis] if isinstance(axis, int) else list(axis))


@operation("Squeeze")
def squeeze(step: Step, x: Any) -> ir.Value:
    """Without axes of size 1."""
    value, axis = step.value(x), step.operation.axis
    if axis is None:
        axis = [at for at, size in enumerate(shape_of(value)) if size == 1]
    return step.op("Squeeze", value, [axis] if isinstance(axis, int) else list(axis))


@operation("Concatenate")
def concatenate(step: Step, xs: Any) -> ir.Value:
    """One after the other; everything in a row if there is no axis."""
    axis, values = step.operation.axis, [step.value(x, step.dtype) for x in xs]
    if axis is None:
        values, axis = [step.reshaped(value, [-1]) for value in values], 0
    return step.op("Concat", *values, axis=axis)


@operation("Append")
def append(step: Step, x1: Any, x2: Any) -> ir.Value:
    """One after the other."""
    return concatenate(step, [x1, x2])


@operation("Stack")
def stack(step: Step, x: Any) -> ir.Value:
    """Along a new axis."""
    axis = step.operation.axis
    return step.op("Concat", *(step.op("Unsqueeze", step.value(each, step.dtype), [axis]) for each in x), axis=axis)


@operation("Hstack", "Vstack", "Dstack")
def stacks(step: Step, xs: Any) -> ir.Value:
    """Side by side, one below the other, one behind the other."""
    name, rank = type(step.operation).__name__, rank_of(step.value(xs[0]))
    values = [step.value(x, step.dtype) for x in xs]
    if name == "Hstack":
        return step.op("Concat", *values, axis=0 if rank < 2 else 1)
    if name == "Vstack":
        values = [step.reshaped(value, [1, -1]) if rank < 2 else value for value in values]
        return step.op("Concat", *values, axis=0)
    if rank < 3:
        shape = [1, -1, 1] if rank < 2 else None
        values = [step.reshaped(v, shape) if shape else step.op("Unsqueeze", v, [2]) for v in values]
    return step.op("Concat", *values, axis=2)


@operation("Split", "ArraySplit", "Hsplit", "Vsplit", "Dsplit")
def split(step: Step, x: Any) -> list[ir.Value]:
    """Into equal parts, or at places."""
    value, name = step.value(x), type(step.operation).__name__
    along = {"Hsplit": 1 if rank_of(value) > 1 else 0, "Vsplit": 0, "Dsplit": 2}
    axis = along[name] if name in along else int(step.operation.axis)
    sizes = [spec.shape[axis] for spec in step.results]
    if len(sizes) == 1:
        return [value]
    if None in sizes:
        return list(step.op("Split", value, outputs=len(sizes), axis=axis, num_outputs=len(sizes)))
    return list(step.op("Split", value, sizes, outputs=len(sizes), axis=axis))


@operation("Unstack")
def unstack(step: Step, x: Any) -> list[ir.Value]:
    """The members along an axis."""
    value, axis = step.value(x), step.operation.axis
    return [step.op("Gather", value, np.array(at, np.int64), axis=axis) for at in range(len(step.results))]


@operation("Tile")
def tile(step: Step, x: Any) -> ir.Value:
    """Several times along each axis."""
    value, repeats = step.value(x), step.operation.repeats
    repeats = [repeats] if isinstance(repeats, int | ir.Value) else list(repeats)
    missing = len(repeats) - rank_of(value)
    if missing > 0:
        value = step.op("Unsqueeze", value, list(range(missing)))
    return step.op("Tile", value, step.vector([1] * max(-missing, 0) + repeats))


@operation("Repeat")
def repeat(step: Step, x: Any) -> ir.Value:
    """Each element several times."""
    value, repeats, axis = step.value(x), step.operation.repeats, step.operation.axis
    if axis is None:
        value, axis = step.reshaped(value, [-1]), 0
    axis %= rank_of(value)
    if isinstance(repeats, ir.Value):
        raise step.refuse("how often it repeats is computed")
    counts = np.asarray(repeats).reshape(-1)
    if counts.size > 1:
        return step.op("Gather", value, np.repeat(np.arange(counts.size), counts), axis=axis)
    times, sizes = int(counts[0]), step.sizes(value)
    wide = step.op(
        "Tile", step.op("Unsqueeze", value, [axis + 1]), [*([1] * (axis + 1)), times, *[1] * len(sizes[axis + 1 :])]
    )
    unknown = [size if isinstance(size, int) else 0 for size in sizes]  # 0 keeps what the operand has there
    shape = [*unknown[:axis], sizes[axis] * times if isinstance(sizes[axis], int) else -1, *sizes[axis + 1 :]]
    return step.reshaped(wide, [size if at <= axis else sizes[at] for at, size in enumerate(shape)])


@operation("BroadcastTo")
def broadcast_to(step: Step, x: Any) -> ir.Value:
    """Repeated to a shape."""
    return step.op("Expand", step.value(x), step.vector(resolved(step, step.value(x), list(step.operation.shape))))


@operation("Flip", "Fliplr", "Flipud")
def flip(step: Step, x: Any) -> ir.Value:
    """Backwards along axes."""
    value, name = step.value(x), type(step.operation).__name__
    axis = {"Fliplr": 1, "Flipud": 0}[name] if name != "Flip" else step.operation.axis
    axes = list(range(rank_of(value))) if axis is None else [axis] if isinstance(axis, int) else list(axis)
    least = [np.iinfo(np.int64).min] * len(axes)
    return step.op("Slice", value, [-1] * len(axes), least, axes, [-1] * len(axes))


@operation("Rot90")
def rot90(step: Step, array: Any) -> ir.Value:
    """Quarters of a turn."""
    value, (first, second), turns = step.value(array), step.operation.axes, step.operation.k % 4
    rank, least = rank_of(value), np.iinfo(np.int64).min
    order = list(range(rank))
    order[first], order[second] = order[second], order[first]

    def turned(item: ir.Value, axis: int) -> ir.Value:
        return typed(step.op("Slice", item, [-1], [least], [axis], [-1]), item.dtype, shape_of(item))

    if turns == 2:
        return turned(turned(value, first), second)
    if turns == 1:
        return step.transposed(turned(value, second), order)
    return turned(step.transposed(value, order), second) if turns == 3 else value


@operation("Roll")
def roll(step: Step, x: Any) -> ir.Value:
    """Around, along axes; through everything in a row if there is none."""
    value, given = step.value(x), step.operation
    if given.axis is None:
        whole = _rolled(step, step.reshaped(value, [-1]), given.shift, 0)
        return step.op("Reshape", whole, step.build.shape(value))
    axes = [given.axis] if isinstance(given.axis, int) else list(given.axis)
    shifts = [given.shift] * len(axes) if isinstance(given.shift, int) else list(given.shift)
    for shift, axis in zip(shifts, axes, strict=True):
        value = _rolled(step, value, shift, axis)
    return value


def _rolled(step: Step, value: ir.Value, shift: int, axis: int) -> ir.Value:
    size = step.op("Shape", value, start=axis, end=axis + 1 if axis != -1 else None)
    cut = step.op("Mod", step.op("Sub", size, [shift]), size)
    ends = step.op("Slice", value, cut, size, [axis]), step.op("Slice", value, [0], cut, [axis])
    return typed(step.op("Concat", *ends, axis=axis), value.dtype, shape_of(value))


@operation("Pad")
def pad(step: Step, x: Any, constant_values: Any = None) -> ir.Value:
    """With a constant, with what is at the edge, or with what is inside."""
    value, given = step.value(x), step.operation
    modes = {"constant": "constant", "reflect": "reflect", "edge": "edge", "wrap": "wrap"}
    width = np.broadcast_to(np.asarray(given.pad_width), (rank_of(value), 2))
    if given.mode == "symmetric":
        return _symmetric(step, value, width)
    if given.mode not in modes:
        raise step.refuse(f"padding mode '{given.mode}'")
    filler = None if constant_values is None else step.value(constant_values, value.dtype)
    return step.op("Pad", value, width.T.reshape(-1).tolist(), filler, mode=given.mode)


def _symmetric(step: Step, value: ir.Value, width: np.ndarray[Any, Any]) -> ir.Value:
    """With what is inside, the edge included: where the width is no larger than the size."""
    least = np.iinfo(np.int64).min
    for axis, (before, after) in enumerate(width.tolist()):
        parts = [value]
        if before:
            parts.insert(0, step.op("Slice", value, [before - 1], [least], [axis], [-1]))
        if after:
            parts.append(step.op("Slice", value, [-1], [-after - 1], [axis], [-1]))
        value = step.op("Concat", *parts, axis=axis) if len(parts) > 1 else value
    return value


@operation("GetItem")
def get_item(step: Step, x: Any, key: Any) -> ir.Value:
    """Numbers, slices, new axes, an ellipsis."""
    value = step.value(x)
    keys = list(key) if isinstance(key, tuple | list) else [key]
    if any(isinstance(each, ir.Value) for each in keys):
        return _picked(step, value, keys)
    known = sum(each is not None and each is not Ellipsis for each in keys)
    at = next((i for i, each in enumerate(keys) if each is Ellipsis), len(keys))
    fill = [slice(None)] * (rank_of(value) - known)
    keys = [*keys[:at], *fill, *keys[at + 1 :]]
    slices, dropped, added = _plan(keys)
    if slices:
        axes, starts, ends, steps = (list(part) for part in zip(*slices, strict=True))
        value = step.op("Slice", value, starts, ends, axes, steps)
    value = step.op("Squeeze", value, dropped) if dropped else value
    return step.op("Unsqueeze", value, added) if added else step.op("Identity", value)


def _plan(keys: list[Any]) -> tuple[list[tuple[int, int, int, int]], list[int], list[int]]:
    """Slices by axis, axes that go, axes that come."""
    most = np.iinfo(np.int64).max
    slices, dropped, added = [], [], []
    axis = place = 0
    for key in keys:
        if key is None:
            added.append(place)
            place += 1
            continue
        if isinstance(key, slice):
            stride = 1 if key.step is None else int(key.step)
            start = (0 if stride > 0 else -1) if key.start is None else int(key.start)
            end = (most if stride > 0 else -most) if key.stop is None else int(key.stop)
            if (start, end, stride) != (0, most, 1):
                slices.append((axis, start, end, stride))
            place += 1
        else:
            slices.append((axis, int(key), most if int(key) == -1 else int(key) + 1, 1))
            dropped.append(axis)
        axis += 1
    return slices, dropped, added


def _picked(step: Step, value: ir.Value, keys: list[Any]) -> ir.Value:
    if len(keys) != 1:
        raise step.refuse("an index that is computed beside others")
    return step.op("Gather", value, step.value(keys[0], np.int64), axis=0)


@operation("Diff")
def diff(step: Step, a: Any) -> ir.Value:
    """Each element without the one before."""
    value, axis = step.value(a), step.operation.axis
    most = np.iinfo(np.int64).max
    for _ in range(step.operation.n):
        value = step.op("Sub", step.op("Slice", value, [1], [most], [axis]), step.op("Slice", value, [0], [-1], [axis]))
    return value


@operation("Meshgrid")
def meshgrid(step: Step, *x: Any) -> list[ir.Value]:
    """Coordinates over a grid."""
    values = [step.reshaped(step.value(each), [-1]) for each in x]
    order = list(range(len(values)))
    if step.operation.indexing == "xy" and len(values) > 1:
        order[0], order[1] = 1, 0
    sizes = [step.op("Shape", values[at]) for at in order]
    target = step.op("Concat", *sizes, axis=0)
    places = [order.index(at) for at in range(len(values))]
    shapes = [[-1 if axis == place else 1 for axis in range(len(values))] for place in places]
    return [step.op("Expand", step.reshaped(value, shape), target) for value, shape in zip(values, shapes, strict=True)]


@operation("Tril", "Triu")
def triangle(step: Step, x: Any) -> ir.Value:
    """What is below or above a diagonal."""
    value = step.value(x)
    kind = value.dtype
    narrow = step.build.cast(value, np.int32) if kind == ir.DataType.BOOL else value
    upper = int(type(step.operation).__name__ == "Triu")
    result = step.op("Trilu", narrow, step.build.constant(int(step.operation.k), "int64"), upper=upper)
    return step.build.cast(result, kind)


@operation("Diagonal", "Trace")
def diagonal(step: Step, x: Any) -> ir.Value:
    """The elements of a diagonal, whose axes have known sizes; their sum."""
    value, given = step.value(x), step.operation
    rank = rank_of(value)
    axes = given.axis1 % rank, given.axis2 % rank
    value = step.transposed(value, [*(at for at in range(rank) if at not in axes), *axes])
    rows, columns = shape_of(value)[-2:]
    if rows is None or columns is None:
        raise step.refuse("a diagonal of a matrix whose size varies")
    places = [r * columns + r + given.offset for r in range(rows) if 0 <= r + given.offset < columns]
    flat = step.reshaped(value, [*(0 for _ in range(rank - 2)), -1])
    found = step.op("Gather", flat, np.array(places, np.int64), axis=-1)
    if type(given).__name__ == "Diagonal":
        return found
    return step.op("ReduceSum", step.build.cast(found, step.dtype), [-1], keepdims=0)


@operation("DepthToSpace", "SpaceToDepth")
def blocks(step: Step, x: Any) -> ir.Value:
    """Channels as pixels of a block, or the other way."""
    value, given, name = step.value(x), step.operation, type(step.operation).__name__
    last = given.data_format == "channels_last"
    if last:
        value = step.transposed(value, [0, 3, 1, 2])
    if name == "DepthToSpace":
        result = step.op("DepthToSpace", value, blocksize=given.block_size, mode="DCR")
    else:
        result = step.op("SpaceToDepth", value, blocksize=given.block_size)
    typed(result, value.dtype, [None] * 4)
    return step.transposed(result, [0, 2, 3, 1]) if last else result
