"""Elements moved along axes, and what is put around them."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from entrepot.exporters.building import typed
from entrepot.exporters.keras.reading.step import Step, rank_of, shape_of
from entrepot.exporters.keras.reading.table import operation


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
