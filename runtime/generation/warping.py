"""Scores from which a token is drawn: which tokens may be, in the order of Hugging Face's ``generate``."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from entrepot.ir.errors import InputError
from entrepot.runtime.generation.scores import NEVER, log_softmax, softmax
from entrepot.runtime.generation.settings import Settings

Array: TypeAlias = np.ndarray[Any, Any]

_CONSIDERED = 100
"""How many tokens a share of the entropy is about."""


def warped(scores: Array, settings: Settings, keep: int = 1) -> Array:
    """Scores from which a token is drawn: by temperature, the most likely ones, those with most of the probability.

    Args:
        scores: In float32.
        settings: What is asked for.
        keep: The fewest tokens that stay possible.

    Raises:
        InputError: There is a row in which nothing can be drawn.
    """
    if not np.isfinite(scores.max(1)).all():
        raise InputError(
            "no token can be drawn: every one is forbidden, or scores are no numbers",
            hint="see suppress_tokens, no_repeat_ngram_size and the inputs",
        )
    scores = scores / np.float32(settings.temperature)
    if settings.top_h < 1:
        scores = _with_entropy(scores, settings.top_h)
    most = min(max(settings.top_k, keep), scores.shape[1])
    if settings.top_k and most < scores.shape[1]:
        scores = np.where(scores < _least(scores, most), NEVER, scores)
    if settings.top_p < 1:
        scores = _nucleus(scores, settings.top_p, keep)
    return _likely(scores, settings, keep)


def _likely(scores: Array, settings: Settings, keep: int) -> Array:
    """Without what is too unlikely by itself, or says too much."""
    if settings.min_p > 0:
        chances = softmax(scores)
        scores = _without(scores, chances < settings.min_p * chances.max(1, keepdims=True), keep)
    if 0 < settings.typical_p < 1:
        scores = _typical(scores, settings.typical_p, keep)
    if 0 < settings.epsilon_cutoff < 1:
        scores = _without(scores, softmax(scores) < settings.epsilon_cutoff, keep)
    if 0 < settings.eta_cutoff < 1:
        least = np.minimum(settings.eta_cutoff, np.sqrt(settings.eta_cutoff) * np.exp(-_entropy(scores)))
        scores = _without(scores, softmax(scores) < least, keep)
    return scores


def _least(scores: Array, count: int) -> Array:
    """The lowest of the highest scores of each row."""
    count = min(count, scores.shape[1])
    least: Array = np.partition(scores, -count, axis=1)[:, -count, None]
    return least


def _without(scores: Array, unlikely: Array, keep: int) -> Array:
    return np.where(unlikely & (scores < _least(scores, keep)), NEVER, scores)


def _information(scores: Array) -> tuple[Array, Array]:
    """Probabilities, and the logarithm of each, which is 0 where nothing can happen."""
    chances = softmax(scores)
    return chances, np.where(chances > 0, log_softmax(scores), np.float32(0))


def _entropy(scores: Array) -> Array:
    chances, logs = _information(scores)
    return -(chances * logs).sum(1, keepdims=True)


def _nucleus(scores: Array, share: float, keep: int) -> Array:
    order = np.argsort(scores, axis=1, kind="stable")
    rising = np.take_along_axis(scores, order, 1)
    unlikely = np.cumsum(softmax(rising), 1) <= 1 - share
    unlikely[:, -keep:] = False
    return _forbidden(scores, order, unlikely)


def _with_entropy(scores: Array, share: float) -> Array:
    """The most likely tokens, up to a share of the entropy that those which are considered have together."""
    order = np.argsort(-scores, axis=1, kind="stable")
    falling = np.take_along_axis(scores, order, 1)[:, :_CONSIDERED]
    chances, logs = _information(falling)
    parts = -chances * logs
    beyond = np.ones(scores.shape, bool)
    beyond[:, : parts.shape[1]] = np.cumsum(parts, 1) > share * parts.sum(1, keepdims=True)
    beyond[:, 0] = False
    return _forbidden(scores, order, beyond)


def _typical(scores: Array, share: float, keep: int) -> Array:
    """The tokens that say about as much as a token does on average."""
    logs = log_softmax(scores)
    distance = np.abs(-logs - _entropy(scores))
    order = np.argsort(distance, axis=1, kind="stable")
    nearest = np.take_along_axis(distance, order, 1)
    chances = softmax(np.take_along_axis(scores, order, 1))
    last = np.minimum((np.cumsum(chances, 1) < share).sum(1, keepdims=True), scores.shape[1] - 1)
    odd = nearest > np.take_along_axis(nearest, last, 1)
    odd[:, :keep] = False
    return _forbidden(scores, order, odd)


def _forbidden(scores: Array, order: Array, which: Array) -> Array:
    """Scores without some tokens, by their places in an order."""
    scores = scores.copy()
    rows, places = np.nonzero(which)
    scores[rows, order[rows, places]] = NEVER
    return scores


def drawn(scores: Array, uniform: Array) -> Array:
    """A token for each row, by its probability and a number between 0 and 1."""
    total = np.cumsum(softmax(scores.astype(np.float64)), 1)
    return (total <= uniform[:, None] * total[:, -1:]).sum(1)
