"""Bits: logic, shifts, counts, and numbers read as others of the same bits."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
import onnx_ir as ir
from jax import lax

from entrepot.exporters.jax.primitives.arithmetic import chosen
from entrepot.exporters.jax.step import Step, kind_of, limits_of
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
    if old == new:
        return x
    words = x if old.kind in "iu" else _bits_of(step, x, old)
    words = step.build.cast(words, np.dtype(f"uint{old.itemsize * 8}"))
    words = _resized(step, words, old.itemsize, new.itemsize)
    return step.build.cast(words, new) if new.kind in "iu" else _number_of(step, words, new)


def _resized(step: Step, words: ir.Value, old: int, new: int) -> ir.Value:
    """Words of other sizes, the lowest first."""
    if old == new:
        return words
    small, large = sorted((old, new))
    wide = step.build.cast(words, np.uint64)
    shifts = step.build.constant(np.arange(0, large * 8, small * 8, dtype=np.uint64))
    if new < old:
        wide = step.op("BitShift", step.op("Unsqueeze", wide, [-1]), shifts, direction="RIGHT")
        wide = step.op("BitwiseAnd", wide, step.number((1 << small * 8) - 1, wide))
    else:
        parts = step.build.cast(step.op("BitShift", wide, shifts, direction="LEFT"), np.int64)
        wide = step.op("ReduceSum", parts, [-1], keepdims=0)
    return step.build.cast(wide, np.dtype(f"uint{new * 8}"))


def _number_of(step: Step, words: ir.Value, dtype: np.dtype[Any]) -> ir.Value:
    """The floating-point number that a word means, computed exactly in float64."""
    info = limits_of(dtype)
    bits, fraction = info.bits, info.nmant
    whole = step.build.cast(words, np.uint64)

    def part(start: int, count: int) -> ir.Value:
        moved = step.op("BitShift", whole, step.number(start, whole), direction="RIGHT") if start else whole
        cut = step.op("BitwiseAnd", moved, step.number((1 << count) - 1, whole))
        return step.build.cast(step.build.cast(cut, np.int64), np.float64)

    mantissa, exponent, minus = part(0, fraction), part(fraction, info.nexp), part(bits - 1, 1)
    bias = (1 << info.nexp - 1) - 1
    is_small = step.op("Equal", exponent, 0.0)
    share = step.op(
        "Add",
        step.op("Mul", mantissa, 2.0**-fraction),
        step.op("Where", is_small, step.number(0.0, mantissa), step.number(1.0, mantissa)),
    )
    power = step.op("Sub", step.op("Max", exponent, step.number(1, exponent)), float(bias))
    half = step.op("Floor", step.op("Mul", power, 0.5))
    size = step.op("Mul", step.op("Mul", share, _power(step, half)), _power(step, step.op("Sub", power, half)))
    is_special = step.op("Equal", exponent, float((1 << info.nexp) - 1))
    special = step.op("Where", step.op("Equal", mantissa, 0.0), step.number(np.inf, size), step.number(np.nan, size))
    size = step.op("Where", is_special, special, size)
    sign = step.op("Sub", step.number(1, minus), step.op("Mul", minus, 2.0))
    return step.build.cast(step.op("Mul", sign, size), dtype)


def _power(step: Step, exponent: ir.Value) -> ir.Value:
    result: ir.Value = step.op("Pow", step.number(2, exponent), exponent)
    return result


def _bits_of(step: Step, x: ir.Value, dtype: np.dtype[Any]) -> ir.Value:
    """The word of a floating-point number: sign, exponent and fraction, taken apart exactly in float64."""
    from entrepot.exporters.jax.primitives.arithmetic import negative

    info = limits_of(dtype)
    if info.bits == 64:
        raise step.unsupported("the bits of float64 cannot be had in ONNX", hint="take those of float32")
    bias, fraction = (1 << info.nexp - 1) - 1, info.nmant
    wide = step.build.cast(x, np.float64)
    size = step.op("Abs", wide)
    is_special = step.op("Or", step.op("IsInf", wide), step.op("IsNaN", wide))
    is_zero = step.op("Equal", size, 0.0)
    plain = step.op("Where", step.op("Or", is_special, is_zero), step.number(1, size), size)
    exponent = step.op("Floor", step.op("Div", step.op("Log", plain), float(np.log(2))))
    exponent = step.op(
        "Where", step.op("Greater", _power(step, exponent), plain), step.op("Sub", exponent, 1.0), exponent
    )
    above = step.op("Add", exponent, 1.0)
    exponent = step.op("Where", step.op("LessOrEqual", _power(step, above), plain), above, exponent)
    exponent = step.op("Max", exponent, step.number(1 - bias, exponent))  # subnormal numbers have the smallest one
    share = step.op("Div", plain, _power(step, exponent))
    is_normal = step.op("GreaterOrEqual", share, 1.0)
    field = step.op("Where", is_normal, step.op("Add", exponent, float(bias)), step.number(0, share))
    rest = step.op("Mul", step.op("Where", is_normal, step.op("Sub", share, 1.0), share), float(1 << fraction))
    word = step.op("Add", step.op("Mul", field, float(1 << fraction)), rest)
    word = step.op("Where", is_zero, step.number(0, word), word)
    infinite = float(((1 << info.nexp) - 1) << fraction)
    nan = infinite + float(1 << fraction - 1)
    special = step.op("Where", step.op("IsNaN", wide), step.number(nan, word), step.number(infinite, word))
    word = step.op("Where", is_special, special, word)
    minus = step.op("And", negative(step, wide), step.op("Not", step.op("IsNaN", wide)))
    word = step.op("Where", minus, step.op("Add", word, float(1 << info.bits - 1)), word)
    return step.build.cast(step.build.cast(word, np.int64), np.dtype(f"uint{info.bits}"))


@rule("nextafter")
def nextafter(step: Step, x: ir.Value, y: ir.Value) -> list[Any]:
    """The next number towards another, by the order of their bits."""
    signed = np.dtype(f"int{step.dtype.itemsize * 8}")
    dtype = step.dtype

    def following(x: Any, y: Any) -> Any:
        bits = lax.bitcast_convert_type(x, signed)
        one, zero = signed.type(1), signed.type(0)
        moved = jnp.where((x < y) == (bits >= zero), bits + one, bits - one)
        least = jnp.where(y > 0, one, signed.type(np.iinfo(signed).min + 1))
        found = lax.bitcast_convert_type(jnp.where(x == 0, least, moved), dtype)
        return jnp.where(jnp.isnan(x) | jnp.isnan(y), dtype.type(np.nan), jnp.where(x == y, y, found))

    return step.in_jax(following, x, y)


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
