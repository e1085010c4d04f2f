from __future__ import annotations

import numpy as np

from entrepot.runtime.kernels.axes import counted
from entrepot.runtime.kernels.backend import Array, Backend
from entrepot.runtime.kernels.precision import narrow, widen
from entrepot.runtime.kernels.table import shared


@shared("Softmax", 13)
def softmax(xp: Backend, input: Array, *, axis: int = -1) -> Array:
    """exp(x) / sum(exp(x)) along ``axis``, shifted by the maximum so that nothing overflows."""
    x = widen(xp, input)
    e = xp.exp(x - xp.max(x, (axis,), keepdims=True))
    return narrow(xp, e / xp.sum(e, (axis,), keepdims=True), xp.dtype(input))


@shared("LogSoftmax", 13)
def log_softmax(xp: Backend, input: Array, *, axis: int = -1) -> Array:
    """The logarithm of Softmax, without taking the logarithm of a rounded quotient."""
    x = widen(xp, input)
    x = x - xp.max(x, (axis,), keepdims=True)
    return narrow(xp, x - xp.log(xp.sum(xp.exp(x), (axis,), keepdims=True)), xp.dtype(input))


@shared("Hardmax", 13)
def hardmax(xp: Backend, input: Array, *, axis: int = -1) -> Array:
    """One at the first maximum along ``axis``, zero elsewhere."""
    shape = xp.shape(input)
    axis = counted(axis, len(shape))
    if not all(shape):
        return input
    positions = xp.arange(0, shape[axis], 1, np.dtype(np.int64))
    positions = xp.reshape(positions, [-1 if i == axis else 1 for i in range(len(shape))])
    return xp.astype(positions == xp.expand_dims(xp.argmax(input, axis), axis), xp.dtype(input))
