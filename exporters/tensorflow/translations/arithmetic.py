"""Sums, products, quotients, remainders and powers."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np
import onnx_ir as ir

from entrepot.exporters.building import Builder
from entrepot.exporters.functions.bits import following
from entrepot.exporters.functions.gelu import as_gelu
from entrepot.exporters.tensorflow.node import Node
from entrepot.exporters.tensorflow.numeric import computed, in_kind, is_float, is_signed, number, where
from entrepot.exporters.tensorflow.table import translates

_PLAIN = {
    "Add": "Add", "AddV2": "Add", "Sub": "Sub", "Mul": "Mul", "RealDiv": "Div",
}  # fmt: skip


def _same(name: str, op: str) -> None:
    @translates(name)
    def translate(node: Node, build: Builder, x: Any, y: Any) -> Any:
        if x.dtype == ir.DataType.STRING:
            return build.op("StringConcat", x, y)
        return (as_gelu(build, x, y) if op == "Mul" else None) or computed(build, op, x, y)


for _name, _op in _PLAIN.items():
    _same(_name, _op)


@translates("AddN", "AccumulateNV2")
def add_all(node: Node, build: Builder, *values: Any) -> Any:
    """One after the other."""
    return functools.reduce(lambda total, each: computed(build, "Add", total, each), values)


@translates("SquaredDifference")
def squared_difference(node: Node, build: Builder, x: Any, y: Any) -> Any:
    """(x - y)²."""
    difference = computed(build, "Sub", x, y)
    return computed(build, "Mul", difference, difference)


@translates("Maximum", "Minimum")
def extreme(node: Node, build: Builder, x: Any, y: Any) -> Any:
    """Unsigned numbers of 64 bits included."""
    return computed(build, "Max" if node.op == "Maximum" else "Min", x, y)


@translates("ClipByValue")
def clip(node: Node, build: Builder, x: Any, low: Any, high: Any) -> Any:
    """The upper bound counts more than the lower one."""
    return computed(build, "Max", computed(build, "Min", x, high), low)


@translates("TruncateDiv", "Div")
def truncated_quotient(node: Node, build: Builder, x: Any, y: Any) -> Any:
    """Of integers towards zero; ``TruncateDiv`` of floating-point numbers as well."""
    if not is_float(x):
        return _quotient(node, build, x, y)
    quotient = computed(build, "Div", x, y)
    if node.op == "Div":
        return quotient
    below = computed(build, "Less", quotient, number(build, 0, x))
    return where(build, below, computed(build, "Ceil", quotient), computed(build, "Floor", quotient))


@translates("FloorDiv")
def floor_quotient(node: Node, build: Builder, x: Any, y: Any) -> Any:
    """Towards minus infinity."""
    if is_float(x):
        return computed(build, "Floor", computed(build, "Div", x, y))
    quotient = _quotient(node, build, x, y)
    if not is_signed(x):
        return quotient
    rest = computed(build, "Sub", x, computed(build, "Mul", quotient, y))
    zero = number(build, 0, x)
    negative = build.op("Xor", computed(build, "Less", rest, zero), computed(build, "Less", y, zero))
    inexact = build.op("And", build.op("Not", computed(build, "Equal", rest, zero)), negative)
    return computed(build, "Sub", quotient, build.cast(inexact, x.dtype))


def _quotient(node: Node, build: Builder, x: Any, y: Any) -> Any:
    """Of integers; the smallest one by -1 wraps around, which ends a process in onnxruntime (1.31)."""
    divisor = node.constant(1)
    if not is_signed(x) or (divisor is not None and not np.any(divisor == -1)):
        return computed(build, "Div", x, y)
    one = number(build, 1, x)
    turned = computed(build, "Equal", y, number(build, -1, x))
    quotient = computed(build, "Div", x, where(build, turned, one, y))
    return where(build, turned, computed(build, "Neg", x), quotient)


@translates("FloorMod")
def floor_remainder(node: Node, build: Builder, x: Any, y: Any) -> Any:
    """With the sign of the divisor."""
    if not is_float(x):
        return computed(build, "Mod", x, _not_minus_one(node, build, y))
    rest = _float_remainder(build, x, y)
    zero = number(build, 0, x)
    other = build.op("Xor", computed(build, "Less", rest, zero), computed(build, "Less", y, zero))
    wrong = build.op("And", build.op("Not", computed(build, "Equal", rest, zero)), other)
    return where(build, wrong, computed(build, "Add", rest, y), rest)


@translates("TruncateMod", "Mod")
def truncated_remainder(node: Node, build: Builder, x: Any, y: Any) -> Any:
    """With the sign of the dividend."""
    if is_float(x):
        return _float_remainder(build, x, y)
    divisor = _not_minus_one(node, build, y)
    if x.dtype != ir.DataType.INT64:
        return computed(build, "Mod", x, divisor, fmod=1)
    # onnxruntime (1.31) takes integers through float64 here
    return build.op("Sub", x, build.op("Mul", build.op("Div", x, divisor), divisor))


def _float_remainder(build: Builder, x: Any, y: Any) -> Any:
    return computed(build, "Mod", x, y, fmod=1)


def _not_minus_one(node: Node, build: Builder, y: Any) -> Any:
    """The remainder by -1 is that by 1; the smallest integer by -1 ends a process in onnxruntime (1.31)."""
    divisor = node.constant(1)
    if not is_signed(y) or (divisor is not None and not np.any(divisor == -1)):
        return y
    return where(build, computed(build, "Equal", y, number(build, -1, y)), number(build, 1, y), y)


@translates("DivNoNan")
def quotient_or_zero(node: Node, build: Builder, x: Any, y: Any) -> Any:
    """0 where the divisor is 0."""
    zero = number(build, 0, x)
    return where(build, computed(build, "Equal", y, zero), zero, computed(build, "Div", x, y))


@translates("MulNoNan")
def product_or_zero(node: Node, build: Builder, x: Any, y: Any) -> Any:
    """0 where the second factor is 0, whatever the first."""
    zero = number(build, 0, x)
    return where(build, computed(build, "Equal", y, zero), zero, computed(build, "Mul", x, y))


@translates("Xdivy", "Xlogy", "Xlog1py")
def nothing_at_zero(node: Node, build: Builder, x: Any, y: Any) -> Any:
    """X / y, x log(y), x log(1 + y); 0 where x is 0."""
    from entrepot.exporters.functions.exponentials import log1p

    zero = number(build, 0, x)
    if node.op == "Xdivy":
        value = computed(build, "Div", x, y)
    elif node.op == "Xlogy":
        value = computed(build, "Mul", x, computed(build, "Log", y))
    else:
        value = computed(build, "Mul", x, log1p(build, y))
    return where(build, computed(build, "Equal", x, zero), zero, value)


@translates("Pow")
def power(node: Node, build: Builder, x: Any, y: Any) -> Any:
    """Of integers by squaring, which wraps around; onnxruntime (1.31) rounds them to float64 between."""
    if is_float(x):
        exponent = node.constant(1)
        if exponent is not None and exponent.size == 1 and float(exponent.ravel()[0]) == 2:
            return computed(build, "Mul", x, x)
        return computed(build, "Pow", x, y)
    base, times = in_kind(build, (x, y), np.int64)
    known = node.constant(1)
    top = 63 if known is None else int(max(np.max(known, initial=0), 0))
    result = build.constant(np.array(1, np.int64))
    for _ in range(max(math.ceil(math.log2(top + 1)), 1) if top < 64 else 31):
        half = build.op("Div", times, 2)
        odd = build.op("Equal", build.op("Sub", times, build.op("Mul", half, 2)), 1)
        result = build.op("Where", odd, build.op("Mul", result, base), result)
        base, times = build.op("Mul", base, base), half
    return build.cast(result, x.dtype)


@translates("NextAfter")
def next_after(node: Node, build: Builder, x: Any, y: Any) -> Any:
    """The neighbour of x towards y, by the bits of both."""
    if x.dtype == ir.DataType.DOUBLE:
        return node.refuse("looks at the bits of double precision, which ONNX cannot")
    return following(build, x, y, node.dtype(0))
