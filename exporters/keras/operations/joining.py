"""Tensors joined, split and repeated."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from entrepot.exporters.keras.reading.step import Step, rank_of
from entrepot.exporters.keras.reading.table import operation


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
