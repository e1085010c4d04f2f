"""What the floats of an input have in common that a model may count on, so that drawn ones are of the same kind.

A covariance matrix is symmetric and positive definite, the times of a series ascend, probabilities add up to one. Of
other values most models make nothing: they raise an error, or what they compute is decided by rounding.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import TypeAlias

import numpy as np

_Change: TypeAlias = Callable[[np.ndarray], np.ndarray]

_FEW = 4
"""Fewer numbers than this are in order by chance every now and then."""
_MOST_ROWS = 256
"""Of larger matrices, eigenvalues would take longer than most models."""
_CLOSE = 1e-4
"""How far off sums and lengths of one are, and matrices from symmetric, by rounding."""


def alike(drawn: np.ndarray, sample: np.ndarray) -> np.ndarray:
    """Drawn values, made to have what the values of a sample have in common.

    Args:
        drawn: Of the sample's dtype and rank; any sizes.
        sample: What the kind is read from.

    Returns:
        ``drawn`` itself if the sample is of no particular kind.
    """
    if sample.dtype.kind != "f" or not sample.size or not drawn.size or not sample.ndim or np.ptp(sample) == 0:
        return drawn  # one number everywhere tells nothing
    with np.errstate(all="ignore"):
        wide, made = sample.astype(np.float64), drawn.astype(np.float64)
        if not (np.isfinite(wide).all() and np.isfinite(made).all()):
            return drawn
        changed = False
        for change in _kinds(wide):
            made, changed = change(made), True
    return made.astype(drawn.dtype) if changed and np.isfinite(made).all() else drawn


def ascends(array: np.ndarray, axis: int) -> bool:
    """Whether the floats of a sample ascend along an axis, which is no chance."""
    if array.dtype.kind != "f" or array.shape[axis] < _FEW or not np.isfinite(array).all():
        return False
    steps = np.diff(array, axis=axis)
    return bool((steps >= 0).all() and (steps > 0).any())


def stretched(array: np.ndarray, axis: int, size: int) -> np.ndarray:
    """Floats along an axis at more places: they go through the same range in as many smaller steps as are needed."""
    places = np.linspace(0, array.shape[axis] - 1, size)
    before = np.floor(places).astype(np.int64)
    after = np.minimum(before + 1, array.shape[axis] - 1)
    share = (places - before).reshape([-1 if at == axis % array.ndim else 1 for at in range(array.ndim)])
    low, high = (array.take(each, axis=axis).astype(np.float64) for each in (before, after))
    return np.asarray(low + share * (high - low)).astype(array.dtype)


def _kinds(sample: np.ndarray) -> Iterator[_Change]:
    """What makes values like the sample's, in the order in which it is done."""
    for axis in range(sample.ndim):
        if ascends(sample, axis):
            yield functools.partial(np.sort, axis=axis)
    if sample.ndim > 1 and sample.shape[-1] == sample.shape[-2] > 1:
        yield from _square_kinds(sample)
    if sample.shape[-1] > 1:
        if (sample >= 0).all() and _are_one(sample.sum(-1)):
            yield lambda drawn: np.abs(drawn) / np.abs(drawn).sum(-1, keepdims=True)
        elif _are_one(np.linalg.norm(sample, axis=-1)):
            yield lambda drawn: drawn / np.linalg.norm(drawn, axis=-1, keepdims=True)


def _are_one(numbers: np.ndarray) -> bool:
    return bool((np.abs(numbers - 1) < _CLOSE).all())


def _square_kinds(sample: np.ndarray) -> Iterator[_Change]:
    turned = sample.swapaxes(-1, -2)
    size = float(np.abs(sample).max())
    if np.abs(sample - turned).max() <= _CLOSE * size and size:
        yield lambda drawn: (drawn + drawn.swapaxes(-1, -2)) / 2 if _is_square(drawn) else drawn
        if not np.diagonal(sample, axis1=-2, axis2=-1).any():
            yield lambda drawn: drawn * (1 - np.eye(*drawn.shape[-2:]))
        elif sample.shape[-1] <= _MOST_ROWS and (least := float(np.linalg.eigvalsh(sample).min())) > _CLOSE * size:
            yield lambda drawn: _definite(drawn, least)
    elif not np.triu(sample, 1).any():
        yield np.tril
    elif not np.tril(sample, -1).any():
        yield np.triu


def _is_square(drawn: np.ndarray) -> bool:
    return drawn.shape[-1] == drawn.shape[-2]


def _definite(drawn: np.ndarray, least: float) -> np.ndarray:
    """Symmetric matrices whose eigenvalues are at least as large as a number."""
    if not _is_square(drawn):
        return drawn
    lacking = np.maximum(least - np.linalg.eigvalsh(drawn).min(-1), 0)
    return drawn + lacking[..., None, None] * np.eye(drawn.shape[-1])
