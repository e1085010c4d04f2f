"""Bits of integers."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from entrepot.exporters.building import Builder, element
from entrepot.exporters.functions.bits import recast
from entrepot.exporters.tensorflow.node import Node
from entrepot.exporters.tensorflow.numeric import is_signed
from entrepot.exporters.tensorflow.table import translates

_UNSIGNED = {
    ir.DataType.INT8: ir.DataType.UINT8, ir.DataType.INT16: ir.DataType.UINT16, ir.DataType.INT32: ir.DataType.UINT32,
    ir.DataType.INT64: ir.DataType.UINT64,
}  # fmt: skip


@translates("BitwiseAnd", "BitwiseOr", "BitwiseXor")
def bitwise(node: Node, build: Builder, x: Any, y: Any) -> Any:
    """Bit by bit."""
    return build.op(node.op, x, y)


@translates("Invert")
def inverted(node: Node, build: Builder, x: Any) -> Any:
    """All bits turned round."""
    return build.op("BitwiseNot", x)


@translates("LeftShift", "RightShift")
def shifted(node: Node, build: Builder, x: Any, y: Any) -> Any:
    """By less than the width of the type; to the right the sign stays."""
    bits = np.iinfo(x.dtype.numpy()).bits
    count = build.op("Max", build.op("Min", build.cast(y, np.int64), bits - 1), 0)
    wide = build.cast(build.cast(x, np.int64), np.uint64)
    by = build.cast(count, np.uint64)
    if node.op == "LeftShift":
        result = build.op("BitShift", wide, by, direction="LEFT")
        return build.cast(build.cast(result, np.int64), x.dtype)
    if not is_signed(x):
        given = wide if x.dtype == ir.DataType.UINT64 else build.cast(x, np.uint64)
        return build.cast(build.op("BitShift", given, by, direction="RIGHT"), x.dtype)
    # of a negative number the bits that come in from the left are ones, as those of its complement are zeros
    signed = build.cast(x, np.int64)
    negative = build.op("Less", signed, 0)
    plain = build.op("Where", negative, build.op("BitwiseNot", signed), signed)
    moved = build.cast(build.op("BitShift", build.cast(plain, np.uint64), by, direction="RIGHT"), np.int64)
    return build.cast(build.op("Where", negative, build.op("BitwiseNot", moved), moved), x.dtype)


@translates("PopulationCount")
def population(node: Node, build: Builder, x: Any) -> Any:
    """How many bits are set."""
    bits = np.iinfo(x.dtype.numpy()).bits
    given = build.cast(build.cast(x, _UNSIGNED.get(x.dtype, x.dtype)), np.uint64)
    places = build.constant(np.arange(bits, dtype=np.uint64))
    one = build.constant(np.array(1, np.uint64))
    each = build.op("BitShift", build.op("Unsqueeze", given, [-1]), places, direction="RIGHT")
    ones = build.cast(build.op("BitwiseAnd", each, one), np.int64)
    return build.cast(build.op("ReduceSum", ones, [-1], keepdims=0), np.uint8)


@translates("Bitcast")
def bitcast(node: Node, build: Builder, x: Any) -> Any:
    """The same bits as numbers of another type; ONNX (20) cannot look at those of double precision."""
    target = element(node["type"])
    if target == x.dtype:
        return build.op("Identity", x)
    old, new = (each.numpy() for each in (x.dtype, target))
    if old == np.float64 or any(kind.kind not in "iufV" for kind in (old, new)):
        node.refuse(f"of {old} as {new} looks at bits, which ONNX cannot")
    if old.kind in "iu" and new.kind in "iu" and old.itemsize == new.itemsize:
        return build.cast(x, target)
    return recast(build, x, old, new)
