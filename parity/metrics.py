"""Every figure about two tensors of one shape and dtype, computed in float64."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from entrepot.parity.blocks import blocks
from entrepot.parity.tolerance import Tolerance, classify

HISTOGRAM_EDGES = (1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0)
"""Bounds between the bins of ``Metrics.histogram``, in units of the allowed error."""


@dataclass(frozen=True)
class Worst:
    """The element that exceeds its allowance the most (or comes closest to it)."""

    index: tuple[int, ...]
    expected: Any
    actual: Any


@dataclass(frozen=True)
class Metrics:
    """How far ``actual`` is from ``expected``. A string that differs counts as an error of 1.

    NaN agrees with NaN, but not with an error of 0: if no element is finite in both, figures about errors are NaN.

    Attributes:
        size: Number of elements.
        finite: Elements that are finite in both: figures about errors are computed from these.
        mismatched: Elements that break the rule.
        max_abs: Largest absolute error; infinite when a NaN or infinity meets anything else.
        max_rel: Largest error relative to an expected element that is finite and not zero.
        mean_abs: Mean absolute error of the elements whose error is finite.
        rms: Root mean square error of the same.
        cosine: Cosine similarity of the two as vectors over elements finite in both; 1 for two zero vectors.
        excess: Largest error in units of what the rule allows for its element; above 1 is a failure, and infinite
            where nothing is allowed.
        worst: The element with that error; ``None`` for an empty tensor.
        nans: NaNs in expected and in actual.
        infs: Infinities in expected and in actual.
        histogram: Elements by error in units of the allowed error: exact, then by ``HISTOGRAM_EDGES``.
    """

    size: int
    finite: int
    mismatched: int
    max_abs: float
    max_rel: float
    mean_abs: float
    rms: float
    cosine: float
    excess: float
    worst: Worst | None
    nans: tuple[int, int]
    infs: tuple[int, int]
    histogram: tuple[int, ...]

    @property
    def hollow(self) -> bool:
        """Whether there are elements but none is finite in both, so that agreement proves little."""
        return self.size > 0 and self.finite == 0

    @property
    def fraction_mismatched(self) -> float:
        """Share of elements that break the rule; 0 for an empty tensor."""
        return self.mismatched / self.size if self.size else 0.0


def measure(expected: np.ndarray, actual: np.ndarray, tolerance: Tolerance) -> Metrics:
    """All metrics in one pass, in bounded memory; the shapes and dtypes must be equal already."""
    judge = _JUDGES[classify(expected.dtype)]
    totals = _Totals()
    with np.errstate(all="ignore"):  # differences of infinities and zeros divided by zero are dealt with below
        for one, other in blocks(expected, actual):
            totals.add(judge(one, other, tolerance))
    return totals.finish(expected, actual)


def holds(expected: np.ndarray, actual: np.ndarray, tolerance: Tolerance) -> bool:
    """Whether no element breaks the rule, as of ``measure``, which takes several times as long for its figures."""
    judge = _JUDGES[classify(expected.dtype)]
    with np.errstate(all="ignore"):
        return not any(judge(one, other, tolerance).bad.any() for one, other in blocks(expected, actual))


class _Judged(NamedTuple):
    """One piece: its values as floats, the error of each element, and the error allowed for it."""

    expected: np.ndarray
    actual: np.ndarray
    error: np.ndarray
    allowed: np.ndarray
    bad: np.ndarray


def _judge_numbers(expected: np.ndarray, actual: np.ndarray, tolerance: Tolerance) -> _Judged:
    wide = np.complex128 if expected.dtype.kind == "c" else np.float64
    e, a = expected.astype(wide), actual.astype(wide)
    error = np.abs(a - e)
    error[(e == a) | (np.isnan(e) & np.isnan(a))] = 0.0
    error[np.isnan(error)] = np.inf
    allowed = np.where(np.isfinite(e), tolerance.atol + tolerance.rtol * np.abs(e), 0.0)
    return _Judged(e, a, error, allowed, error > allowed)


def _judge_integers(expected: np.ndarray, actual: np.ndarray, tolerance: Tolerance) -> _Judged:
    wide = np.uint64 if expected.dtype == np.uint64 else np.int64
    e, a = expected.astype(wide), actual.astype(wide)
    # the difference of two int64 wraps, but as uint64 its bits are right: 2**60 and 2**60 + 1 must not look equal
    error = np.where(e > a, e - a, a - e).view(np.uint64)
    allowed = np.full(e.shape, float(tolerance.steps))
    bad = error > np.uint64(tolerance.steps)
    return _Judged(e.astype(np.float64), a.astype(np.float64), error.astype(np.float64), allowed, bad)


def _judge_booleans(expected: np.ndarray, actual: np.ndarray, _tolerance: Tolerance) -> _Judged:
    return _judge_integers(expected.astype(np.int64), actual.astype(np.int64), Tolerance(0.0, 0.0))


def _judge_strings(expected: np.ndarray, actual: np.ndarray, _tolerance: Tolerance) -> _Judged:
    bad = np.asarray(expected != actual, dtype=bool)
    ones = np.ones(bad.shape)
    return _Judged(ones, ones, bad.astype(np.float64), np.zeros(bad.shape), bad)


_JUDGES: dict[str, Callable[[np.ndarray, np.ndarray, Tolerance], _Judged]] = {
    "float": _judge_numbers,
    "complex": _judge_numbers,
    "integer": _judge_integers,
    "bool": _judge_booleans,
    "string": _judge_strings,
}


@dataclass
class _Totals:
    """What has been seen so far."""

    size: int = 0
    mismatched: int = 0
    measured: int = 0
    finite: int = 0
    max_abs: float = 0.0
    max_rel: float = 0.0
    sum_abs: float = 0.0
    sum_squares: float = 0.0
    products: np.ndarray = field(default_factory=lambda: np.zeros(3))
    worst: tuple[float, float, int] = (0.0, 0.0, 0)
    nans: np.ndarray = field(default_factory=lambda: np.zeros(2, np.int64))
    infs: np.ndarray = field(default_factory=lambda: np.zeros(2, np.int64))
    histogram: np.ndarray = field(default_factory=lambda: np.zeros(len(HISTOGRAM_EDGES) + 2, np.int64))

    def add(self, piece: _Judged) -> None:
        self._add_errors(piece.error, np.abs(piece.expected))
        self._add_excess(piece.error, np.where(piece.error == 0, 0.0, piece.error / piece.allowed))
        self._add_values(piece.expected, piece.actual)
        self.mismatched += int(np.count_nonzero(piece.bad))
        self.size += piece.error.size

    def _add_errors(self, error: np.ndarray, magnitude: np.ndarray) -> None:
        finite = error[np.isfinite(error)]
        self.measured += finite.size
        self.sum_abs += float(finite.sum())
        self.sum_squares += float(np.square(finite).sum())
        self.max_abs = max(self.max_abs, float(error.max()))
        comparable = np.isfinite(magnitude) & (magnitude > 0)
        relative = error[comparable] / magnitude[comparable]
        self.max_rel = max(self.max_rel, float(relative.max(initial=0.0)))

    def _add_excess(self, error: np.ndarray, ratio: np.ndarray) -> None:
        # among elements of equal excess (infinite, when nothing is allowed) the largest error is the worst
        at = int(np.where(ratio == ratio.max(), error, -1.0).argmax())
        found = (float(ratio[at]), float(error[at]), self.size + at)
        if found[:2] > self.worst[:2]:
            self.worst = found
        bins = np.where(error == 0, 0, 1 + np.searchsorted(HISTOGRAM_EDGES, ratio))
        self.histogram += np.bincount(bins, minlength=self.histogram.size)

    def _add_values(self, expected: np.ndarray, actual: np.ndarray) -> None:
        self.nans += [np.count_nonzero(np.isnan(values)) for values in (expected, actual)]
        self.infs += [np.count_nonzero(np.isinf(values)) for values in (expected, actual)]
        both = np.isfinite(expected) & np.isfinite(actual)
        self.finite += int(np.count_nonzero(both))
        e, a = expected[both], actual[both]
        self.products += [np.vdot(e, e).real, np.vdot(a, a).real, np.vdot(e, a).real]

    def finish(self, expected: np.ndarray, actual: np.ndarray) -> Metrics:
        count = self.measured or 1
        return Metrics(
            size=self.size,
            finite=self.finite,
            mismatched=self.mismatched,
            max_abs=self._told(self.max_abs),
            max_rel=self._told(self.max_rel),
            mean_abs=self._told(self.sum_abs / count),
            rms=self._told(math.sqrt(self.sum_squares / count)),
            cosine=math.nan if self._hollow else _cosine(*self.products.tolist()),
            excess=self._told(self.worst[0]),
            worst=self._worst(expected, actual) if self.size else None,
            nans=(int(self.nans[0]), int(self.nans[1])),
            infs=(int(self.infs[0]), int(self.infs[1])),
            histogram=tuple(self.histogram.tolist()),
        )

    @property
    def _hollow(self) -> bool:
        return self.size > 0 and self.finite == 0

    def _told(self, error: float) -> float:
        """An error of 0 among NaNs and infinities is an agreement in kind, not a measurement."""
        return math.nan if self._hollow and error == 0 else error

    def _worst(self, expected: np.ndarray, actual: np.ndarray) -> Worst:
        index = tuple(int(i) for i in np.unravel_index(self.worst[2], expected.shape))
        return Worst(index, _plain(expected[index]), _plain(actual[index]))


def _cosine(expected: float, actual: float, product: float) -> float:
    if expected == 0 or actual == 0:
        return 1.0 if expected == actual else 0.0
    return product / math.sqrt(expected) / math.sqrt(actual)


def _plain(element: Any) -> Any:
    return element.item() if isinstance(element, np.generic) else element
