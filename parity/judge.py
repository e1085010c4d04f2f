"""Where results differ, the source is asked how exact it can be."""

from __future__ import annotations

import contextlib
import functools
import itertools
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from entrepot.ir.errors import EntrepotError
from entrepot.ir.model import Model
from entrepot.ir.pointwise import chooses, is_pointwise
from entrepot.parity.choices import Choices
from entrepot.parity.compare import NOISE, Comparison, Tolerance, agree, compare, scales_of
from entrepot.parity.doubled import Doubled, allows_anything, most_moved, mostly_excused, typed_alike
from entrepot.parity.edges import MORE_DRAWS, beside, moved, without_doubt
from entrepot.parity.plan import Case
from entrepot.parity.sensitivity import coarseness, own_error, sensitivities
from entrepot.parity.sigmoids import without_what_is_off
from entrepot.parity.sources import (
    ChoosingSource,
    CoarseSource,
    ExactSource,
    FollowingSource,
    Outputs,
    Source,
    SourceRefusal,
    SteppedSource,
)
from entrepot.parity.steps import Steps
from entrepot.parity.ties import Ties, with_equal_choices
from entrepot.parity.tolerance import default_tolerance

_Answer = TypeVar("_Answer")

_CHOICE = (
    "; all that differs is which of equal elements comes first: ONNX takes the first of them, as a stable sort does, "
    "and the source another"
)
_NO_SCALE = 1e-30
"""The scale of a tensor whose elements are each judged by their own size alone."""


