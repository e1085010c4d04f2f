"""Operators in element types that onnxruntime lacks them for: computed in a wider one and brought back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np
import onnx_ir as ir

from entrepot.exporters.building import Builder, element
from entrepot.exporters.kernels import FLOATS, HALVES, KINDS, Kind, wider


def computed(build: Builder, op: str, *values: Any, outputs: int = 1, **attributes: Any) -> Any:
    """``build.op``, in a type that onnxruntime has the operator for, brought back where the result is of that type.

    Args:
        build: Where nodes are written.
        op: The operator.
        values: Its operands; those of the first value's type are widened with it.
        outputs: How many results it has.
        attributes: Of the operator.
    """
    given = values[1] if op == "Where" else next(each for each in values if isinstance(each, ir.Value))
    kind = given.dtype
    wide = wider(kind, KINDS.get(op))
    if wide == kind:
        return build.op(op, *values, outputs=outputs, **attributes)
    operands = [
        build.cast(each, wide)
        if isinstance(each, ir.Value) and each.dtype == kind and (op, at) != ("Where", 0)
        else each
        for at, each in enumerate(values)
    ]
    results = build.op(op, *operands, outputs=outputs, **attributes)
    several = results if isinstance(results, tuple) else (results,)
    back = tuple(build.cast(each, kind) if each.dtype == wide else each for each in several)
    return back if outputs > 1 else back[0]


def where(build: Builder, condition: ir.Value, yes: Any, no: Any) -> ir.Value:
    """``Where``, of Booleans as well."""
    value = yes if isinstance(yes, ir.Value) else no
    if value.dtype == Kind.BOOL:
        yes, no = (build.cast(each, Kind.UINT8) if isinstance(each, ir.Value) else each for each in (yes, no))
        return build.cast(build.op("Where", condition, yes, no), Kind.BOOL)
    return computed(build, "Where", condition, yes, no)


def number(build: Builder, value: Any, like: ir.Value) -> ir.Value:
    """A number in the type of another value."""
    return build.constant(value, like.dtype)


def is_float(value: ir.Value) -> bool:
    """Whether a value is a floating-point number."""
    return value.dtype in (*FLOATS, *HALVES)


def is_signed(value: ir.Value) -> bool:
    """Whether a value is an integer with a sign."""
    return value.dtype in (Kind.INT8, Kind.INT16, Kind.INT32, Kind.INT64)


def limits(value: Any) -> tuple[Any, Any]:
    """The smallest and the largest number of a value's type."""
    kind = value.dtype.numpy()
    if is_float(value):
        info: Any = ml_dtypes.finfo(kind)  # type: ignore[no-untyped-call]
        return info.min, info.max
    return np.iinfo(kind).min, np.iinfo(kind).max


def in_kind(build: Builder, values: Sequence[ir.Value], kind: Any) -> list[ir.Value]:
    """Several values in one type."""
    return [build.cast(each, element(kind)) for each in values]
