"""Axes and sizes: other shapes of the same elements."""

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


@operation("BroadcastTo")
def broadcast_to(step: Step, x: Any) -> ir.Value:
    """Repeated to a shape."""
    return step.op("Expand", step.value(x), step.vector(resolved(step, step.value(x), list(step.operation.shape))))


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
