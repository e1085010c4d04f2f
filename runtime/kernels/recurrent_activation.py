"""The activations a recurrent operator may name, with the default of each one's alpha and beta."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from entrepot.ir.errors import InputError
from entrepot.runtime.kernels.backend import Array, Backend

Activation: TypeAlias = Callable[[Array], Array]


def sigmoid(xp: Backend, x: Array) -> Array:
    """By tanh, which cannot overflow."""
    half = xp.scalar(0.5, like=x)
    return xp.tanh(x * half) * half + half


def _softplus(xp: Backend, x: Array) -> Array:
    zero = xp.scalar(0.0, like=x)
    return xp.maximum(x, zero) + xp.log1p(xp.exp(-xp.abs(x)))


def _leaky(xp: Backend, x: Array, alpha: float) -> Array:
    return xp.where(x < xp.scalar(0.0, like=x), x * xp.scalar(alpha, like=x), x)


def _thresholded(xp: Backend, x: Array, alpha: float) -> Array:
    return xp.where(x > xp.scalar(alpha, like=x), x, xp.scalar(0.0, like=x))


def _affine(xp: Backend, x: Array, alpha: float, beta: float) -> Array:
    return x * xp.scalar(alpha, like=x) + xp.scalar(beta, like=x)


def _hard_sigmoid(xp: Backend, x: Array, alpha: float, beta: float) -> Array:
    return xp.minimum(xp.maximum(_affine(xp, x, alpha, beta), xp.scalar(0.0, like=x)), xp.scalar(1.0, like=x))


def _elu(xp: Backend, x: Array, alpha: float) -> Array:
    zero = xp.scalar(0.0, like=x)
    return xp.where(x < zero, xp.scalar(alpha, like=x) * xp.expm1(xp.minimum(x, zero)), x)


_ACTIVATIONS: dict[str, tuple[Callable[..., Array], tuple[float, ...]]] = {
    "relu": (lambda xp, x: xp.maximum(x, xp.scalar(0.0, like=x)), ()),
    "tanh": (lambda xp, x: xp.tanh(x), ()),
    "sigmoid": (sigmoid, ()),
    "affine": (_affine, (1.0, 0.0)),
    "leakyrelu": (_leaky, (0.01,)),
    "thresholdedrelu": (_thresholded, (1.0,)),
    "scaledtanh": (
        lambda xp, x, alpha, beta: xp.scalar(alpha, like=x) * xp.tanh(x * xp.scalar(beta, like=x)),
        (1.0, 1.0),
    ),
    "hardsigmoid": (_hard_sigmoid, (0.2, 0.5)),
    "elu": (_elu, (1.0,)),
    "softsign": (lambda xp, x: x / (xp.scalar(1.0, like=x) + xp.abs(x)), ()),
    "softplus": (_softplus, ()),
}


def activations(
    xp: Backend, names: Sequence[str], alphas: Sequence[float] | None, betas: Sequence[float] | None
) -> list[Activation]:
    """The named functions in order; each that takes an alpha or a beta consumes the next one given."""
    alpha, beta = iter(alphas or ()), iter(betas or ())
    return [_bound(xp, name, alpha, beta) for name in names]


def _bound(xp: Backend, name: str, *given: object) -> Activation:
    if name.lower() not in _ACTIVATIONS:
        raise InputError(f"no recurrent activation is called {name!r}; known: {', '.join(sorted(_ACTIVATIONS))}")
    function, defaults = _ACTIVATIONS[name.lower()]
    parameters = [next(values, default) for values, default in zip(given, defaults, strict=False)]  # type: ignore[call-overload]
    return lambda x: function(xp, x, *parameters)
