from __future__ import annotations

from typing import Any

import numpy as np

from entrepot.ir.errors import InputError
from entrepot.runtime.kernels.axes import is_shape
from entrepot.runtime.kernels.backend import Array, Backend
from entrepot.runtime.kernels.precision import narrow, widen
from entrepot.runtime.kernels.softmax import log_softmax
from entrepot.runtime.kernels.table import shared


@shared("NegativeLogLikelihoodLoss", 22)
def negative_log_likelihood_loss(
    xp: Backend,
    input: Array,
    target: Array,
    weight: Array | None = None,
    *,
    ignore_index: int | None = None,
    reduction: str = "mean",
) -> Array:
    """Minus the log-probability given to each target class, weighted by class; the mean is a weighted one."""
    loss, weights = _losses(xp, widen(xp, input), target, weight, ignore_index)
    return narrow(xp, _reduced(xp, loss, weights, reduction), xp.dtype(input))


@shared("SoftmaxCrossEntropyLoss", 13)
def softmax_cross_entropy_loss(
    xp: Backend,
    scores: Array,
    labels: Array,
    weights: Array | None = None,
    *,
    ignore_index: int | None = None,
    reduction: str = "mean",
) -> tuple[Array, Array]:
    """The negative log-likelihood of ``labels`` under Softmax of ``scores``; also the log-probabilities."""
    log_prob = log_softmax(xp, widen(xp, scores), axis=1)
    loss, applied = _losses(xp, log_prob, labels, weights, ignore_index)
    dtype = xp.dtype(scores)
    return narrow(xp, _reduced(xp, loss, applied, reduction), dtype), narrow(xp, log_prob, dtype)


def _losses(
    xp: Backend, log_prob: Array, target: Array, weight: Array | None, ignore_index: int | None
) -> tuple[Array, Array]:
    """The weighted loss of each target and the weight it had; an ignored target has weight 0."""
    batch, _, *sizes = xp.shape(log_prob)
    if not is_shape(xp.shape(target), (batch, *sizes)):
        raise InputError(f"targets of shape {tuple(xp.shape(target))} for scores of shape {tuple(xp.shape(log_prob))}")
    target = xp.astype(target, np.dtype(np.int64))
    ignored: Any = None if ignore_index is None else target == ignore_index
    if ignored is not None:  # an ignored index need not be a class, so it must not be looked up
        target = xp.where(ignored, xp.full((), 0, np.dtype(np.int64)), target)
    picked = xp.squeeze(xp.take_along_axis(log_prob, xp.expand_dims(target, 1), 1), 1)
    weights = xp.full(xp.shape(target), 1.0, xp.dtype(log_prob))
    if weight is not None:
        flat = xp.take(xp.astype(weight, xp.dtype(log_prob)), xp.reshape(target, (-1,)), 0)
        weights = xp.reshape(flat, xp.shape(target))
    if ignored is not None:
        zero = xp.scalar(0.0, like=weights)
        return xp.where(ignored, zero, -picked * weights), xp.where(ignored, zero, weights)
    return -picked * weights, weights


def _reduced(xp: Backend, loss: Array, weights: Array, reduction: str) -> Array:
    axes = tuple(range(len(xp.shape(loss))))
    if reduction == "none":
        return loss
    if reduction == "sum":
        return xp.sum(loss, axes)
    if reduction == "mean":
        return xp.sum(loss, axes) / xp.sum(weights, axes)
    raise InputError(f"reduction is none, sum or mean, not {reduction!r}")
