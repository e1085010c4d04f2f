"""Run a model beside the source it came from, and report where they agree."""

from __future__ import annotations

import contextlib
import copy
import functools
import importlib.util
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np

from entrepot.ir.errors import (
    ConversionError,
    EntrepotError,
    InputError,
    MissingDependencyError,
    UnsupportedOpError,
)
from entrepot.ir.model import Model
from entrepot.ir.pointwise import chooses, is_pointwise
from entrepot.ir.progress import Progress, reporter
from entrepot.parity.compare import NOISE, Comparison, Tolerance, compare, scales_of
from entrepot.parity.edges import beside, moved, without_doubt
from entrepot.parity.feeds import Feeds
from entrepot.parity.plan import Case
from entrepot.parity.report.facts import ModelFacts
from entrepot.parity.report.report import Report, Run, Verdict
from entrepot.parity.sensitivity import own_error, sensitivity
from entrepot.parity.ties import undecided, with_equal_choices
from entrepot.parity.tolerance import ToleranceLike
from entrepot.parity.untouched import Untouched, is_loadable
from entrepot.runtime.providers import Providers, as_providers
from entrepot.runtime.session import Session

_NO_SCALE = 1e-30
"""The scale of a tensor whose elements are each judged by their own size alone."""

Outputs: TypeAlias = Mapping[str, Any]
"""Output name to array (a list for a sequence, ``None`` for an empty optional)."""


class SourceRefusal(EntrepotError):  # noqa: N818 - it is an answer, not a fault
    """The source itself cannot take these inputs, so the model need not either."""


class Source(Protocol):
    """What a model is compared with: the framework it came from, or another model."""

    @property
    def name(self) -> str:
        """What a report calls it."""

    def run(self, feeds: dict[str, np.ndarray], /) -> Outputs:
        """Outputs by the model's output names.

        Raises:
            SourceRefusal: The source cannot take inputs of these sizes or values.
        """


@runtime_checkable
class ExactSource(Source, Protocol):
    """A source that can also compute in float64."""

    def exact(self, feeds: dict[str, np.ndarray], /) -> Outputs | None:
        """What the source computes in float64 from the same inputs; ``None`` if it cannot be run that way."""


@runtime_checkable
class SteppedSource(Source, Protocol):
    """A source that may round to steps inside, as quantised networks do."""

    def steps(self, feeds: dict[str, np.ndarray], /) -> Mapping[str, float]:
        """How far each output may move because a number between two steps is rounded to the other; empty if none is."""


class ModelSource:
    """Another model as the source: for comparing two models, two opsets or two providers.

    Args:
        model: The model to trust.
        provider: Who runs it.
    """

    def __init__(self, model: Model, provider: str = "cpu") -> None:
        self.name = f"{model_name(model)} on {provider}"
        self._runner = _opened(model, provider)

    def run(self, feeds: dict[str, np.ndarray]) -> Outputs:
        """Outputs by name.

        Raises:
            SourceRefusal: The model cannot be run on these feeds.
        """
        try:
            return self._runner.run(feeds)
        except EntrepotError as error:
            raise SourceRefusal(str(error)) from error


def verify(
    source: Source,
    model: Model,
    feeds: Sequence[Feeds | Case],
    *,
    providers: Providers | None = None,
    tolerance: ToleranceLike | None = None,
    progress: Progress = None,
) -> Report:
    """Run the source and the model on every feed and compare all outputs.

    Args:
        source: What to trust. It is given copies, so it may write into its inputs.
        model: What to judge.
        feeds: The sample first (which the source must take), then others; ``plan_cases`` makes a good list.
        providers: Who runs the model; by default ``cpu``, and as a second opinion ``onnxruntime`` where it is
            installed, on the file as it is. An operator that one of them lacks, or that the second opinion runs on
            doubles in single precision, is recorded but not a failure, unless the provider is asked for by name.
        tolerance: See ``compare``.
        progress: See ``entrepot.ir.progress``.

    Returns:
        The report; ``.ok`` is the verdict. What the source refuses is recorded as refused (for the sample: as a
        failure), and an error that a provider raises about the model is a failure with its message.

    Raises:
        InputError: There is no such provider.
        MissingDependencyError: A provider asked for by name is not installed.
    """
    tell, tolerance = reporter(progress), Tolerance.of(tolerance)
    cases = [feed if isinstance(feed, Case) else Case(f"feeds {at}", feed) for at, feed in enumerate(feeds)]
    names = default_providers(model) if providers is None else as_providers(providers)
    answers = [_ask(source, case, tell) for case in cases]
    # a small result near zero says little about its own scale: all runs of the source together say more
    tame = (answer for case, answer in zip(cases, answers, strict=True) if not case.edge)
    scales = scales_of([answer for answer in tame if not isinstance(answer, SourceRefusal)])
    rows = [[_refused(case, answer, at)] for at, (case, answer) in enumerate(zip(cases, answers, strict=True))]
    judge = _Judge(source, model, tolerance, scales)
    for name in names:
        runner = _Runner(model, name, judge, unasked=providers is None)
        if providers is None and (reason := runner.declines):
            rows[0].append(Run("every input", name, "declined", reason))
            continue
        for row, case, answer in zip(rows, cases, answers, strict=True):
            if not isinstance(answer, SourceRefusal):
                tell(f"verifying on {name}: {case.label}")
                run = runner.run(case, answer)
                row.append(run)
                if run.verdict == "declined":
                    break
        del runner  # its weights, before the next has its own
    runs = tuple(each for row in rows for each in row if each is not None)
    return Report(source.name, model_name(model), names, runs, ModelFacts.of(model))


