"""Activation functions, elementwise. Float16 and bfloat16 are computed in float32 and rounded once."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from entrepot.ir.errors import InputError
from entrepot.runtime.kernels.backend import Array, Backend
from entrepot.runtime.kernels.precision import narrow, widen
from entrepot.runtime.kernels.table import shared


def _widened(xp: Backend, x: Array, formula: Callable[[Array], Array]) -> Array:
    return narrow(xp, formula(widen(xp, x)), xp.dtype(x))


@shared("Relu", 14)
def relu(xp: Backend, X: Array) -> Array:
    """max(0, x); NaN stays."""
    return xp.maximum(X, xp.scalar(0, like=X))


@shared("LeakyRelu", 16)
def leaky_relu(xp: Backend, X: Array, *, alpha: float = 0.01) -> Array:
    """X, times ``alpha`` below zero."""
    return xp.where(X < xp.scalar(0, like=X), xp.scalar(alpha, like=X) * X, X)


@shared("PRelu", 16)
def prelu(xp: Backend, X: Array, slope: Array) -> Array:
    """X, times ``slope`` below zero; ``slope`` broadcasts to x."""
    if xp.dtype(X).kind == "u":
        return X
    return xp.where(X < xp.scalar(0, like=X), slope * X, X)


@shared("ThresholdedRelu", 22)
def thresholded_relu(xp: Backend, X: Array, *, alpha: float = 1.0) -> Array:
    """X where it is above ``alpha``, else 0."""
    return xp.where(X > xp.scalar(alpha, like=X), X, xp.scalar(0, like=X))


@shared("Sigmoid", 13)
def sigmoid(xp: Backend, X: Array) -> Array:
    """1 / (1 + exp(-x))."""
    return _widened(xp, X, lambda x: _sigmoid(xp, x))


def _sigmoid(xp: Backend, x: Array) -> Array:
    one = xp.scalar(1, like=x)
    return one / (one + xp.exp(-x))  # exp may reach infinity, whose inverse is the right answer


@shared("HardSigmoid", 22)
def hard_sigmoid(xp: Backend, X: Array, *, alpha: float = 0.2, beta: float = 0.5) -> Array:
    """Cut alpha · x + beta to [0, 1]."""
    return _widened(xp, X, lambda x: _hard_sigmoid(xp, x, alpha, beta))


def _hard_sigmoid(xp: Backend, x: Array, alpha: float, beta: float) -> Array:
    line = xp.scalar(alpha, like=x) * x + xp.scalar(beta, like=x)
    return xp.minimum(xp.maximum(line, xp.scalar(0, like=x)), xp.scalar(1, like=x))


@shared("HardSwish", 22)
def hard_swish(xp: Backend, X: Array) -> Array:
    """X times HardSigmoid(x, alpha=1/6, beta=0.5)."""
    return _widened(xp, X, lambda x: x * _hard_sigmoid(xp, x, 1 / 6, 0.5))


@shared("Swish", 24)
def swish(xp: Backend, X: Array, *, alpha: float = 1.0) -> Array:
    """X · sigmoid(alpha · x)."""
    return _widened(xp, X, lambda x: x * _sigmoid(xp, xp.scalar(alpha, like=x) * x))


@shared("SwiGLU", 28)
def swiglu(xp: Backend, A: Array, B: Array, *, alpha: float = 1.0) -> Array:
    """Swish(A) · B."""
    gate = widen(xp, A)
    return narrow(xp, gate * _sigmoid(xp, xp.scalar(alpha, like=gate) * gate) * widen(xp, B), xp.dtype(A))


@shared("Softplus", 22)
def softplus(xp: Backend, X: Array) -> Array:
    """log(1 + exp(x)), as max(x, 0) + log1p(exp(-|x|)), which cannot overflow."""
    return _widened(xp, X, lambda x: _softplus(xp, x))


def _softplus(xp: Backend, x: Array) -> Array:
    return xp.maximum(x, xp.scalar(0, like=x)) + xp.log1p(xp.exp(-xp.abs(x)))


@shared("Softsign", 22)
def softsign(xp: Backend, input: Array) -> Array:
    """X / (1 + |x|)."""
    return _widened(xp, input, lambda x: x / (xp.scalar(1, like=x) + xp.abs(x)))


@shared("Mish", 22)
def mish(xp: Backend, X: Array) -> Array:
    """X · tanh(softplus(x))."""
    return _widened(xp, X, lambda x: x * xp.tanh(_softplus(xp, x)))


@shared("Elu", 22)
def elu(xp: Backend, X: Array, *, alpha: float = 1.0) -> Array:
    """X, or alpha · (exp(x) - 1) below zero."""
    return _widened(xp, X, lambda x: _elu(xp, x, alpha))


def _elu(xp: Backend, x: Array, alpha: float) -> Array:
    zero = xp.scalar(0, like=x)
    below = xp.scalar(alpha, like=x) * xp.expm1(xp.minimum(x, zero))
    return xp.where(x < zero, below, x)


@shared("Celu", 28)
def celu(xp: Backend, X: Array, *, alpha: float = 1.0) -> Array:
    """max(0, x) + min(0, alpha · (exp(x / alpha) - 1))."""

    def formula(x: Array) -> Array:
        zero, scale = xp.scalar(0, like=x), xp.scalar(alpha, like=x)
        return xp.maximum(x, zero) + xp.minimum(scale * xp.expm1(x / scale), zero)

    return _widened(xp, X, formula)


@shared("Selu", 22)
def selu(xp: Backend, X: Array, *, alpha: float = 1.6732631921768188, gamma: float = 1.0507010221481323) -> Array:
    """Elu(x, alpha), times gamma."""
    return _widened(xp, X, lambda x: xp.scalar(gamma, like=x) * _elu(xp, x, alpha))


@shared("Gelu", 20)
def gelu(xp: Backend, X: Array, *, approximate: str = "none") -> Array:
    """X · (1 + erf(x / √2)) / 2, or its approximation by tanh."""
    if approximate not in ("none", "tanh"):
        raise InputError(f"Gelu takes approximate 'none' or 'tanh', not {approximate!r}")
    formula = _gelu_erf if approximate == "none" else _gelu_tanh
    return _widened(xp, X, lambda x: formula(xp, x))


def _gelu_erf(xp: Backend, x: Array) -> Array:
    half, one = xp.scalar(0.5, like=x), xp.scalar(1, like=x)
    return half * x * (one + xp.erf(x * xp.scalar(math.sqrt(0.5), like=x)))


def _gelu_tanh(xp: Backend, x: Array) -> Array:
    half, one = xp.scalar(0.5, like=x), xp.scalar(1, like=x)
    inner = xp.scalar(math.sqrt(2 / math.pi), like=x) * (x + xp.scalar(0.044715, like=x) * x * x * x)
    return half * x * (one + xp.tanh(inner))


@shared("Shrink", 9)
def shrink(xp: Backend, input: Array, *, bias: float = 0.0, lambd: float = 0.5) -> Array:
    """Move x toward zero by ``bias`` where it is further away than ``lambd``; zero elsewhere."""
    dtype, x = xp.dtype(input), input
    if np.issubdtype(dtype, np.integer):  # the bounds are floats, which makes it a comparison of floats
        x = xp.astype(input, np.dtype(np.float64))
    zero, shift, limit = (xp.scalar(value, like=x) for value in (0.0, bias, lambd))
    moved = xp.where(x > limit, x - shift, xp.where(x < -limit, x + shift, zero))
    return narrow(xp, moved, dtype)
