"""Slices at places that are known when the graph runs."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from entrepot.exporters.jax.dims import is_known
from entrepot.exporters.jax.primitives.shapes import along
from entrepot.exporters.jax.step import Step
from entrepot.exporters.jax.table import rule


def _same(one: Any, other: Any) -> bool:
    return is_known(one) == is_known(other) and str(one) == str(other)


def _start(step: Step, start: ir.Value, size: Any, part: Any) -> ir.Value:
    """A start moved to where the part lies inside of the axis, ``int64[1]``."""
    room = step.sizes.value(size - part)
    zero = step.build.constant(np.array(0, np.int64))
    inside = step.op("Max", step.op("Min", step.build.cast(start, np.int64), room), zero)
    return step.op("Unsqueeze", inside, [0])


@rule("dynamic_slice")
def dynamic_slice(step: Step, x: ir.Value, *starts: ir.Value) -> ir.Value:
    """Slice, of the axes of which only a part is taken."""
    shape, sizes = step.ins[0].shape, step.outs[0].shape
    axes = [axis for axis in range(len(shape)) if not _same(shape[axis], sizes[axis])]
    if not axes:
        return x
    begins = [_start(step, starts[axis], shape[axis], sizes[axis]) for axis in axes]
    begin = begins[0] if len(begins) == 1 else step.op("Concat", *begins, axis=0)
    end = step.op("Add", begin, step.sizes.vector([sizes[axis] for axis in axes]))
    return step.op("Slice", x, begin, end, axes)


@rule("dynamic_update_slice")
def dynamic_update_slice(step: Step, x: ir.Value, update: ir.Value, *starts: ir.Value) -> ir.Value:
    """What is before the part, the part, what is after it; for several axes, element by element."""
    shape, sizes = step.ins[0].shape, step.ins[1].shape
    axes = [axis for axis in range(len(shape)) if not _same(shape[axis], sizes[axis])]
    if not axes:
        return update
    begins = [_start(step, starts[axis], shape[axis], sizes[axis]) for axis in axes]
    if len(axes) == 1:
        (axis,), (begin,) = axes, begins
        end = step.op("Add", begin, step.sizes.vector([sizes[axis]]))
        before = step.op("Slice", x, [0], begin, [axis])
        after = step.op("Slice", x, end, [2**62], [axis])
        return step.op("Concat", before, update, after, axis=axis)
    places = []
    for axis in range(len(shape)):
        run = along(step, sizes[axis])
        run = step.op("Add", run, begins[axes.index(axis)]) if axis in axes else run
        lined = step.op("Unsqueeze", run, [at for at in range(len(shape)) if at != axis])
        places.append(step.op("Unsqueeze", step.expanded(lined, sizes), [-1]))
    return step.op("ScatterND", x, step.op("Concat", *places, axis=-1), update)
