"""Arithmetic of two operands, with the overflow, the division and the NaNs of XLA."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx_ir as ir

from entrepot.exporters.building import Builder
from entrepot.exporters.functions.gelu import as_gelu
from entrepot.exporters.jax.step import Step
from entrepot.exporters.jax.table import rule


@rule("add", "add_any")
def add(step: Step, x: ir.Value, y: ir.Value) -> ir.Value:
    """Add; of truth values, whether one holds."""
    return step.op("Or" if step.dtype == np.bool_ else "Add", x, y)


@rule("sub")
def sub(step: Step, x: ir.Value, y: ir.Value) -> ir.Value:
    """Sub."""
    return step.op("Sub", x, y)


@rule("mul")
def mul(step: Step, x: ir.Value, y: ir.Value) -> ir.Value:
    """Mul, or Gelu; of truth values, whether both hold."""
    if (whole := as_gelu(step.build, x, y)) is not None:
        return whole
    return step.op("And" if step.dtype == np.bool_ else "Mul", x, y)


@rule("div")
def div(step: Step, x: ir.Value, y: ir.Value) -> ir.Value:
    """Div; of integers towards zero, where a division by zero gives -1 and one by -1 wraps around."""
    if step.dtype.kind not in "iu" or _is_plain_divisor(step):
        return step.op("Div", x, y)
    return _quotient(step, x, y)


@rule("rem")
def rem(step: Step, x: ir.Value, y: ir.Value) -> ir.Value:
    """The remainder, with the sign of the dividend; by zero, of integers, the dividend."""
    if step.dtype.kind == "f":
        found = step.op("Mod", x, y, fmod=1)
        is_whole = step.op("And", step.op("IsInf", _wide(step, y)), step.op("Not", step.op("IsInf", _wide(step, x))))
        return step.op("Where", step.op("And", is_whole, step.op("Equal", y, y)), x, found)
    is_plain = _is_plain_divisor(step)
    quotient = step.op("Div", x, y) if is_plain else _quotient(step, x, y)
    found = step.op("Sub", x, step.op("Mul", quotient, y))
    return found if is_plain else step.op("Where", step.op("Equal", y, 0), x, found)


def _wide(step: Step, x: ir.Value) -> ir.Value:
    return x if x.dtype in (ir.DataType.FLOAT, ir.DataType.DOUBLE) else step.build.cast(x, np.float32)


def _is_plain_divisor(step: Step) -> bool:
    number = step.literal(1)
    return number is not None and int(number) not in (0, -1)


def _quotient(step: Step, x: ir.Value, y: ir.Value) -> ir.Value:
    """A division that no processor traps on."""
    is_zero = step.op("Equal", y, 0)
    unsigned = step.dtype.kind == "u"
    special = is_zero if unsigned else step.op("Or", is_zero, step.op("Equal", y, -1))
    found = step.op("Div", x, step.op("Where", special, step.number(1, y), y))
    if unsigned:
        return step.op("Where", is_zero, step.number(np.iinfo(step.dtype).max, y), found)
    turned = step.op("Where", special, step.op("Sub", step.number(0, x), x), found)
    return step.op("Where", is_zero, step.number(-1, y), turned)


@rule("pow")
def pow_(step: Step, x: ir.Value, y: ir.Value) -> ir.Value:
    """Pow, with an exponent of the same type or a whole one."""
    return step.op("Pow", x, step.build.cast(y, x.dtype))


@rule("max")
def maximum(step: Step, x: ir.Value, y: ir.Value) -> ir.Value:
    """The larger one, or NaN if there is one."""
    if step.dtype.kind == "f" and step.literal(1) == 0:
        return step.op("Relu", x)
    return larger(step, "Max", "Or", x, y)


@rule("min")
def minimum(step: Step, x: ir.Value, y: ir.Value) -> ir.Value:
    """The smaller one, or NaN if there is one."""
    return larger(step, "Min", "And", x, y)


def larger(step: Step, op_type: str, of_truth: str, x: ir.Value, y: ir.Value) -> ir.Value:
    """Max or Min, through a type for which it is defined."""
    if x.dtype == ir.DataType.BOOL:
        return step.op(of_truth, x, y)
    if x.dtype in (ir.DataType.INT16, ir.DataType.UINT16):
        return step.through(np.int32, lambda a, b: step.op(op_type, a, b), x, y)
    return step.op(op_type, x, y)


@rule("clamp")
def clamp(step: Step, least: ir.Value, x: ir.Value, most: ir.Value) -> ir.Value:
    """The largest of x and least, at most ``most``."""
    return larger(step, "Min", "And", larger(step, "Max", "Or", x, least), most)


@rule("atan2")
def atan2(step: Step, y: ir.Value, x: ir.Value) -> ir.Value:
    """The angle of a point, from that of the smaller by the larger coordinate; signs of zeros count."""
    across, up = step.op("Abs", x), step.op("Abs", y)
    small, large = step.op("Min", across, up), step.op("Max", across, up)
    is_one = step.op("Equal", small, large)
    is_nothing = step.op("Equal", large, 0.0)
    safe = step.op("Where", step.op("Or", is_one, is_nothing), step.number(1, large), large)
    ratio = step.op(
        "Where", is_one, step.op("Where", is_nothing, large, step.number(1, large)), step.op("Div", small, safe)
    )
    angle = step.op("Atan", ratio)
    angle = step.op("Where", step.op("Greater", up, across), step.op("Sub", step.number(np.pi / 2, x), angle), angle)
    angle = step.op("Where", negative(step, x), step.op("Sub", step.number(np.pi, x), angle), angle)
    angle = step.op("Where", negative(step, y), step.op("Neg", angle), angle)
    unknown = step.op("Or", step.op("IsNaN", _wide(step, x)), step.op("IsNaN", _wide(step, y)))
    return step.op("Where", unknown, step.number(np.nan, x), angle)


def negative(step: Step, x: ir.Value) -> ir.Value:
    """Whether the sign is minus, that of a zero included."""
    under = step.op("Less", step.op("Div", step.number(1, x), x), 0.0)
    return step.op("Or", step.op("Less", x, 0.0), step.op("And", step.op("Equal", x, 0.0), under))


def _compared(op_type: str) -> Callable[[Step, ir.Value, ir.Value], ir.Value]:
    def translate(step: Step, x: ir.Value, y: ir.Value) -> ir.Value:
        if x.dtype == ir.DataType.BOOL and op_type != "Equal":
            x, y = (step.build.cast(each, np.int32) for each in (x, y))
        result: ir.Value = step.op(op_type, x, y)
        return result

    return translate


for _name, _op_type in {
    "eq": "Equal", "lt": "Less", "le": "LessOrEqual", "gt": "Greater", "ge": "GreaterOrEqual",
}.items():  # fmt: skip
    rule(_name)(_compared(_op_type))


@rule("ne")
def ne(step: Step, x: ir.Value, y: ir.Value) -> ir.Value:
    """Not equal; a NaN is unequal to itself."""
    return step.op("Not", step.op("Equal", x, y))


@rule("lt_to")
def lt_to(step: Step, x: ir.Value, y: ir.Value) -> ir.Value:
    """Less in the order of sorting: minus zero comes before zero, NaN after everything."""
    less = step.op("Less", x, y)
    if np.dtype(step.ins[0].dtype).kind != "f":
        return less
    zeros = step.op("And", step.op("Equal", x, 0.0), step.op("Equal", y, 0.0))
    turned = step.op("And", negative(step, x), step.op("Not", negative(step, y)))
    is_nan = [step.op("IsNaN", _wide(step, each)) for each in (x, y)]
    beyond = step.op("And", step.op("Not", is_nan[0]), is_nan[1])
    return step.op("Or", step.op("Or", less, beyond), step.op("And", zeros, turned))


@rule("le_to")
def le_to(step: Step, x: ir.Value, y: ir.Value) -> ir.Value:
    """Not greater, in that order."""
    return step.op("Not", lt_to(step, y, x))


@rule("eq_to")
def eq_to(step: Step, x: ir.Value, y: ir.Value) -> ir.Value:
    """Neither less nor greater."""
    return step.op("And", le_to(step, x, y), le_to(step, y, x))


@rule("select_n")
def select_n(step: Step, which: ir.Value, *cases: ir.Value) -> ir.Value:
    """The case whose number ``which`` is, for each element, or for all."""
    if which.dtype != ir.DataType.BOOL:
        result = cases[-1]
        for at, case in reversed([*enumerate(cases[:-1])]):
            result = chosen(step, step.op("LessOrEqual", which, at), case, result)
        return result
    return cases[0] if len(cases) == 1 else chosen(step, which, cases[1], cases[0])


def chosen(step: Step, where: ir.Value, x: ir.Value, y: ir.Value) -> ir.Value:
    """Where, through a type for which it is defined."""
    return chosen_in(step.build, where, x, y)


def chosen_in(build: Builder, where: ir.Value, x: ir.Value, y: ir.Value) -> ir.Value:
    """The same in any graph, a body for example."""
    wide = {
        ir.DataType.BOOL: np.uint8, ir.DataType.INT16: np.int32, ir.DataType.UINT16: np.int32,
        ir.DataType.UINT64: np.int64,
    }.get(x.dtype or ir.DataType.UNDEFINED)  # fmt: skip
    if wide is None:
        result: ir.Value = build.op("Where", where, x, y)
        return result
    assert x.dtype is not None
    return build.cast(build.op("Where", where, build.cast(x, wide), build.cast(y, wide)), x.dtype)
