"""One provider that runs a model case by case."""

from __future__ import annotations

import functools
import time
from typing import Any

import numpy as np

from entrepot.ir.errors import (
    ConversionError,
    EntrepotError,
    InputError,
    MissingDependencyError,
    UnsupportedOpError,
)
from entrepot.ir.model import Model
from entrepot.ir.pointwise import has_gates
from entrepot.parity.compare import Comparison, compare
from entrepot.parity.judge import Judge
from entrepot.parity.leaves import with_columns
from entrepot.parity.plan import Case
from entrepot.parity.report.report import Run, Verdict
from entrepot.parity.sigmoids import WHY, sigmoids, without_sigmoids
from entrepot.parity.sources import Outputs
from entrepot.parity.untouched import Untouched, opened
from entrepot.runtime.session import Session


class Runner:
    """One provider, opened once; an error it raises is the result of a run, not the end of the verification."""

    def __init__(self, model: Model, provider: str, judge: Judge, *, unasked: bool) -> None:
        self._provider = provider
        self._unasked = unasked and provider != "cpu"
        self._judge = judge
        self._gates = has_gates(model.ir)
        self._excused = False
        """Whether the last difference was that of Sigmoid."""
        self._model = model
        self._sigmoids = sigmoids(model.ir) if self._unasked else frozenset()
        self._opened = self._open(model)

    def _open(self, model: Model) -> Session | Untouched | EntrepotError:
        try:
            return opened(model, self._provider)
        except (InputError, MissingDependencyError):
            raise  # says something about the call, nothing about the model
        except EntrepotError as error:
            return error

    @property
    def declines(self) -> str:
        """Which operators it lacks, or cannot read; empty when there are none."""
        return str(self._opened) if isinstance(self._opened, UnsupportedOpError | ConversionError) else ""

    def _judged(self, case: Case, expected: Outputs, actual: Outputs) -> tuple[Comparison, Verdict, str]:
        """What is found, the verdict, and why it is only noted; what excused a case before is tried first."""
        if self._excused and self._is_excused(case, expected, actual):
            found = compare(expected, actual)
            return (found, "agrees", "") if found.ok else (found, "noted", WHY)
        found = self._judge.compare(case, expected, actual, self._provider)
        return (found, "agrees", "") if found.ok else (found, *self._difference(case, expected, actual))

    def _difference(self, case: Case, expected: Outputs, actual: Outputs) -> tuple[Verdict, str]:
        """Whether a difference is a failure, or known of kernels and so only noted.

        They disagree about NaN among many elements (their maximum, their order), but not about single ones. Some of
        onnxruntime's (1.31) compute on doubles with factors in single precision: Gelu, and scaled products once fused.
        Its Sigmoid is as exact as results of 1 are, and so are its gates of recurrent layers, which leave some of a
        state of ten thousand.
        """
        certain = self._provider == "cpu" and self._judge.strict
        if (case.edge == "special" and not certain) or (case.edge and self._gates and self._unasked):
            return "noted", ""
        if not self._unasked:
            return "differs", ""
        if self._judge.compare(case, _single(expected), _single(actual), self._provider):
            return "noted", ""
        self._excused = self._is_excused(case, expected, actual)
        return ("noted", WHY) if self._excused else ("differs", "")

    def _is_excused(self, case: Case, expected: Outputs, actual: Outputs) -> bool:
        """Whether nothing differs but what Sigmoid makes of small results, or at edge values of any."""
        names = self._sigmoids
        if names and self._judge.but_for_sigmoids(case, expected, actual, self._provider, names):
            return True
        return bool(case.edge) and self._agrees_otherwise(case, expected)

    def _agrees_otherwise(self, case: Case, expected: Outputs) -> bool:
        """Whether the provider agrees where Sigmoid is written with what it computes to the last digit."""
        if self._otherwise is None:
            return False
        try:
            other = with_columns(self._otherwise.run(case.feeds))
        except EntrepotError:
            return False
        return self._judge.compare(case, expected, other, self._provider).ok

    @functools.cached_property
    def _otherwise(self) -> Session | Untouched | None:
        """The model without Sigmoid, if it has any, and nobody asked for this provider."""
        model = without_sigmoids(self._model) if self._unasked else None
        made = None if model is None else self._open(model)
        return None if isinstance(made, EntrepotError) else made

    def _error(self, case: Case, error: EntrepotError) -> Run:
        """An error is noted where a difference would be: what follows from NaN in another place may fail, too."""
        lacking = self._unasked and isinstance(error, UnsupportedOpError)
        follows = self._unasked and case.edge == "special"
        verdict: Verdict = "refused" if case.own else "declined" if lacking else "noted" if follows else "error"
        return Run(case.label, self._provider, verdict, str(error), symbol=case.symbol)

    def run(self, case: Case, expected: Outputs) -> Run:
        """The model on one case, and the verdict."""
        if isinstance(self._opened, EntrepotError):
            return self._error(case, self._opened)
        start = time.perf_counter()
        try:
            actual = with_columns(self._opened.run(case.feeds))
        except EntrepotError as error:
            return self._error(case, error)
        seconds = time.perf_counter() - start
        comparison, verdict, excuse = self._judged(case, expected, actual)
        return Run(
            label=case.label,
            provider=self._provider,
            verdict=verdict,
            message="; ".join(comparison.problems) + _operands(case, comparison),
            symbol=case.symbol,
            edge=case.edge,
            seconds=seconds,
            comparison=comparison,
            excuse=excuse,
        )


def _single(outputs: Outputs) -> dict[str, Any]:
    """Doubles rounded to single precision, and everything else as it is."""
    return {
        name: value.astype(_NARROW.get(value.dtype.char, value.dtype)) if isinstance(value, np.ndarray) else value
        for name, value in outputs.items()
    }


_NARROW = {"d": np.float32, "D": np.complex64}


def _operands(case: Case, comparison: Comparison) -> str:
    """What the worst element was computed from, where inputs have its shape."""
    worst = comparison.worst
    if not case.edge or comparison.ok or worst is None or worst.metrics is None or worst.metrics.worst is None:
        return ""
    index = worst.metrics.worst.index
    values = {name: np.asarray(value) for name, value in case.feeds.items() if not isinstance(value, list)}
    shown = [f"{name} = {value[index]}" for name, value in values.items() if value.shape == worst.shape]
    return f", where {' and '.join(shown)}" if shown else ""
