"""Complex numbers as pairs of reals."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
import onnx_ir as ir
from jax import lax

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


def _formula(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
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


@_formula("mul")
def _mul(step: Step, a: Any, b: Any, c: Any, d: Any) -> Any:
    return [a * c - b * d, a * d + b * c]


@_formula("square")
def _square(step: Step, a: Any, b: Any) -> Any:
    return [(a - b) * (a + b), 2 * a * b]


@_formula("div")
def _div(step: Step, a: Any, b: Any, c: Any, d: Any) -> Any:
    """Smith's way: by the larger part of the divisor."""
    across = jnp.abs(c) >= jnp.abs(d)
    large, small = jnp.where(across, c, d), jnp.where(across, d, c)
    ratio = small / large
    scale = large + small * ratio
    first, second = jnp.where(across, a, b), jnp.where(across, b, a)
    return [
        (first + second * ratio) / scale,
        jnp.where(across, 1.0, -1.0).astype(a.dtype) * (second - first * ratio) / scale,
    ]


@_formula("abs")
def _abs(step: Step, a: Any, b: Any) -> Any:
    large, small = jnp.maximum(jnp.abs(a), jnp.abs(b)), jnp.minimum(jnp.abs(a), jnp.abs(b))
    ratio = small / jnp.where(large == 0, 1, large)
    return [jnp.where(jnp.isinf(large), large, large * jnp.sqrt(1 + ratio * ratio))]


@_formula("sign")
def _sign(step: Step, a: Any, b: Any) -> Any:
    (size,) = _abs(step, a, b)
    safe = jnp.where(size == 0, 1, size)
    return [a / safe, b / safe]


@_formula("exp")
def _exp(step: Step, a: Any, b: Any) -> Any:
    grown = jnp.exp(a)
    return [grown * jnp.cos(b), jnp.where(b == 0, b, grown * jnp.sin(b))]


@_formula("log")
def _log(step: Step, a: Any, b: Any) -> Any:
    (size,) = _abs(step, a, b)
    return [jnp.log(size), jnp.arctan2(b, a)]


@_formula("log1p")
def _log1p(step: Step, a: Any, b: Any) -> Any:
    return [0.5 * jnp.log1p(a * (2 + a) + b * b), jnp.arctan2(b, 1 + a)]


@_formula("expm1")
def _expm1(step: Step, a: Any, b: Any) -> Any:
    half = jnp.sin(b / 2)
    return [jnp.expm1(a) * jnp.cos(b) - 2 * half * half, jnp.exp(a) * jnp.sin(b)]


@_formula("sqrt")
def _sqrt(step: Step, a: Any, b: Any) -> Any:
    (size,) = _abs(step, a, b)
    root = jnp.sqrt((size + jnp.abs(a)) / 2)
    other = jnp.where(root == 0, 0, b / (2 * jnp.where(root == 0, 1, root)))
    sign = jnp.where(b < 0, -1.0, 1.0).astype(a.dtype)
    return [jnp.where(a >= 0, root, jnp.abs(other)), jnp.where(a >= 0, other, sign * root)]


@_formula("rsqrt")
def _rsqrt(step: Step, a: Any, b: Any) -> Any:
    one = jnp.ones_like(a)
    return _div(step, one, jnp.zeros_like(a), *_sqrt(step, a, b))


@_formula("sin")
def _sin(step: Step, a: Any, b: Any) -> Any:
    return [jnp.sin(a) * jnp.cosh(b), jnp.cos(a) * jnp.sinh(b)]


@_formula("cos")
def _cos(step: Step, a: Any, b: Any) -> Any:
    return [jnp.cos(a) * jnp.cosh(b), -jnp.sin(a) * jnp.sinh(b)]


@_formula("sinh")
def _sinh(step: Step, a: Any, b: Any) -> Any:
    return [jnp.sinh(a) * jnp.cos(b), jnp.cosh(a) * jnp.sin(b)]


@_formula("cosh")
def _cosh(step: Step, a: Any, b: Any) -> Any:
    return [jnp.cosh(a) * jnp.cos(b), jnp.sinh(a) * jnp.sin(b)]