def _opened(model: Model, provider: str) -> Session | Untouched:
    if provider == "onnxruntime" and is_loadable(model):
        return Untouched(model)
    return Session(model, providers=(provider,))


def default_providers(model: Model | None = None) -> tuple[str, ...]:
    """Our own, and onnxruntime as an independent second opinion where it is installed.

    It alone runs a model of a gigabyte or more, if it takes it: it can leave the weights where they are.
    """
    if importlib.util.find_spec("onnxruntime") is None:
        return ("cpu",)
    return ("onnxruntime",) if model is not None and _runs_alone(model) else ("cpu", "onnxruntime")


def _runs_alone(model: Model) -> bool:
    from entrepot.runtime.providers.onnxruntime.engine import is_large

    if not is_large(model):
        return False
    try:
        Untouched(model)
    except EntrepotError:
        return False
    return True


def model_name(model: Model) -> str:
    """What a report calls a model: its file, or else its graph."""
    return str(model.path) if model.path is not None else model.ir.graph.name or "model"


def _ask(source: Source, case: Case, tell: Callable[[str], None]) -> Outputs | SourceRefusal:
    tell(f"running {source.name}: {case.label}")
    copies = {name: copy.deepcopy(value) for name, value in case.feeds.items()}
    try:
        return source.run(copies)
    except SourceRefusal as refusal:
        return refusal


def _refused(case: Case, answer: Outputs | SourceRefusal, at: int) -> Run | None:
    """The record of a refusal; the first feed is the sample, and a source that refuses it proves nothing."""
    if not isinstance(answer, SourceRefusal):
        return None
    return Run(case.label, "source", "error" if at == 0 else "refused", str(answer), symbol=case.symbol)


