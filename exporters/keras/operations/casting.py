"""Other types, and what leaves real numbers as they are."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import onnx_ir as ir

from entrepot.exporters.functions.bits import following, recast
from entrepot.exporters.keras.dtypes import is_float
from entrepot.exporters.keras.reading.step import Step
from entrepot.exporters.keras.reading.table import operation


@operation("Cast", "SaturateCast")
def cast(step: Step, x: Any) -> ir.Value:
    """Into another type; with saturation, within its bounds."""
    value = step.value(x)
    saturates = type(step.operation).__name__ == "SaturateCast" and value.dtype != ir.DataType.BOOL
    if saturates and not is_float(step.dtype) and step.dtype != ir.DataType.BOOL:
        info = np.iinfo(step.dtype.numpy())
        value = step.op("Clip", value, *(step.value(bound, value.dtype) for bound in (info.min, info.max)))
    if is_float(value.dtype) and not is_float(step.dtype) and step.dtype not in _PLAIN:
        value = step.build.cast(value, np.int64)  # narrow integers wrap around, as frameworks let them
    return step.build.cast(value, step.dtype)


_PLAIN = (ir.DataType.BOOL, ir.DataType.INT32, ir.DataType.INT64)


@operation("StopGradient", "Copy", "ConvertToTensor", "Array", "Conjugate", "Conj", "Real")
def same(step: Step, x: Any) -> ir.Value:
    """The value itself, in the type of the result."""
    return step.op("Identity", step.value(x, step.dtype))


@operation("Imag", "Angle")
def of_reals(step: Step, x: Any) -> ir.Value:
    """Of real numbers: no imaginary part, and an angle of zero or half a turn."""
    value = step.value(x, step.dtype)
    if type(step.operation).__name__ == "Imag":
        return step.op("Mul", value, 0.0)
    return step.op("Where", step.op("Less", value, 0.0), step.value(math.pi, step.dtype), step.value(0.0, step.dtype))


@operation("View")
def view(step: Step, x: Any) -> ir.Value:
    """The same bits as numbers of another type; the last axis has more of them, or fewer, if their size is another."""
    value = step.value(x)
    assert value.dtype is not None
    old, new = value.dtype.numpy(), step.dtype.numpy()
    before = step.build.shape(value, 0, -1)
    if new.itemsize > old.itemsize:
        value = _reshaped(step, value, before, [-1, new.itemsize // old.itemsize])
    found = recast(step.build, value, old, new)
    return _reshaped(step, found, before, [-1]) if new.itemsize < old.itemsize else found


def _reshaped(step: Step, value: ir.Value, before: ir.Value, behind: list[int]) -> ir.Value:
    made: ir.Value = step.op("Reshape", value, step.op("Concat", before, np.array(behind), axis=0))
    return made


@operation("Nextafter")
def next_after(step: Step, x1: Any, x2: Any) -> ir.Value:
    """The next number towards another."""
    return following(step.build, step.value(x1, step.dtype), step.value(x2, step.dtype), step.dtype.numpy())
