"""Complex numbers as pairs of reals."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx_ir as ir

from entrepot.exporters.jax.primitives.products import product
from entrepot.exporters.jax.step import Step, kind_of
from entrepot.exporters.jax.table import Pair, complex_rule, rules

_BY_PARTS = [
    "add",
    "add_any",
    "sub",
    "neg",
    "broadcast_in_dim",
    "broadcast_to",
    "reshape",
    "squeeze",
    "transpose",
    "concatenate",
    "stack",
    "unstack",
    "split",
    "tile",
    "rev",
    "slice",
    "pad",
    "dynamic_slice",
    "dynamic_update_slice",
    "gather",
    "select_n",
    "reduce_sum",
    "cumsum",
    "copy",
    "copy_p",
    "stop_gradient",
    "optimization_barrier",
    "device_put",
    "sharding_constraint",
    "scatter",
    "scatter-add",
    "scatter-sub",
    "reduce_window_sum",
    "name",
    "pvary",
    "empty",
    "empty2",
    "reshard",
]


def _by_parts(name: str) -> Callable[..., Any]:
    """What treats real and imaginary parts alike, without mixing them."""

    def translate(step: Step, *operands: Any) -> Any:
        halves = []
        for part in (0, 1):
            own = [each[part] if isinstance(each, Pair) else each for each in operands]
            halves.append(rules()[name](step, *own))
        real, imaginary = (each if isinstance(each, list) else [each] for each in halves)
        return [Pair(*both) for both in zip(real, imaginary, strict=True)]

    return translate


for _name in _BY_PARTS:
    complex_rule(_name)(_by_parts(_name))


def _real_dtype(step: Step, dtype: Any) -> np.dtype[Any]:
    return np.empty(0, dtype).real.dtype


def formula(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register a function of real and imaginary parts, written in JAX."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        @complex_rule(*names)
        def translate(step: Step, *operands: Any) -> Any:
            parts, avals = [], []
            for value, aval in zip(operands, step.ins, strict=True):
                flat = value if isinstance(value, Pair) else [value]
                parts += [*flat]
                real = _real_dtype(step, aval.dtype) if isinstance(value, Pair) else aval.dtype
                avals += [_Aval(aval.shape, real)] * len(flat)
            found: list[Any] = step.in_jax(lambda *given: function(step, *given), *parts, avals=avals)
            return [Pair(*found)] if len(found) == 2 else found

        return function

    return register


class _Aval:
    def __init__(self, shape: Any, dtype: Any) -> None:
        self.shape, self.dtype = shape, dtype


@complex_rule("complex")
def complex_(step: Step, real: ir.Value, imaginary: ir.Value) -> Pair:
    """The two parts."""
    shape = step.outs[0].shape
    return Pair(
        *(
            step.expanded(each, shape) if tuple(aval.shape) != tuple(shape) else each
            for each, aval in zip((real, imaginary), step.ins, strict=True)
        )
    )


@complex_rule("real")
def real(step: Step, z: Pair) -> ir.Value:
    """The first part."""
    return z.re


@complex_rule("imag")
def imag(step: Step, z: Pair) -> ir.Value:
    """The second part."""
    return z.im


@complex_rule("conj")
def conj(step: Step, z: Any) -> Pair:
    """The second part turned round."""
    if not isinstance(z, Pair):
        return Pair(z, step.op("Mul", z, 0.0))
    return Pair(z.re, step.op("Neg", z.im))


@complex_rule("convert_element_type")
def convert_element_type(step: Step, z: Any) -> Any:
    """To complex numbers, or from them to their real part."""
    if not isinstance(z, Pair):
        own = step.build.cast(z, _real_dtype(step, step.dtype))
        return Pair(own, step.op("Mul", own, 0.0) if step.ins[0].shape else step.number(0, own))
    if step.dtype.kind == "c":
        return Pair(*(step.build.cast(part, _real_dtype(step, step.dtype)) for part in z))
    if step.dtype == np.bool_:
        return step.op("Or", *(step.op("Not", step.op("Equal", part, 0.0)) for part in z))
    return step.build.cast(z.re, kind_of(step.dtype))


@complex_rule("eq")
def eq(step: Step, z: Pair, w: Pair) -> ir.Value:
    """Both parts are equal."""
    return step.op("And", step.op("Equal", z.re, w.re), step.op("Equal", z.im, w.im))


@complex_rule("ne")
def ne(step: Step, z: Pair, w: Pair) -> ir.Value:
    """One of the parts is not."""
    return step.op("Not", eq(step, z, w))


@complex_rule("is_finite")
def is_finite(step: Step, z: Pair) -> ir.Value:
    """Both parts are finite."""
    each = [step.op("Not", step.op("Or", step.op("IsInf", part), step.op("IsNaN", part))) for part in z]
    return step.op("And", *each)


@complex_rule("scatter-mul")
def scatter_mul(step: Step, z: Pair, indices: ir.Value, factors: Pair) -> Pair:
    """A product with factors that are 1 where nothing is scattered to, if no place has several."""
    if not step.params["unique_indices"]:
        raise step.unsupported("several products of complex numbers at one place have no counterpart")
    shape = step.ins[0].shape
    scattered = rules()["scatter"]
    c, d = (
        scattered(step, step.filled(shape, number, part.dtype), indices, part)
        for number, part in zip((1, 0), factors, strict=True)
    )
    return Pair(
        step.op("Sub", step.op("Mul", z.re, c), step.op("Mul", z.im, d)),
        step.op("Add", step.op("Mul", z.re, d), step.op("Mul", z.im, c)),
    )


@complex_rule("dot_general")
def dot_general(step: Step, z: Pair, w: Pair) -> Pair:
    """Four products of matrices."""
    numbers, shapes = step.params["dimension_numbers"], [each.shape for each in step.ins]

    def times(x: ir.Value, y: ir.Value) -> ir.Value:
        return product(step, x, y, numbers, *shapes)

    return Pair(
        step.op("Sub", times(z.re, w.re), times(z.im, w.im)), step.op("Add", times(z.re, w.im), times(z.im, w.re))
    )


@complex_rule("conv_general_dilated")
def conv_general_dilated(step: Step, z: Pair, w: Pair) -> Pair:
    """Four convolutions."""
    from entrepot.exporters.jax.primitives.convolutions import convolution

    def times(x: ir.Value, y: ir.Value) -> ir.Value:
        return convolution(step, x, y, _real_dtype(step, step.dtype))

    return Pair(
        step.op("Sub", times(z.re, w.re), times(z.im, w.im)), step.op("Add", times(z.re, w.im), times(z.im, w.re))
    )