class _Judge:
    """Compares, and where results differ asks the source how exact it can be."""

    def __init__(self, source: Source, model: Model, tolerance: Tolerance | None, scales: Mapping[str, float]) -> None:
        self._source = source
        self._tolerance = tolerance
        self._scales = scales
        self._noise: dict[int, Mapping[str, float]] = {}
        self._model = model
        self._doubts: dict[tuple[int, bool], list[Outputs]] = {}
        self._ties: dict[int, frozenset[str]] = {}

    def compare(self, case: Case, expected: Outputs, actual: Outputs, provider: str) -> Comparison:
        if case.edge:
            return self._compare_at_edges(case, expected, actual, strict=provider == "cpu" and self.strict)
        first = compare(expected, actual, self._tolerance, scales=self._scales)
        if not first.ok and chooses(self._model.ir):
            actual = with_equal_choices(self._model, case.feeds, expected, actual)
            first = compare(expected, actual, self._tolerance, scales=self._scales)
        if first.ok or self._tolerance is not None:
            return first
        noise = self._noise_of(case, expected)
        second = compare(expected, actual, scales=self._scales, noise=noise) if noise else first
        if second.ok or not noise:
            return second
        # among few elements, one may be far more sensitive than most
        settled = without_doubt(expected, actual, self._other_answers(case, strict=False))
        return compare(expected, settled, scales=self._scales, noise=noise)

    @functools.cached_property
    def strict(self) -> bool:
        """Whether each element is judged by its own size: if nothing is summed up, and float64 shows what is right."""
        return isinstance(self._source, ExactSource) and is_pointwise(self._model.ir)

    def _compare_at_edges(self, case: Case, expected: Outputs, actual: Outputs, *, strict: bool) -> Comparison:
        scales = dict.fromkeys(expected, _NO_SCALE) if strict else self._larger(scales_of([expected]))
        first = compare(expected, actual, self._tolerance, scales=scales)
        if first.ok:
            return first
        if strict and self._exact(case) is None:  # nothing shows how exact a single element can be
            return self._compare_at_edges(case, expected, actual, strict=False)
        settled = without_doubt(expected, actual, self._other_answers(case, strict=strict), overflows=not strict)
        second = compare(expected, settled, self._tolerance, scales=scales)
        if not second.ok and chooses(self._model.ir):
            tied = self._tied(case)
            settled = {name: expected.get(name) if name in tied else value for name, value in settled.items()}
            second = compare(expected, settled, self._tolerance, scales=scales)
        steps = {} if second.ok or self._tolerance is not None else self._steps_of(case)
        return compare(expected, settled, scales=scales, noise=steps) if steps else second

    def _larger(self, scales: Mapping[str, float]) -> dict[str, float]:
        return {name: max(scale, self._scales.get(name, 0.0)) for name, scale in scales.items()}

    def _other_answers(self, case: Case, *, strict: bool) -> list[Outputs]:
        """What the source computes in float64, and if elements depend on others, from inputs moved by one rounding.

        If they do not, how far off the source is beside its inputs: that it is exact at one number is luck.
        """
        key = id(case), strict
        if key not in self._doubts:
            exact = self._exact(case)
            others = [] if exact is None else [exact]
            if isinstance(self._source, ExactSource) and strict:
                with contextlib.suppress(SourceRefusal):
                    others += beside(self._source.run, self._source.exact, case.feeds)
            if exact is None or not strict:
                with contextlib.suppress(SourceRefusal):
                    others += moved(self._source.run, case.feeds, ties=chooses(self._model.ir))
            self._doubts[key] = others
        return self._doubts[key]

    def _exact(self, case: Case) -> Outputs | None:
        return self._source.exact(dict(case.feeds)) if isinstance(self._source, ExactSource) else None

    def _tied(self, case: Case) -> frozenset[str]:
        """Outputs that depend on a choice between equal elements."""
        if id(case) not in self._ties:
            self._ties[id(case)] = undecided(self._model, case.feeds)
        return self._ties[id(case)]

    def _noise_of(self, case: Case, expected: Outputs) -> Mapping[str, float]:
        if id(case) not in self._noise:
            try:
                noise = sensitivity(self._source.run, case.feeds, expected)
            except SourceRefusal:
                noise = {}
            exact = self._exact(case)
            own = {} if exact is None else own_error(expected, exact)
            steps = self._steps_of(case)
            names = {*noise, *own, *steps}
            self._noise[id(case)] = {name: max(each.get(name, 0.0) for each in (noise, own, steps)) for name in names}
        return self._noise[id(case)]

    def _steps_of(self, case: Case) -> dict[str, float]:
        """What rounding to the other of two steps may change; as noise, of which a multiple is allowed."""
        found = self._source.steps(dict(case.feeds)) if isinstance(self._source, SteppedSource) else {}
        return {name: most / NOISE for name, most in found.items()}


class _Runner:
    """One provider, opened once; an error it raises is the result of a run, not the end of the verification."""

    def __init__(self, model: Model, provider: str, judge: _Judge, *, unasked: bool) -> None:
        self._provider = provider
        self._unasked = unasked and provider != "cpu"
        self._judge = judge
        self._opened = self._open(model)

    def _open(self, model: Model) -> Session | Untouched | EntrepotError:
        try:
            return _opened(model, self._provider)
        except (InputError, MissingDependencyError):
            raise  # says something about the call, nothing about the model
        except EntrepotError as error:
            return error

    @property
    def declines(self) -> str:
        """Which operators it lacks, or cannot read; empty when there are none."""
        return str(self._opened) if isinstance(self._opened, UnsupportedOpError | ConversionError) else ""

    def _difference(self, case: Case, expected: Outputs, actual: Outputs) -> Verdict:
        """Whether a difference is a failure, or known of kernels and so only noted.

        They disagree about NaN among many elements (their maximum, their order), but not about single ones. Some of
        onnxruntime's (1.31) compute on doubles with factors in single precision: Gelu, and scaled products once fused.
        """
        certain = self._provider == "cpu" and self._judge.strict
        if case.edge == "special" and not certain:
            return "noted"
        coarse = self._unasked and self._judge.compare(case, _single(expected), _single(actual), self._provider)
        return "noted" if coarse else "differs"

    def _error(self, case: Case, error: EntrepotError) -> Run:
        lacking = self._unasked and isinstance(error, UnsupportedOpError)
        return Run(case.label, self._provider, "declined" if lacking else "error", str(error), symbol=case.symbol)

    def run(self, case: Case, expected: Outputs) -> Run:
        if isinstance(self._opened, EntrepotError):
            return self._error(case, self._opened)
        start = time.perf_counter()
        try:
            actual = self._opened.run(case.feeds)
        except EntrepotError as error:
            return self._error(case, error)
        seconds = time.perf_counter() - start
        comparison = self._judge.compare(case, expected, actual, self._provider)
        return Run(
            label=case.label,
            provider=self._provider,
            verdict="agrees" if comparison.ok else self._difference(case, expected, actual),
            message="; ".join(comparison.problems) + _operands(case, comparison),
            symbol=case.symbol,
            edge=case.edge,
            seconds=seconds,
            comparison=comparison,
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
