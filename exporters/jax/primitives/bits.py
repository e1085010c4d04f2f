"""Bits: logic, shifts, counts, and numbers read as others of the same bits."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
from jax import lax

from entrepot.exporters.functions.bits import following, recast
from entrepot.exporters.jax.primitives.arithmetic import chosen
from entrepot.exporters.jax.step import Step, kind_of
from entrepot.exporters.jax.table import rule


def _logical(name: str, op_type: str) -> None:
    @rule(name)
    def translate(step: Step, x: ir.Value, y: ir.Value) -> ir.Value:
        result: ir.Value = step.op(op_type if step.dtype == np.bool_ else f"Bitwise{op_type}", x, y)
        return result


for _name in ("And", "Or", "Xor"):
    _logical(_name.lower(), _name)


@rule("shift_left")
def shift_left(step: Step, x: ir.Value, count: ir.Value) -> ir.Value:
    """To the left; by as many bits as there are, nothing is left."""
    return _shifted(step, x, count, "LEFT")


@rule("shift_right_logical")
def shift_right_logical(step: Step, x: ir.Value, count: ir.Value) -> ir.Value:
    """To the right, with zeros from the left."""
    return _shifted(step, x, count, "RIGHT")


@rule("shift_right_arithmetic")
def shift_right_arithmetic(step: Step, x: ir.Value, count: ir.Value) -> ir.Value:
    """To the right, with the sign from the left: the complement of a negative number is shifted."""
    if step.dtype.kind == "u":
        return _shifted(step, x, count, "RIGHT")
    is_negative = step.op("Less", x, 0)
    size = (
        step.op("Where", is_negative, step.op("BitwiseNot", x), x)
        if x.dtype != ir.DataType.INT16
        else chosen(step, is_negative, step.op("BitwiseNot", x), x)
    )
    found = _shifted(step, size, count, "RIGHT")
    return chosen(step, is_negative, step.op("BitwiseNot", found), found)


def _shifted(step: Step, x: ir.Value, count: ir.Value, direction: str) -> ir.Value:
    """A shift through an unsigned type, of which there is a kernel."""
    bits, number = step.dtype.itemsize * 8, step.literal(1)
    own = np.dtype(f"uint{bits}")
    wide = np.uint32 if bits == 16 else own
    raw = step.build.cast(step.build.cast(x, own), wide)
    by = step.build.cast(step.build.cast(count, own), wide)
    if number is not None and 0 <= int(number) < bits:
        return step.build.cast(step.build.cast(step.op("BitShift", raw, by, direction=direction), own), x.dtype)
    is_inside = step.op("Less", by, bits)
    found = step.op("BitShift", raw, chosen(step, is_inside, by, step.number(0, by)), direction=direction)
    found = chosen(step, is_inside, found, step.number(0, raw))
    return step.build.cast(step.build.cast(found, own), x.dtype)


@rule("population_count")
def population_count(step: Step, x: ir.Value) -> ir.Value:
    """How many bits are set."""
    bits = step.dtype.itemsize * 8
    raw = step.build.cast(step.build.cast(x, np.dtype(f"uint{bits}")), np.uint64)
    masks = (
        0x5555555555555555,
        0x3333333333333333,
        0x0F0F0F0F0F0F0F0F,
        0x00FF00FF00FF00FF,
        0x0000FFFF0000FFFF,
        0xFFFFFFFF,
    )
    for at, mask in enumerate(masks):
        number = step.number(mask, raw)
        upper = step.op("BitShift", raw, step.number(1 << at, raw), direction="RIGHT")
        raw = step.op("Add", step.op("BitwiseAnd", raw, number), step.op("BitwiseAnd", upper, number))
    return step.build.cast(raw, x.dtype)


@rule("clz")
def clz(step: Step, x: ir.Value) -> list[Any]:
    """How many zeros lead: the bits that are not below the highest one."""
    bits = step.dtype.itemsize * 8
    unsigned = np.dtype(f"uint{bits}")

    def leading(x: Any) -> Any:
        whole = lax.convert_element_type(x, unsigned)
        for by in (1, 2, 4, 8, 16, 32):
            whole = whole | lax.shift_right_logical(whole, unsigned.type(by)) if by < bits else whole
        return lax.convert_element_type(unsigned.type(bits) - lax.population_count(whole), x.dtype)

    return step.in_jax(leading, x)


@rule("bitcast_convert_type")
def bitcast_convert_type(step: Step, x: ir.Value) -> Any:
    """Numbers as others of the same bits; with fewer bits each, there are more of them in a last axis."""
    old, new = np.dtype(step.ins[0].dtype), np.dtype(step.params["new_dtype"])
    return recast(step.build, x, old, new)


@rule("nextafter")
def nextafter(step: Step, x: ir.Value, y: ir.Value) -> ir.Value:
    """The next number towards another."""
    return following(step.build, x, y, step.dtype)


@rule("convert_element_type")
def convert_element_type(step: Step, x: ir.Value) -> ir.Value:
    """Cast; to an integer, what lies beyond its range becomes the nearest of it, and NaN zero."""
    old, new = np.dtype(step.ins[0].dtype), step.dtype
    if new == np.bool_ or old.kind in "iub" or new.kind not in "iu":
        return step.build.cast(x, kind_of(new)) if old != new else x
    wide = step.build.cast(x, np.float64)
    limits = np.iinfo(new)
    known = step.op("Where", step.op("IsNaN", wide), step.number(0, wide), wide)
    if new.itemsize < 8:
        return step.build.cast(step.op("Clip", known, float(limits.min), float(limits.max)), new)
    most, least = float(limits.max), float(limits.min)  # the first is one too large
    inside = step.op("And", step.op("Less", known, most), step.op("GreaterOrEqual", known, least))
    found = step.build.cast(step.op("Where", inside, known, step.number(0, known)), new)
    edge = chosen(step, step.op("Less", known, 0.0), step.number(limits.min, found), step.number(limits.max, found))
    return chosen(step, inside, found, edge)
