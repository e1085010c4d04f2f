"""Activations of float32 by blocks, every step in place: the shared formulas make a new array each time.

Other element types go to the shared meaning. NumPy's exp2 takes less than half the time of its exp, so exponentials are
written with it; the rounding of the exponent costs a few units in the last place.
"""

from __future__ import annotations

import math

import numpy as np

from entrepot.runtime.kernels import activation as shared
from entrepot.runtime.providers.cpu.backend import NUMPY
from entrepot.runtime.providers.cpu.blocks import Array, blockwise, clamp, maximum
from entrepot.runtime.providers.cpu.erf import gelu_block
from entrepot.runtime.providers.cpu.table import native

_F32 = np.dtype(np.float32)
_LOG2_E = math.log2(math.e)
_ZEROS = {np.dtype(kind): np.array(0, kind) for kind in (np.float16, np.float32, np.float64)}


def _f32(value: float) -> Array:
    return np.array(value, np.float32)


_ZERO, _ONE, _MINUS_LOG2_E = _f32(0), _f32(1), _f32(-_LOG2_E)


@native("Relu", 14)
def relu(X: Array) -> Array:
    """max(0, x); NaN stays."""
    zero = _ZEROS.get(X.dtype)  # converting a Python 0 costs as much as the whole call
    return maximum(X, X.dtype.type(0) if zero is None else zero)


@native("LeakyRelu", 16)
def leaky_relu(X: Array, *, alpha: float = 0.01) -> Array:
    """X, times ``alpha`` below zero."""
    if not 0 < alpha <= 1:
        return shared.leaky_relu(NUMPY, X, alpha=alpha)
    return np.maximum(X, np.multiply(X, X.dtype.type(alpha)))


@native("Sigmoid", 13)
def sigmoid(X: Array) -> Array:
    """1 / (1 + exp(-x))."""
    return blockwise(X, _sigmoid) if X.dtype == _F32 else shared.sigmoid(NUMPY, X)


def _sigmoid(x: Array, out: Array, buffer: Array) -> None:
    np.multiply(x, _MINUS_LOG2_E, out)
    np.exp2(out, out)
    np.add(out, _ONE, out)
    np.divide(_ONE, out, out)


@native("Swish", 24)
def swish(X: Array, *, alpha: float = 1.0) -> Array:
    """X · sigmoid(alpha · x)."""
    if X.dtype != _F32:
        return shared.swish(NUMPY, X, alpha=alpha)
    factor = _f32(-alpha * _LOG2_E)

    def formula(x: Array, out: Array, buffer: Array) -> None:
        np.multiply(x, factor, out)
        np.exp2(out, out)
        np.add(out, _ONE, out)
        np.divide(x, out, out)

    return blockwise(X, formula)


@native("HardSigmoid", 22)
def hard_sigmoid(X: Array, *, alpha: float = 0.2, beta: float = 0.5) -> Array:
    """Cut alpha · x + beta to [0, 1]."""
    if X.dtype != _F32:
        return shared.hard_sigmoid(NUMPY, X, alpha=alpha, beta=beta)
    y = np.asarray(np.multiply(X, _f32(alpha)))
    np.add(y, _f32(beta), y)
    return clamp(y, _ZERO, _ONE)


@native("HardSwish", 22)
def hard_swish(X: Array) -> Array:
    """X times HardSigmoid(x, alpha=1/6, beta=0.5)."""
    if X.dtype != _F32:
        return shared.hard_swish(NUMPY, X)
    gate = np.asarray(hard_sigmoid(X, alpha=1 / 6, beta=0.5))
    return np.multiply(gate, X, gate)


@native("Gelu", 20)
def gelu(X: Array, *, approximate: str = "none") -> Array:
    """X · (1 + erf(x / √2)) / 2, or its approximation by tanh."""
    if X.dtype != _F32 or approximate not in ("none", "tanh"):
        return shared.gelu(NUMPY, X, approximate=approximate)
    return blockwise(X, gelu_block if approximate == "none" else _gelu_tanh)


_GELU_LINEAR = _f32(-2 * math.sqrt(2 / math.pi) * _LOG2_E)
_GELU_CUBIC = _f32(-2 * math.sqrt(2 / math.pi) * 0.044715 * _LOG2_E)


def _gelu_tanh(x: Array, out: Array, buffer: Array) -> None:
    # (1 + tanh(u)) / 2 = 1 / (1 + exp(-2u)), here with the constants of u and of exp2 folded together
    np.multiply(x, x, out)
    np.multiply(out, _GELU_CUBIC, out)
    np.add(out, _GELU_LINEAR, out)
    np.multiply(out, x, out)
    np.exp2(out, out)
    np.add(out, _ONE, out)
    np.divide(x, out, out)
