"""Bounds, conditions, and numbers that are none."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from entrepot.exporters.keras.dtypes import is_float
from entrepot.exporters.keras.reading.step import Step
from entrepot.exporters.keras.reading.table import operation


@operation("Clip")
def clip(step: Step, x: Any) -> ir.Value:
    """Between two bounds, in the type of the result; a bound may be left out."""
    value = step.value(x, step.dtype)
    for name, bound in (("Max", step.operation.x_min), ("Min", step.operation.x_max)):
        value = value if bound is None else step.op(name, value, step.value(bound, step.dtype))
    return value


@operation("Where")
def where(step: Step, condition: Any, x1: Any = None, x2: Any = None) -> ir.Value:
    """One of two."""
    if x1 is None or x2 is None:
        raise step.refuse("how many indices it returns depends on values")
    return step.op("Where", step.value(condition, "bool"), step.value(x1, step.dtype), step.value(x2, step.dtype))


@operation("Select")
def select(step: Step, condlist: Any, choicelist: Any, default: Any = 0) -> ir.Value:
    """The first choice whose condition holds."""
    result = step.value(default, step.dtype)
    for condition, choice in reversed(list(zip(condlist, choicelist, strict=True))):
        result = step.op("Where", step.value(condition, "bool"), step.value(choice, step.dtype), result)
    return result


@operation("Isnan", "Isinf", "Isfinite", "Isposinf", "Isneginf")
def special(step: Step, x: Any) -> ir.Value:
    """Which numbers are special; integers are not."""
    name, value = type(step.operation).__name__, step.value(x)
    if not is_float(value.dtype):
        value = step.build.cast(value, np.float32)
    if name == "Isfinite":
        return step.op("Not", step.op("Or", step.op("IsInf", value), step.op("IsNaN", value)))
    if name == "Isnan":
        return step.op("IsNaN", value)
    signs = {"Isposinf": {"detect_negative": 0}, "Isneginf": {"detect_positive": 0}}
    return step.op("IsInf", value, **signs.get(name, {}))


@operation("NanToNum")
def nan_to_num(step: Step, x: Any) -> ir.Value:
    """Special numbers replaced."""
    value, given = step.value(x, step.dtype), step.operation
    if not is_float(value.dtype):
        return value
    info = np.finfo(step.dtype.numpy())
    high = float(info.max) if given.posinf is None else float(given.posinf)
    low = float(info.min) if given.neginf is None else float(given.neginf)
    result = step.op("Where", step.op("IsNaN", value), step.value(float(given.nan), step.dtype), value)
    result = step.op("Where", step.op("IsInf", value, detect_negative=0), step.value(high, step.dtype), result)
    return step.op("Where", step.op("IsInf", value, detect_positive=0), step.value(low, step.dtype), result)


@operation("Isclose")
def isclose(step: Step, x1: Any, x2: Any, rtol: float = 1e-5, atol: float = 1e-8) -> ir.Value:
    """Within a tolerance; equal infinities are."""
    left, right = (step.value(item, np.float32) for item in (x1, x2))
    bound = step.op("Add", step.op("Mul", step.op("Abs", right), rtol), atol)
    near = step.op("LessOrEqual", step.op("Abs", step.op("Sub", left, right)), bound)
    finite = step.op("Not", step.op("IsInf", right))
    close = step.op("Or", step.op("Equal", left, right), step.op("And", near, finite))
    if not step.operation.equal_nan:
        return close
    return step.op("Or", close, step.op("And", step.op("IsNaN", left), step.op("IsNaN", right)))


@operation("Signbit")
def signbit(step: Step, x: Any) -> ir.Value:
    """Of negative zero, too: its reciprocal is negative."""
    value = step.value(x)
    if not is_float(value.dtype):
        return step.op("Less", value, 0)
    zero = step.op("And", step.op("Equal", value, 0.0), step.op("Less", step.op("Reciprocal", value), 0.0))
    return step.op("Or", step.op("Less", value, 0.0), zero)
