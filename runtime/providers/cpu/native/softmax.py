"""Softmax and its logarithm in one new array, changed in place."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from entrepot.runtime.kernels.precision import accumulation_dtype
from entrepot.runtime.providers.cpu.table import native

Array: TypeAlias = np.ndarray[Any, Any]


@native("Softmax", 13)
def softmax(input: Array, *, axis: int = -1) -> Array:
    """exp(x) / sum(exp(x)) along ``axis``, shifted by the maximum so that nothing overflows."""
    y = _shifted(input, axis)
    np.exp(y, out=y)
    np.divide(y, np.add.reduce(y, axis, keepdims=True), out=y)
    return y.astype(input.dtype, copy=False)


@native("LogSoftmax", 13)
def log_softmax(input: Array, *, axis: int = -1) -> Array:
    """The logarithm of Softmax, without taking the logarithm of a rounded quotient."""
    y = _shifted(input, axis)
    np.subtract(y, np.log(np.add.reduce(np.exp(y), axis, keepdims=True)), out=y)
    return y.astype(input.dtype, copy=False)


def _shifted(x: Array, axis: int) -> Array:
    x = x.astype(accumulation_dtype(x.dtype), copy=False)
    return np.asarray(x - np.maximum.reduce(x, axis, keepdims=True, initial=-np.inf))