@_formula("tanh")
def _tanh(step: Step, a: Any, b: Any) -> Any:
    """Of parts that neither overflow nor cancel."""
    t, s, c = jnp.tanh(a), jnp.sin(b), jnp.cos(b)
    below = c * c + t * t * s * s
    return [t / below, (1 - t) * (1 + t) * s * c / below]


@_formula("tan")
def _tan(step: Step, a: Any, b: Any) -> Any:
    """I times tanh of -i z."""
    re, im = _tanh(step, -b, a)
    return [im, -re]


@_formula("atan")
def _atan(step: Step, a: Any, b: Any) -> Any:
    over = jnp.log1p(4 * b / (a * a + (1 - b) * (1 - b)))
    return [0.5 * jnp.arctan2(2 * a, 1 - a * a - b * b), over / 4]


@_formula("atanh")
def _atanh(step: Step, a: Any, b: Any) -> Any:
    re, im = _atan(step, -b, a)
    return [im, -re]


@_formula("asinh")
def _asinh(step: Step, a: Any, b: Any) -> Any:
    root = _sqrt(step, (a - b) * (a + b) + 1, 2 * a * b)
    return _log(step, a + root[0], b + root[1])


@_formula("asin")
def _asin(step: Step, a: Any, b: Any) -> Any:
    re, im = _asinh(step, -b, a)
    return [im, -re]


@_formula("acos")
def _acos(step: Step, a: Any, b: Any) -> Any:
    re, im = _asin(step, a, b)
    return [np.pi / 2 - re, -im]


@_formula("acosh")
def _acosh(step: Step, a: Any, b: Any) -> Any:
    first, second = _sqrt(step, a + 1, b), _sqrt(step, a - 1, b)
    both = _mul(step, *first, *second)
    return _log(step, a + both[0], b + both[1])


@_formula("logistic")
def _logistic(step: Step, a: Any, b: Any) -> Any:
    grown = _exp(step, -a, -b)
    return _div(step, jnp.ones_like(a), jnp.zeros_like(a), 1 + grown[0], grown[1])


@_formula("pow")
def _pow(step: Step, a: Any, b: Any, *power: Any) -> Any:
    """exp(w log z); 1 for no power, and 0 of a base of 0."""
    c, d = power if len(power) == 2 else (power[0].astype(a.dtype), jnp.zeros_like(a))
    re, im = _log(step, a, b)
    found = _exp(step, *_mul(step, c, d, re, im))
    nothing, one = (a == 0) & (b == 0), (c == 0) & (d == 0)
    return [jnp.where(one, 1, jnp.where(nothing, 0, found[0])), jnp.where(one | nothing, 0, found[1])]


@_formula("integer_pow")
def _integer_pow(step: Step, a: Any, b: Any) -> Any:
    power, result, factor = abs(step.params["y"]), None, [a, b]
    while power:
        if power & 1:
            result = factor if result is None else _mul(step, *result, *factor)
        factor, power = _mul(step, *factor, *factor), power >> 1
    result = [jnp.ones_like(a), jnp.zeros_like(a)] if result is None else result
    return _div(step, jnp.ones_like(a), jnp.zeros_like(a), *result) if step.params["y"] < 0 else result


@_formula("reduce_prod")
def _reduce_prod(step: Step, a: Any, b: Any) -> Any:
    for axis in sorted(step.params["axes"], reverse=True):
        a, b = (each[-1] for each in _products(step, jnp.moveaxis(a, axis, 0), jnp.moveaxis(b, axis, 0)))
    return [a, b]


def _products(step: Step, a: Any, b: Any, *, reverse: bool = False) -> Any:
    """The products of all before each place of the first axis."""

    def next_one(carry: Any, each: Any) -> Any:
        found = tuple(_mul(step, *carry, *each))
        return found, found

    first = (jnp.ones_like(a[0]), jnp.zeros_like(a[0]))
    _, found = lax.scan(next_one, first, (a, b), reverse=reverse)
    return found


@_formula("cumprod")
def _cumprod(step: Step, a: Any, b: Any) -> Any:
    axis, backward = step.params["axis"], step.params["reverse"]
    found = _products(step, jnp.moveaxis(a, axis, 0), jnp.moveaxis(b, axis, 0), reverse=backward)
    return [jnp.moveaxis(each, 0, axis) for each in found]
