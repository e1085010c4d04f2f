"""How far a float result is from the exact one, and whether that is more than its source's own rounding."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

STEPS = 80
"""Units in the last place: a formula of a few operations stays within this, a wrong one does not."""
OWN = 32
"""How many times the source's own error is allowed: two formulas round differently where one of them cancels."""


@dataclass(frozen=True)
class Precision:
    """What was found about one function.

    Attributes:
        ok: Whether every point where the source is well-defined is right.
        worst: Largest error in units in the last place of the exact result; infinite for a wrong kind of number.
        at: Flat index of the point that is furthest off.
    """

    ok: bool
    worst: float
    at: int


def judge(source: Array, exact: Array, actual: Array) -> Precision:
    """Compare a result with its source.

    Args:
        source: What the framework computes.
        exact: What it computes from the same inputs in float64.
        actual: What is judged; the same shape and dtype as ``source``.
    """
    if source.shape != actual.shape or source.dtype != actual.dtype:
        return Precision(ok=False, worst=np.inf, at=0)
    if source.dtype.kind != "f":
        bad = (source != actual).reshape(-1)
        return Precision(ok=not bad.any(), worst=np.inf if bad.any() else 0.0, at=int(bad.argmax()) if bad.size else 0)
    with np.errstate(all="ignore"):
        return _judge_floats(source.reshape(-1), exact.reshape(-1).astype(np.float64), actual.reshape(-1))


def _judge_floats(source: Array, exact: Array, actual: Array) -> Precision:
    rounded = exact.astype(source.dtype)
    defined = (np.isnan(source) == np.isnan(rounded)) & (np.isinf(source) == np.isinf(rounded))
    defined &= ~np.isinf(source) | (source == rounded)
    error = np.abs(actual.astype(np.float64) - exact)
    own = np.abs(source.astype(np.float64) - exact)
    defined &= ~(own > np.maximum(np.abs(exact), np.abs(source)) / 2)  # poles, and what cancellation leaves
    same = (np.isnan(source) & np.isnan(actual)) | (source == actual) | (rounded == actual)
    error[same | ~defined], own[same | ~defined] = 0, 0
    error[np.isnan(error)] = np.inf
    # halves are computed in float32 and rounded once
    relative = float(np.finfo(source.dtype).eps) * (2 if source.dtype == np.float16 else STEPS)
    tiny = float(np.finfo(source.dtype).smallest_normal)
    unit = np.maximum(np.abs(np.spacing(rounded)).astype(np.float64), np.finfo(source.dtype).smallest_subnormal)
    unit[~np.isfinite(unit)] = np.finfo(source.dtype).max
    allowed = np.maximum(relative * np.abs(exact), OWN * own) + tiny
    allowed[~np.isfinite(allowed)] = 0  # a NaN or infinity agrees only with the same one
    bad = error > allowed
    steps = error / unit
    at = int(np.where(bad, steps, -1).argmax()) if bad.any() else int(steps.argmax())
    return Precision(ok=not bad.any(), worst=float(steps[at]), at=at)
