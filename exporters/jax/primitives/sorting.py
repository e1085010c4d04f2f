"""Sorting, by TopK: of equal elements it takes the first one first, and so is stable."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from entrepot.exporters.jax.step import Step, kind_of
from entrepot.exporters.jax.table import rule

_WIDE = {
    "bool": np.int32,
    "int8": np.int32,
    "int16": np.int32,
    "uint8": np.int32,
    "uint16": np.int32,
    "uint32": np.int64,
    "float16": np.float32,
    "bfloat16": np.float32,
}


@rule("sort")
def sort(step: Step, *operands: ir.Value) -> list[ir.Value]:
    """By the last of the keys first, so that the first one counts most; NaN comes last."""
    axis, count = step.params["dimension"], step.params["num_keys"]
    size = step.sizes.vector([step.ins[0].shape[axis]])
    order: Any = None
    for key in reversed(operands[:count]):
        present = key if order is None else step.op("GatherElements", key, order, axis=axis)
        for each in _ordered(step, present):
            _, places = step.op("TopK", each, size, outputs=2, axis=axis, largest=0)
            order = places if order is None else step.op("GatherElements", order, places, axis=axis)
    return [step.op("GatherElements", each, order, axis=axis) for each in operands]


def _ordered(step: Step, key: ir.Value) -> list[ir.Value]:
    """A key in a type that TopK takes, with NaN as infinity, and infinity as the largest number below it."""
    assert key.dtype is not None
    if key.dtype == ir.DataType.UINT64:
        turned = step.op("BitwiseXor", key, step.number(1 << 63, key))
        return [step.build.cast(turned, np.int64)]
    dtype = key.dtype.numpy()
    wide = step.build.cast(key, _WIDE.get(dtype.name, dtype))
    return [_without_nan(step, wide)] if wide.dtype in (ir.DataType.FLOAT, ir.DataType.DOUBLE) else [wide]


def _without_nan(step: Step, key: ir.Value) -> ir.Value:
    assert key.dtype is not None
    below = step.op("Min", key, step.number(float(np.finfo(key.dtype.numpy()).max), key))
    result: ir.Value = step.op("Where", step.op("IsNaN", key), step.number(np.inf, key), below)
    return result


@rule("top_k", "approx_top_k")
def top_k(step: Step, x: ir.Value) -> list[ir.Value]:
    """The largest elements and their places; a NaN is larger than all."""
    if "reduction_dimension" in step.params:
        axis, count, largest = step.params["reduction_dimension"], step.params["k"], step.params["is_max_k"]
    else:
        axis, count, largest = step.params.get("axis", -1), step.params["k"], True
    (key,) = _ordered(step, x) if largest else (x,)
    _, places = step.op("TopK", key, step.sizes.vector([count]), outputs=2, axis=axis, largest=int(largest))
    return [step.op("GatherElements", x, places, axis=axis), step.build.cast(places, kind_of(step.outs[1].dtype))]
