"""Functions of complex numbers, as formulas of their parts."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from entrepot.exporters.jax.primitives.complex_numbers import formula
from entrepot.exporters.jax.step import Step


@formula("mul")
def _mul(step: Step, a: Any, b: Any, c: Any, d: Any) -> Any:
    return [a * c - b * d, a * d + b * c]


@formula("square")
def _square(step: Step, a: Any, b: Any) -> Any:
    return [(a - b) * (a + b), 2 * a * b]


@formula("div")
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


@formula("abs")
def _abs(step: Step, a: Any, b: Any) -> Any:
    large, small = jnp.maximum(jnp.abs(a), jnp.abs(b)), jnp.minimum(jnp.abs(a), jnp.abs(b))
    ratio = small / jnp.where(large == 0, 1, large)
    return [jnp.where(jnp.isinf(large), large, large * jnp.sqrt(1 + ratio * ratio))]


@formula("sign")
def _sign(step: Step, a: Any, b: Any) -> Any:
    (size,) = _abs(step, a, b)
    safe = jnp.where(size == 0, 1, size)
    return [a / safe, b / safe]


@formula("exp")
def _exp(step: Step, a: Any, b: Any) -> Any:
    grown = jnp.exp(a)
    return [grown * jnp.cos(b), jnp.where(b == 0, b, grown * jnp.sin(b))]


@formula("log")
def _log(step: Step, a: Any, b: Any) -> Any:
    (size,) = _abs(step, a, b)
    return [jnp.log(size), jnp.arctan2(b, a)]


@formula("log1p")
def _log1p(step: Step, a: Any, b: Any) -> Any:
    return [0.5 * jnp.log1p(a * (2 + a) + b * b), jnp.arctan2(b, 1 + a)]


@formula("expm1")
def _expm1(step: Step, a: Any, b: Any) -> Any:
    half = jnp.sin(b / 2)
    return [jnp.expm1(a) * jnp.cos(b) - 2 * half * half, jnp.exp(a) * jnp.sin(b)]


@formula("sqrt")
def _sqrt(step: Step, a: Any, b: Any) -> Any:
    (size,) = _abs(step, a, b)
    root = jnp.sqrt((size + jnp.abs(a)) / 2)
    other = jnp.where(root == 0, 0, b / (2 * jnp.where(root == 0, 1, root)))
    sign = jnp.where(b < 0, -1.0, 1.0).astype(a.dtype)
    return [jnp.where(a >= 0, root, jnp.abs(other)), jnp.where(a >= 0, other, sign * root)]


@formula("rsqrt")
def _rsqrt(step: Step, a: Any, b: Any) -> Any:
    one = jnp.ones_like(a)
    return _div(step, one, jnp.zeros_like(a), *_sqrt(step, a, b))


@formula("sin")
def _sin(step: Step, a: Any, b: Any) -> Any:
    return [jnp.sin(a) * jnp.cosh(b), jnp.cos(a) * jnp.sinh(b)]


@formula("cos")
def _cos(step: Step, a: Any, b: Any) -> Any:
    return [jnp.cos(a) * jnp.cosh(b), -jnp.sin(a) * jnp.sinh(b)]


@formula("sinh")
def _sinh(step: Step, a: Any, b: Any) -> Any:
    return [jnp.sinh(a) * jnp.cos(b), jnp.cosh(a) * jnp.sin(b)]


@formula("cosh")
def _cosh(step: Step, a: Any, b: Any) -> Any:
    return [jnp.cosh(a) * jnp.cos(b), jnp.sinh(a) * jnp.sin(b)]


@formula("tanh")
def _tanh(step: Step, a: Any, b: Any) -> Any:
    """Of parts that neither overflow nor cancel."""
    t, s, c = jnp.tanh(a), jnp.sin(b), jnp.cos(b)
    below = c * c + t * t * s * s
    return [t / below, (1 - t) * (1 + t) * s * c / below]


@formula("tan")
def _tan(step: Step, a: Any, b: Any) -> Any:
    """I times tanh of -i z."""
    re, im = _tanh(step, -b, a)
    return [im, -re]


@formula("atan")
def _atan(step: Step, a: Any, b: Any) -> Any:
    over = jnp.log1p(4 * b / (a * a + (1 - b) * (1 - b)))
    return [0.5 * jnp.arctan2(2 * a, 1 - a * a - b * b), over / 4]


@formula("atanh")
def _atanh(step: Step, a: Any, b: Any) -> Any:
    re, im = _atan(step, -b, a)
    return [im, -re]


@formula("asinh")
def _asinh(step: Step, a: Any, b: Any) -> Any:
    root = _sqrt(step, (a - b) * (a + b) + 1, 2 * a * b)
    return _log(step, a + root[0], b + root[1])


@formula("asin")
def _asin(step: Step, a: Any, b: Any) -> Any:
    re, im = _asinh(step, -b, a)
    return [im, -re]


@formula("acos")
def _acos(step: Step, a: Any, b: Any) -> Any:
    re, im = _asin(step, a, b)
    return [np.pi / 2 - re, -im]


@formula("acosh")
def _acosh(step: Step, a: Any, b: Any) -> Any:
    first, second = _sqrt(step, a + 1, b), _sqrt(step, a - 1, b)
    both = _mul(step, *first, *second)
    return _log(step, a + both[0], b + both[1])


@formula("logistic")
def _logistic(step: Step, a: Any, b: Any) -> Any:
    grown = _exp(step, -a, -b)
    return _div(step, jnp.ones_like(a), jnp.zeros_like(a), 1 + grown[0], grown[1])


@formula("pow")
def _pow(step: Step, a: Any, b: Any, *power: Any) -> Any:
    """exp(w log z); 1 for no power, and 0 of a base of 0."""
    c, d = power if len(power) == 2 else (power[0].astype(a.dtype), jnp.zeros_like(a))
    re, im = _log(step, a, b)
    found = _exp(step, *_mul(step, c, d, re, im))
    nothing, one = (a == 0) & (b == 0), (c == 0) & (d == 0)
    return [jnp.where(one, 1, jnp.where(nothing, 0, found[0])), jnp.where(one | nothing, 0, found[1])]


@formula("integer_pow")
def _integer_pow(step: Step, a: Any, b: Any) -> Any:
    power, result, factor = abs(step.params["y"]), None, [a, b]
    while power:
        if power & 1:
            result = factor if result is None else _mul(step, *result, *factor)
        factor, power = _mul(step, *factor, *factor), power >> 1
    result = [jnp.ones_like(a), jnp.zeros_like(a)] if result is None else result
    return _div(step, jnp.ones_like(a), jnp.zeros_like(a), *result) if step.params["y"] < 0 else result


@formula("reduce_prod")
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


@formula("cumprod")
def _cumprod(step: Step, a: Any, b: Any) -> Any:
    axis, backward = step.params["axis"], step.params["reverse"]
    found = _products(step, jnp.moveaxis(a, axis, 0), jnp.moveaxis(b, axis, 0), reverse=backward)
    return [jnp.moveaxis(each, 0, axis) for each in found]
