"""Several ways to capture a model: each result is proved, and the one in which most axes vary is taken.

A way is tried when those before it failed, or left axes fixed that the model allows to vary.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from entrepot.exporters.axes.groups import Axis, Group
from entrepot.exporters.exporter import BeginsLateError, PostponedError, Refusal, Source
from entrepot.ir.errors import ConversionError, EntrepotError, UnsupportedOpError, VerificationError
from entrepot.ir.model import Model
from entrepot.parity.report.report import Report

if TYPE_CHECKING:
    from entrepot.exporters.axes.probe import Prober

FAILURES = (ConversionError, UnsupportedOpError, VerificationError)
"""What one way may raise and another may get around."""

_MANY_STEPS = 500
"""In Python; a capture takes about ten milliseconds for each."""


def unrolled(source: Source, prober: Prober, groups: Sequence[Group]) -> str:
    """Why a capture that follows each step would be long, and its axis fixed; nothing if it would not.

    Args:
        source: What is captured.
        prober: Has its sample.
        groups: The axes that vary; for an axis that is looped over, there is a step or more for each element.
    """
    if not source.looping or (steps := source.steps(prober.base)) < _MANY_STEPS:
        return ""
    if any(_has_steps_of(group, source, prober, steps) for group in groups if group.formula is None):
        return f"it takes {steps} steps of Python for the sample"
    return ""


def _has_steps_of(group: Group, source: Source, prober: Prober, steps: int) -> bool:
    """Whether the steps become more, or fewer, by as many as the elements, at each size that was tried."""
    for size in group.sizes[1:]:
        try:
            more = source.steps(prober.resized(dict.fromkeys(group.axes, size))) - steps
        except Refusal:  # it is accepted with other numbers only
            return False
        if abs(more) < abs(size - group.sizes[0]):
            return False
    return len(group.sizes) > 1


@dataclass
class Attempt:
    """What came of one way.

    Attributes:
        way: Its name.
        model: The proved model, or ``None``.
        varying: The axes that vary in it.
        limited: Those of them that do not take the smallest sizes which the source takes.
        tied: Those that vary only together with another axis of their tensor, as the source does not ask for.
        error: Why there is none.
        whatever: Whether the others are fixed whatever sizes it is captured at.
        ends: From which sizes on the source takes another path, of axes that are fixed because of it.
    """

    way: str
    model: Model | None = None
    varying: frozenset[Axis] = frozenset()
    limited: frozenset[Axis] = frozenset()
    tied: frozenset[Axis] = frozenset()
    error: EntrepotError | None = None
    whatever: bool = False
    ends: Mapping[Axis, int] = field(default_factory=dict)

    def describe(self, wanted: Collection[Axis], name: Callable[[Axis], str]) -> str:
        """Its outcome in a few words."""
        if self.error is not None:
            return f"{self.way}: {self.error.message}"
        lost, limited, tied = sorted(set(wanted) - self.varying), sorted(self.limited), sorted(self.tied)
        said = [f"fixes {', '.join(map(name, lost))}"] if lost else []
        said += [f"does not take size 1 of {', '.join(map(name, limited))}"] if limited else []
        said += [f"ties {', '.join(map(name, tied))} together"] if tied else []
        return f"{self.way}: {' and '.join(said) or 'every axis varies'}"

    @property
    def bounded(self) -> frozenset[Axis]:
        """The axes that vary, but not as the source lets them."""
        return self.limited | self.tied


def let_go(error: BaseException) -> None:
    """Let an error that is kept hold nothing of what was made before it, a copy of all weights perhaps."""
    seen: list[BaseException] = []
    chain: BaseException | None = error
    while chain is not None and not any(chain is each for each in seen):  # errors may be reasons for each other
        seen.append(chain)
        traceback.clear_frames(chain.__traceback__)
        chain = chain.__cause__ or chain.__context__


@dataclass
class Attempts:
    """All that was tried.

    Attributes:
        wanted: The axes that are to vary.
        spared: Those of them that are not worth another way, once there is a result.
        made: In the order in which they were tried.
        postponed: Why the first way of the source was not tried first.
    """

    wanted: frozenset[Axis] = frozenset()
    spared: frozenset[Axis] = frozenset()
    made: list[Attempt] = field(default_factory=list)
    postponed: str = ""

    @property
    def best(self) -> Attempt | None:
        """The first of those in which most axes vary, as far as possible from size 1 on and each by itself."""
        done = [each for each in self.made if each.model is not None]
        return max(done, key=lambda each: (len(each.varying), -len(each.bounded)), default=None)

    @property
    def put_off(self) -> PostponedError | None:
        """Why the first way was put off, if it was, and nothing has been tried in its place yet."""
        error = self.made[0].error if len(self.made) == 1 else None
        return error if isinstance(error, PostponedError) else None

    @property
    def late(self) -> bool:
        """Whether a graph was right, but for sizes that the caller needs."""
        return any(isinstance(each.error, BeginsLateError) for each in self.made)

    @property
    def followed(self) -> bool:
        """Whether the graph of the first way was right, but for edge values: the model decides nothing by values."""
        error = self.made[0].error if self.made else None
        report = error.report if isinstance(error, VerificationError) else None
        return isinstance(report, Report) and bool(report.failures) and all(run.edge for run in report.failures)

    @property
    def lost(self) -> frozenset[Axis]:
        """The axes that vary in no result so far, or not from size 1 on, or not by themselves."""
        return self.wanted - (frozenset() if self.best is None else self.best.varying - self.best.bounded)

    @property
    def enough(self) -> bool:
        """Whether nothing is left to be gained."""
        return self.best is not None and self.lost <= self.spared

    def notes(self, way: str, name: Callable[[Axis], str]) -> Sequence[str]:
        """What a user should know of a result: that it was captured in another way than the first, and why."""
        reasons = [each.describe(self.wanted, name) for each in self.made] or [self.postponed]
        return [f"captured {way}, since " + "; ".join(reasons)] if any(reasons) else []

    def later(self, name: Callable[[Axis], str]) -> str:
        """What came of the ways that were tried after the one whose result is taken."""
        rest = [each for at, each in enumerate(self.made) if at > self.made.index(self.best)] if self.best else []
        tried = "; ".join(each.describe(self.wanted, name) for each in rest)
        return f"tried as well, to no avail: {tried}" if tried else ""

    def failure(self) -> EntrepotError:
        """The error to raise where no way worked: that of the first, which is the user's own code."""
        first, *others = self.made
        assert first.error is not None
        for each in others:
            first.error.add_note(each.describe(self.wanted, str))
        return first.error