class Judge:
    """Compares, and where results differ asks the source how exact it can be."""

    def __init__(self, source: Source, model: Model, tolerance: Tolerance | None, scales: Mapping[str, float]) -> None:
        self._source = source
        self._tolerance = tolerance
        self._scales = scales
        self._noise: dict[int, tuple[list[Mapping[str, float]], Iterator[Mapping[str, float]]]] = {}
        self._model = model
        self._doubts: dict[tuple[int, bool], list[Outputs]] = {}
        self._ties: dict[int, frozenset[str]] = {}
        self._asked: dict[tuple[Hashable, int], tuple[Case, Any]] = {}
        self._choices: dict[str, Choices | None] = {}
        self._decided_in_double = False
        """Whether nothing else told of a case before: then it is asked first, which takes two runs instead of seven."""
        self._only_rounded = False
        """The same of what nodes round, one by one."""

    def compare(self, case: Case, expected: Outputs, actual: Outputs, provider: str) -> Comparison:
        """What the source and a provider computed; where they differ by as much as the source is unsure, they agree."""
        if case.edge:
            return self._compare_at_edges(case, expected, actual, strict=provider == "cpu" and self.strict)
        if provider == "cpu" and self._only_rounded:
            first = compare(expected, actual, self._tolerance, scales=self._scales)
            if (found := self._but_for_rounding(case, first, actual)).ok:
                return found
        found = self._compare(case, expected, actual, provider)
        if provider == "cpu" and not found.ok and not self._only_rounded:
            found = self._but_for_rounding(case, found, actual)
            self._only_rounded = found.ok
        return found if found.ok or not self._agree_on_first(case, actual) else _explained(found)

    def but_for_sigmoids(
        self, case: Case, expected: Outputs, actual: Outputs, provider: str, names: Collection[str]
    ) -> bool:
        """Whether they agree where elements of some outputs may be off by as much as onnxruntime's Sigmoid is."""
        told = None if self._agree_on_first(case, actual) else self._told_by(case, provider)
        return any(
            self.compare(case, each, without_what_is_off(names, each, actual), provider).ok
            for each in (told, expected)
            if each is not None
        )

    def _compare(self, case: Case, expected: Outputs, actual: Outputs, provider: str) -> Comparison:
        if self._chooses and not self._agree(expected, actual):  # how far off they are is asked last: it takes longer
            actual = with_equal_choices(self._model, case.feeds, expected, actual)
            if self._tolerance is None and not self._agree(expected, actual):
                following = self._following(case, actual, provider)
                if following is not None and following.ok:
                    return following
        first = compare(expected, actual, self._tolerance, scales=self._scales)
        if first.ok or self._tolerance is not None:
            return first
        return self._but_for_what_is_unsure(case, expected, actual, first)

    def _agree(self, expected: Outputs, actual: Outputs) -> bool:
        return agree(expected, actual, self._tolerance, scales=self._scales)

    def _but_for_what_is_unsure(self, case: Case, expected: Outputs, actual: Outputs, first: Comparison) -> Comparison:
        """What is found where the source is only as exact as it shows to be."""
        if self._decided_in_double and (decided := self._decided(case, expected, actual, first)) and decided.ok:
            return decided
        noise: Mapping[str, float] = {}
        second, settled = first, actual
        for noise in self._noises_of(case, expected):
            second = compare(expected, actual, scales=self._scales, noise=noise)
            if second.ok:
                break
        if not noise:
            return first
        if not second.ok:  # among few elements, one may be far more sensitive than most
            settled = without_doubt(expected, actual, self._other_answers(case, strict=False))
            second = compare(expected, settled, scales=self._scales, noise=noise)
        if second.ok and not (allows_anything(second, expected) or mostly_excused(actual, settled)):
            return second
        decided = self._decided(case, expected, actual, first)
        if decided is None:  # nothing more can be asked
            return second
        self._decided_in_double |= decided.ok
        return decided

    def _following(self, case: Case, actual: Outputs, provider: str) -> Comparison | None:
        """What is found beside the source where it chooses as the provider did; ``None`` if it cannot be told.

        Nor is it where nothing differs but which of equal elements comes first.
        """
        told = self._told_by(case, provider)
        if told is None or self._agree_on_first(case, actual):  # of equal elements, ONNX takes the first
            return None
        return compare(told, actual, scales=self._scales)

    def _told_by(self, case: Case, provider: str) -> Outputs | None:
        return self._once(f"chosen by {provider}", case, lambda: self._told(case, provider))

    def _told(self, case: Case, provider: str) -> Outputs | None:
        """What the source computes where it chooses among equally good elements as a provider does."""
        source = self._source
        if not isinstance(source, FollowingSource):
            return None
        try:
            choices = self._choices_of(provider)
            chosen = [] if choices is None else choices.run(case.feeds)
        except EntrepotError:
            return None
        if not chosen:
            return None
        places = tuple(
            (each.shape, each.dtype.str, each.tobytes()) for each in chosen
        )  # most providers choose the same
        return self._once(places, case, lambda: source.choosing(dict(case.feeds), chosen))

    def _choices_of(self, provider: str) -> Choices | None:
        """A provider that tells what it chooses."""
        if provider not in self._choices:
            try:
                self._choices[provider] = Choices(self._model, provider)
            except EntrepotError:
                self._choices[provider] = None
        return self._choices[provider]

    def _decided(self, case: Case, expected: Outputs, actual: Outputs, found: Comparison) -> Comparison | None:
        """What double precision says of a difference; ``None`` if nothing."""
        moved = self._moved_by_precision(case, expected, actual, found)
        if moved is None:
            return None
        settled = {name: expected[name] if name in moved else value for name, value in actual.items()}
        return compare(expected, settled, scales=self._scales, noise=moved)

    def _agree_on_first(self, case: Case, actual: Outputs) -> bool:
        """Whether results would not differ if the source chose among equal elements as ONNX does."""
        source = self._source
        if not (self._chooses and isinstance(source, ChoosingSource)):
            return False
        told = self._once("first of equal", case, lambda: source.first_of_equal(dict(case.feeds)))
        return told is not None and self._agree(told, actual)

    def _moved_by_precision(
        self, case: Case, expected: Outputs, actual: Outputs, found: Comparison
    ) -> Mapping[str, float] | None:
        """By how much outputs move from one precision to the other, where that is why they differ; empty if it is not.

        In double precision, in which nothing is decided by the last digit of single precision, all outputs agree.
        None if the source or the model cannot be run so.
        """
        exact = self._exact(case)
        twin = None if exact is None else self._twin(case)
        if exact is None or twin is None:
            return None
        moved = {output.name: most_moved(expected, exact, actual, output) for output in found.outputs if not output.ok}
        return moved if all(moved.values()) and self._agree_in_double(case, exact, twin) else {}

    def _agree_in_double(self, case: Case, exact: Outputs, twin: Outputs) -> bool:
        """Whether the source and the model compute the same in double precision, choosing alike if need be."""
        alike = functools.partial(self._once, "choosing alike", case, lambda: self._choosing_alike(case))
        return self._same(exact, twin) or self._same(alike(), twin)

    def _but_for_rounding(self, case: Case, found: Comparison, actual: Outputs) -> Comparison:
        """What was found, without problems that come of what nodes of our own runtime round."""
        if found.ok or not self._rounds_only(case, found, actual):
            return found
        return replace(found, outputs=tuple(replace(each, problem="") for each in found.outputs))

    def _rounds_only(self, case: Case, found: Comparison, actual: Outputs) -> bool:
        """Whether our own runtime is off by nothing but what its nodes round, however much the model makes of that."""
        measured = all(output.ok or output.metrics is not None for output in found.outputs)
        if self._tolerance is not None or not measured:
            return False
        exact = self._exact(case)
        twin = None if exact is None else self._twin(case)
        if exact is None or twin is None or not self._agree_in_double(case, exact, twin):
            return False
        return self._steps is not None and self._steps.hold(case.feeds, actual)

    def _same(self, exact: Outputs | None, twin: Outputs) -> bool:
        """Whether both compute the same in double precision."""
        rule = default_tolerance(np.dtype(np.float32))
        return exact is not None and agree(exact, typed_alike(twin, exact), rule, scales=self._scales)

    def _twin(self, case: Case) -> Outputs | None:
        """The model in double precision."""
        doubled = self._doubled
        return None if doubled is None else self._once("twin", case, lambda: doubled.run(case.feeds))

    def _choosing_alike(self, case: Case) -> Outputs | None:
        """The source in double precision, choosing as the model does among what is as good.

        Numbers that a graph holds in single precision move its scores a little in double precision, too.
        """
        source = self._source
        choices = [] if self._doubled is None else self._doubled.choices(case.feeds)
        if not (choices and isinstance(source, FollowingSource)):
            return None
        return source.exact_choosing(dict(case.feeds), choices)

    @functools.cached_property
    def _chooses(self) -> bool:
        """Whether a result may depend on which of two equal elements comes first."""
        return chooses(self._model.ir)

    @functools.cached_property
    def _steps(self) -> Steps | None:
        try:
            return Steps(self._model)
        except EntrepotError:
            return None

    @functools.cached_property
    def _doubled(self) -> Doubled | None:
        try:
            return Doubled(self._model)
        except EntrepotError:
            return None

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
        if self._chooses:  # one run of our own says so, where a source that is unsure says it in twenty
            tied = self._tied(case)
            actual = {name: expected.get(name) if name in tied else value for name, value in actual.items()}
            if (but_for_ties := compare(expected, actual, self._tolerance, scales=scales)).ok:
                return but_for_ties
        others = self._other_answers(case, strict=strict)
        settled = without_doubt(expected, actual, others, overflows=not strict)
        second = compare(expected, settled, self._tolerance, scales=scales)
        if not second.ok and not strict:  # where one number outweighs all others, moved ones are rounded as it is
            settled = without_doubt(expected, actual, [*others, *self._more_answers(case)], overflows=True)
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
            others += self._beside(case) if strict else []
            if exact is None or not strict:
                with contextlib.suppress(SourceRefusal):
                    others += moved(self._source.run, case.feeds, ties=self._chooses)
            self._doubts[key] = others
        return self._doubts[key]

    def _more_answers(self, case: Case) -> list[Outputs]:
        """What the source computes near by; of one too large for double precision, from more inputs moved."""
        if self._exact(case) is not None:
            return self._beside(case)
        with contextlib.suppress(SourceRefusal):
            return self._once(
                "moved", case, lambda: moved(self._source.run, case.feeds, ties=self._chooses, draws=MORE_DRAWS)
            )
        return []

    def _beside(self, case: Case) -> list[Outputs]:
        """How far off the source is at inputs near by, added to what it computes here."""
        source = self._source
        if isinstance(source, ExactSource):
            with contextlib.suppress(SourceRefusal):
                return self._once("beside", case, lambda: beside(source.run, source.exact, case.feeds))
        return []

    def _exact(self, case: Case) -> Outputs | None:
        """The source in double precision."""
        source = self._source
        if not isinstance(source, ExactSource):
            return None
        return self._once("exact", case, lambda: source.exact(dict(case.feeds)))

    def _once(self, what: Hashable, case: Case, ask: Callable[[], _Answer]) -> _Answer:
        """What is asked of a case once, for all providers and however often they differ."""
        key = what, id(case)
        if key not in self._asked:
            self._asked[key] = case, ask()  # with the case, or another might get its id
        found: _Answer = self._asked[key][1]
        return found

    def _tied(self, case: Case) -> frozenset[str]:
        """Outputs that depend on a choice between equal elements."""
        if id(case) not in self._ties:
            self._ties[id(case)] = self._choices_between_equals.undecided(case.feeds)
        return self._ties[id(case)]

    @functools.cached_property
    def _choices_between_equals(self) -> Ties:
        return Ties(self._model)

    def _noises_of(self, case: Case, expected: Outputs) -> Iterator[Mapping[str, float]]:
        """How unsure the source is, more and more as it is run again, which is done when it is needed."""
        known, more = self._noise.setdefault(id(case), ([], self._measured(case, expected)))
        yield from known
        for noise in more:
            known.append(noise)
            yield noise

    def _measured(self, case: Case, expected: Outputs) -> Iterator[Mapping[str, float]]:
        exact = self._exact(case)
        own = {} if exact is None else own_error(expected, exact)
        coarse = coarseness(expected, self._scales, self._precision)
        known = _largest(own, self._steps_of(case), {name: each / NOISE for name, each in coarse.items()})
        moved = False
        with contextlib.suppress(SourceRefusal):
            for noise in sensitivities(self._source.run, case.feeds, expected, self._precision):
                moved = True
                yield _largest(noise, known)
        if known and not moved:
            yield known

    @functools.cached_property
    def _precision(self) -> np.dtype | None:
        return self._source.precision if isinstance(self._source, CoarseSource) else None

    def _steps_of(self, case: Case) -> dict[str, float]:
        """What rounding to the other of two steps may change; as noise, of which a multiple is allowed."""
        found = self._source.steps(dict(case.feeds)) if isinstance(self._source, SteppedSource) else {}
        return {name: most / NOISE for name, most in found.items()}


def _explained(found: Comparison) -> Comparison:
    outputs = (each if each.ok else replace(each, problem=each.problem + _CHOICE) for each in found.outputs)
    return replace(found, outputs=tuple(outputs))


def _largest(*found: Mapping[str, float]) -> dict[str, float]:
    return {name: max(each.get(name, 0.0) for each in found) for name in dict.fromkeys(itertools.chain(*found))}
