"""Floating-point numbers as words of bits, and the other way round, computed exactly in float64."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import onnx_ir as ir

from entrepot.exporters.building import Builder
from entrepot.ir.errors import UnsupportedOpError


def recast(build: Builder, x: ir.Value, old: Any, new: Any) -> ir.Value:
    """Numbers as others of the same bits; with fewer bits each, there are more of them in a last axis.

    Raises:
        UnsupportedOpError: They are those of float64.
    """
    old, new = np.dtype(old), np.dtype(new)
    if old == new:
        return x
    words = x if old.kind in "iu" else word_of(build, x, old)
    words = build.cast(words, np.dtype(f"uint{old.itemsize * 8}"))
    words = resized(build, words, old.itemsize, new.itemsize)
    return build.cast(words, new) if new.kind in "iu" else number_of(build, words, new)


def following(build: Builder, x: ir.Value, y: ir.Value, dtype: Any) -> ir.Value:
    """The next number towards another, by the order of their bits."""
    signed = np.dtype(f"int{np.dtype(dtype).itemsize * 8}")
    bits = build.cast(recast(build, x, dtype, signed), np.int64)
    up = build.op("Equal", build.op("Less", x, y), build.op("GreaterOrEqual", bits, 0))
    moved = build.op("Add", bits, build.op("Where", up, build.constant(1, np.int64), build.constant(-1, np.int64)))
    least = build.constant(int(np.iinfo(signed).min) + 1, np.int64)
    least = build.op("Where", build.op("Greater", y, 0.0), build.constant(1, np.int64), least)
    word = build.op("Where", build.op("Equal", x, 0.0), least, moved)
    found = recast(build, build.cast(word, signed), signed, dtype)
    lost = build.op("Or", *(build.op("IsNaN", each) for each in (x, y)))
    found = build.op("Where", build.op("Equal", x, y), y, found)
    return build.op("Where", lost, build.constant(np.nan, x.dtype), found)


def resized(build: Builder, words: ir.Value, old: int, new: int) -> ir.Value:
    """Words of other sizes, the lowest first."""
    if old == new:
        return words
    small, large = sorted((old, new))
    wide = build.cast(words, np.uint64)
    shifts = build.constant(np.arange(0, large * 8, small * 8, dtype=np.uint64))
    if new < old:
        wide = build.op("BitShift", build.op("Unsqueeze", wide, [-1]), shifts, direction="RIGHT")
        wide = build.op("BitwiseAnd", wide, build.constant((1 << small * 8) - 1, wide.dtype))
    else:
        parts = build.cast(build.op("BitShift", wide, shifts, direction="LEFT"), np.int64)
        wide = build.op("ReduceSum", parts, [-1], keepdims=0)
    return build.cast(wide, np.dtype(f"uint{new * 8}"))


def number_of(build: Builder, words: ir.Value, dtype: np.dtype[Any]) -> ir.Value:
    """The floating-point number that a word means, computed exactly in float64."""
    info = _limits(dtype)
    bits, fraction = info.bits, info.nmant
    whole = build.cast(words, np.uint64)

    def part(start: int, count: int) -> ir.Value:
        moved = build.op("BitShift", whole, build.constant(start, whole.dtype), direction="RIGHT") if start else whole
        cut = build.op("BitwiseAnd", moved, build.constant((1 << count) - 1, whole.dtype))
        return build.cast(build.cast(cut, np.int64), np.float64)

    mantissa, exponent, minus = part(0, fraction), part(fraction, info.nexp), part(bits - 1, 1)
    bias = (1 << info.nexp - 1) - 1
    is_small = build.op("Equal", exponent, 0.0)
    share = build.op(
        "Add",
        build.op("Mul", mantissa, 2.0**-fraction),
        build.op("Where", is_small, build.constant(0.0, mantissa.dtype), build.constant(1.0, mantissa.dtype)),
    )
    power = build.op("Sub", build.op("Max", exponent, build.constant(1, exponent.dtype)), float(bias))
    half = build.op("Floor", build.op("Mul", power, 0.5))
    size = build.op("Mul", build.op("Mul", share, _power(build, half)), _power(build, build.op("Sub", power, half)))
    is_special = build.op("Equal", exponent, float((1 << info.nexp) - 1))
    special = build.op(
        "Where",
        build.op("Equal", mantissa, 0.0),
        build.constant(np.inf, size.dtype),
        build.constant(np.nan, size.dtype),
    )
    size = build.op("Where", is_special, special, size)
    sign = build.op("Sub", build.constant(1, minus.dtype), build.op("Mul", minus, 2.0))
    return build.cast(build.op("Mul", sign, size), dtype)


def _power(build: Builder, exponent: ir.Value) -> ir.Value:
    result: ir.Value = build.op("Pow", build.constant(2, exponent.dtype), exponent)
    return result


def word_of(build: Builder, x: ir.Value, dtype: np.dtype[Any]) -> ir.Value:
    """The word of a floating-point number: sign, exponent and fraction, taken apart exactly in float64."""
    info = _limits(dtype)
    if info.bits == 64:
        raise UnsupportedOpError("the bits of float64 cannot be had in ONNX", hint="take those of float32")
    bias, fraction = (1 << info.nexp - 1) - 1, info.nmant
    wide = build.cast(x, np.float64)
    size = build.op("Abs", wide)
    is_special = build.op("Or", build.op("IsInf", wide), build.op("IsNaN", wide))
    is_zero = build.op("Equal", size, 0.0)
    plain = build.op("Where", build.op("Or", is_special, is_zero), build.constant(1, size.dtype), size)
    exponent = build.op("Floor", build.op("Div", build.op("Log", plain), float(np.log(2))))
    exponent = build.op(
        "Where", build.op("Greater", _power(build, exponent), plain), build.op("Sub", exponent, 1.0), exponent
    )
    above = build.op("Add", exponent, 1.0)
    exponent = build.op("Where", build.op("LessOrEqual", _power(build, above), plain), above, exponent)
    exponent = build.op(
        "Max", exponent, build.constant(1 - bias, exponent.dtype)
    )  # subnormal numbers have the smallest one
    share = build.op("Div", plain, _power(build, exponent))
    is_normal = build.op("GreaterOrEqual", share, 1.0)
    field = build.op("Where", is_normal, build.op("Add", exponent, float(bias)), build.constant(0, share.dtype))
    rest = build.op("Mul", build.op("Where", is_normal, build.op("Sub", share, 1.0), share), float(1 << fraction))
    word = build.op("Add", build.op("Mul", field, float(1 << fraction)), rest)
    word = build.op("Where", is_zero, build.constant(0, word.dtype), word)
    infinite = float(((1 << info.nexp) - 1) << fraction)
    nan = infinite + float(1 << fraction - 1)
    special = build.op(
        "Where", build.op("IsNaN", wide), build.constant(nan, word.dtype), build.constant(infinite, word.dtype)
    )
    word = build.op("Where", is_special, special, word)
    minus = build.op("And", _is_minus(build, wide), build.op("Not", build.op("IsNaN", wide)))
    word = build.op("Where", minus, build.op("Add", word, float(1 << info.bits - 1)), word)
    return build.cast(build.cast(word, np.int64), np.dtype(f"uint{info.bits}"))


def _is_minus(build: Builder, x: ir.Value) -> Any:
    """Whether the sign is minus, that of a zero included."""
    under = build.op("Less", build.op("Div", build.constant(1, x.dtype), x), 0.0)
    return build.op("Or", build.op("Less", x, 0.0), build.op("And", build.op("Equal", x, 0.0), under))


def _limits(dtype: Any) -> ml_dtypes.finfo:
    return ml_dtypes.finfo(dtype)  # type: ignore[no-untyped-call]
