"""The one pipeline: probe axes, capture, clean up, name, bring to the opset, prove; with fewer axes again if need be.

Sources bring what depends on their framework; see ``exporters/exporter.py``.
"""

from __future__ import annotations

import contextlib
import copy
import functools
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

import onnx_ir

from entrepot.exporters.axes.groups import AMPLE, Axis, Group, axes_of, axis_name, settled
from entrepot.exporters.axes.otherwise import without_refused
from entrepot.exporters.axes.probe import Prober
from entrepot.exporters.axes.together import bound_groups, tied_axes
from entrepot.exporters.cleanup.clean import tidy
from entrepot.exporters.cleanup.narrow import narrow_weights
from entrepot.exporters.cleanup.refine import forget_contradicted, refine_shapes
from entrepot.exporters.description import describe_model, describe_modes, modes_in, numbers_in
from entrepot.exporters.exporter import BeginsLateError, Captured, NoGainError, PostponedError, Refusal, Source
from entrepot.exporters.naming import graph_names, name_graph, rename_symbols
from entrepot.exporters.notes import (
    FAILED,
    UNCOMPUTED,
    UNFOLLOWED,
    Fixed,
    add_note,
    add_notes,
    constant_notes,
    end_notes,
    fixed_axes,
    limit_notes,
    naming_notes,
    require_all,
    weight_notes,
)
from entrepot.exporters.options import Judging, Options
from entrepot.exporters.proof.beginnings import (
    begin_apart,
    begin_at,
    begin_where_agreeing,
    computes_numbers,
)
from entrepot.exporters.proof.prove import BRANCH, agrees, unequal
from entrepot.exporters.proof.side_by_side import agrees_at, compare
from entrepot.exporters.size_checks import check_conditions, state_conditions
from entrepot.exporters.value_checks import require_values, required_in, state_required
from entrepot.exporters.ways import FAILURES, Attempt, Attempts, let_go, unrolled
from entrepot.ir.errors import ConversionError, InputError
from entrepot.ir.model import Model
from entrepot.ir.nesting import check_nesting
from entrepot.ir.opset import DEFAULT
from entrepot.ir.opset.convert import convert_opset
from entrepot.ir.passes.widen_bfloat16 import WidenBfloat16
from entrepot.parity.report.report import Report, Run

_FURTHEST = 1024
"""The largest size at which a model is captured for the sake of another path."""

_MORE_STEPS = 1.5
"""By how many times the steps of a source may grow where it is captured at larger sizes."""


def export(source: Source, options: Options) -> Model:
    """See ``entrepot.export``."""
    source.accept(options)
    with _guarded(source, options) as behind:
        return _Export(behind, options).run()


def verify(source: Source, model: Model, judging: Judging) -> Report:
    """See ``entrepot.verify``."""
    modes = replace(modes_in(model.metadata), weights=judging.weights)
    source.accept(modes)
    with _guarded(source, modes) as behind:
        behind.required = required_in(model.metadata)
        with contextlib.suppress(Refusal):  # the report will say so
            behind.numbers = numbers_in(model.metadata, behind(behind.call.tensors))
        return compare(behind, model, judging)


@contextlib.contextmanager
def _guarded(source: Source, options: Options) -> Iterator[Source]:
    """The source, ready to be called, or what is left of it behind text."""
    with source.guard():
        if options.strings == "refuse":
            yield source
            return
        options.tell("looking for operations on text that have no counterpart")
        behind = source.behind_text(options)
        with behind.guard():
            yield behind


class _Export:
    """One export; the steps in order, and what they share."""

    def __init__(self, source: Source, options: Options) -> None:
        self.source = source
        self.options = options
        options.tell(f"running the {source.noun} on the sample")
        result = source.settled()
        source.check(result)
        self.prober = Prober(source, source.call.tensors, result)
        self.fixed: dict[Axis, Fixed] = {}
        self.limited: dict[Axis, Fixed] = {}
        self._tied: set[Axis] = set()
        self.allowed: Collection[Axis] = ()
        self.attempts = Attempts()
        self._refuted: set[str] = set()
        self._first: Report | None = None
        self._where = self._long = ""

    def run(self) -> Model:
        """Probe, then capture in one way after the other until every axis varies; the best result is taken."""
        groups, self.allowed, known = self.source.groups(self.prober, self.options)
        self.attempts = Attempts(axes_of(groups), frozenset(self.source.spared))
        ways = self.source.ways if self.options.verify else self.source.ways[:1]
        if len(ways) > 1 and (reason := unrolled(self.source, self.prober, groups)):
            self.attempts.postponed = self._long = reason
            ways = [self.source.looping, *(way for way in ways if way != self.source.looping)]
        self._try(ways, groups, known)
        if self.source.looping in ways and not self.attempts.enough:
            self._try_whatever_values(groups, known)
        hopeless = {attempt.way for attempt in self.attempts.made if attempt.whatever}
        again = [way for way in self.source.sized if len(ways) > 1 and way in ways and way not in hopeless]
        if again and self.attempts.best is not None and not self.attempts.enough and (roomier := self._roomier(groups)):
            self._try(again, roomier, known, where=" at larger sizes")
        if len(ways) > 1 and self.attempts.best is not None and not (self.attempts.enough or self.options.dynamic_all):
            self._try_ending(groups, known)
        if self.attempts.best is None and self.source.stuck:
            self.source.yields = True
            self._try([self.source.looping], groups, known, where=" along fewer axes")
        if self.attempts.best is None and self.options.verify and not (self.attempts.late or self.attempts.followed):
            self._try(self.source.last, groups, known)
        best = self.attempts.best
        if best is None or best.model is None:
            raise self.attempts.failure()
        if later := self.attempts.later(lambda axis: axis_name(axis, self.source.call.names)):
            add_note(best.model, later)
        return best.model

    def _try(self, ways: Sequence[str], groups: list[Group], known: Mapping[Axis, Fixed], where: str = "") -> None:
        """One way after the other, until nothing is left to be gained."""
        for at, way in enumerate(ways):
            if self.attempts.enough:
                return
            self.source.postpones = not self.attempts.made and at + 1 < len(ways)
            postponed = self.attempts.put_off
            self._take(way, groups if postponed is None else self._beyond(groups, postponed), known, where)
            if postponed is not None:
                self._resume(postponed, groups, known)

    def _try_ending(self, groups: Sequence[Group], known: Mapping[Axis, Fixed]) -> None:
        """Let axes that vary in no result end where the source takes another path, well beyond the sample."""
        best = self.attempts.best
        lost = self.attempts.wanted - (frozenset() if best is None else best.varying)
        ending = [group for group in groups if group.formula is None and group.axes <= lost]
        if any(self._ends_late(group) for group in ending):
            made = {each.way for each in self.attempts.made}
            ways = [way for way in self.source.sized if way in made]
            bounded = [replace(group, bounded=group in ending) for group in groups]
            self._try(ways, bounded, known, where=" up to another path")

    def _try_whatever_values(self, groups: Sequence[Group], known: Mapping[Axis, Fixed]) -> None:
        """Leave axes alone that the source refuses to vary where values let it go another way than for the sample."""
        kept, reasons = without_refused(self.prober, groups, self.source.variants(self.prober.base))
        if reasons:
            self.attempts.wanted -= reasons.keys()
            if not self.attempts.enough:
                where = " with axes fixed that only some values let vary"
                self._try([self.source.looping], settled(kept, self.prober.base), {**known, **reasons}, where=where)

    def _ends_late(self, group: Group) -> bool:
        ends = (attempt.ends.get(axis, 0) for attempt in self.attempts.made for axis in group.axes)
        return max(ends, default=0) > AMPLE * group.sizes[0]

    def _take(self, way: str, groups: list[Group], known: Mapping[Axis, Fixed], where: str = "") -> None:
        """Try one way."""
        self._where = where
        postponed = self.attempts.put_off
        self.source.way = way
        self.source.lost = self.attempts.lost if postponed is None else postponed.lost
        self.source.found = self.attempts.best is not None or postponed is not None
        self.source.numbers, self.source.required, self._first = frozenset(), (), None
        self.fixed, self.limited = dict(known), {}
        self.attempts.made.append(self._attempt(way + where, copy.deepcopy(groups)))

    def _resume(self, postponed: PostponedError, groups: list[Group], known: Mapping[Axis, Fixed]) -> None:
        """Try the way that was put off, unless what came in its place is better, whatever comes of it."""
        first, instead = self.attempts.made
        wanted = self.attempts.wanted
        if instead.model is not None and wanted - postponed.lost <= instead.varying - instead.limited:
            return
        self.attempts.made, self.source.postpones = [], False
        self._take(first.way, groups, known)
        if isinstance(instead.error, NoGainError) and not wanted - self.attempts.made[0].varying <= postponed.lost:
            self._take(instead.way, groups, known)  # there is less than it was compared with
        else:
            self.attempts.made.append(instead)

    def _beyond(self, groups: Sequence[Group], postponed: PostponedError) -> list[Group]:
        """The groups to be captured well beyond where the model takes another path, if that is what ended a capture.

        What is divided into pieces is one piece before, and a capture takes the one for a constant.
        """
        return [self._further(group, max(postponed.beyond.get(axis, 0) for axis in group.axes)) for group in groups]

    def _further(self, group: Group, beyond: int) -> Group:
        """A group to be captured at twice the size from which another path is taken."""
        size = 2 * beyond
        if group.formula is not None or not 0 < size <= _FURTHEST or not group.wants(size):
            return group
        if self.prober.takes(dict.fromkeys(group.axes, size)) is not None:
            return group
        return replace(group, sizes=[size, *(each for each in group.sizes if each != size)], beyond=beyond)

    def _roomier(self, groups: Sequence[Group]) -> list[Group]:
        """The groups to be captured at larger sizes: what a small sample is divided into may be of size 1.

        None where the source takes more steps at larger sizes: it loops over them, and a capture is no better then.
        """
        lost = [group for group in groups if group.formula is None and not group.axes.isdisjoint(self.attempts.lost)]
        steps, found = self.source.steps(self.prober.base), dict[int, Group]()
        for group in lost:
            size = self._present(group)
            larger = (size + group.step * (factor * size // group.step) for factor in (6, 3, 1))
            taken = (each for each in larger if self.prober.takes(dict.fromkeys(group.axes, each)) is None)
            if room := next(taken, 0):
                self.prober.enlarge(group.axes, room)
                found[id(group)] = replace(group, sizes=[room, *group.sizes])
        if not found or self.source.steps(self.prober.base) > _MORE_STEPS * steps:
            return []
        return [found.get(id(group), group) for group in groups]

    def _attempt(self, way: str, groups: list[Group]) -> Attempt:
        if self.attempts.made:
            self.options.tell(f"trying another way: {way}")
        self._tied = set()
        try:
            self._check_joined()
            model, varying = self._proved(groups)
        except FAILURES as error:
            self.options.tell(f"{way}: {error.message}")
            let_go(error)
            reasons = error.reasons if isinstance(error, NoGainError) else {}
            return Attempt(way, error=error, whatever=bool(reasons) and self._failed(reasons), ends=_ends(reasons))
        limited = {axis for axis, reason in self.limited.items() if reason.why != UNCOMPUTED}
        whatever = self._failed(self.fixed)
        tied = varying & self._tied
        return Attempt(way, model, varying, varying & limited, tied, whatever=whatever, ends=_ends(self.fixed))

    def _check_joined(self) -> None:
        """Leave a way alone that puts captures together which are wrong even where no axis varies, or are long.

        Of a long loop, each capture is of its own size, and takes as long as all else together: where the loop is in
        a result already, a size or two are not worth that.

        Raises:
            ConversionError: It is such a way.
        """
        joined, best = self.source.joins.get(self.source.way), self.attempts.best
        if joined in self._refuted:
            raise ConversionError(f"puts captures {joined} together, which are wrong at the sizes of the sample")
        if joined and self._long and best is not None and self.attempts.lost <= best.limited:
            raise ConversionError(
                f"puts captures of a long loop together, for no more than the smallest sizes ({self._long})"
            )

    def _failed(self, reasons: Mapping[Axis, Fixed]) -> bool:
        """Whether a capture fixed axes for nothing but failures that have to do with no size."""
        return {reason.why for axis, reason in reasons.items() if axis in self.attempts.wanted} == {FAILED}

    def _proved(self, groups: list[Group]) -> tuple[Model, frozenset[Axis]]:
        """Capture, finish, prove; with fewer dynamic axes again where the proof fails because of one."""
        while True:
            captured = self._capture(groups)
            model = self._finish(captured)
            if not self.options.verify:
                return model, axes_of(captured.groups)
            report = compare(self.source, model, self.options.judging, captured.groups, captured.against)
            if agrees(report):
                if objection := self.source.objection(report, captured.groups):
                    raise ConversionError(objection)
                model.report = report
                return model, axes_of(captured.groups)
            groups = settled(self._without_guilty(model, captured.groups, report), self.prober.base)

    def _capture(self, groups: list[Group]) -> Captured:
        captured = self.source.capture(self.prober, groups, self.options)
        check_nesting(captured.graph)
        self.fixed |= captured.fixed
        self._tied |= tied_axes(captured.groups, groups)
        self.source.numbers, self.source.required = captured.numbers, captured.required
        varying = axes_of(captured.groups)
        for group in groups:
            if group.required and (lost := sorted(group.axes - varying)):
                where = axis_name(lost[0], self.source.call.names)
                reason = self.fixed.get(lost[0], "the capture fixed it")
                raise ConversionError(f"axis {where} cannot be dynamic as '{group.symbol}': {reason}")
        return captured

    def _finish(self, captured: Captured) -> Model:
        """A captured graph as a model: cleaned up, named, described, at the opset that was asked for."""
        source, graph, options = self.source, captured.graph, self.options
        try:
            result = self.prober.result = source(source.call.tensors)
        except Refusal as refusal:  # it is held to more than when it was probed
            raise ConversionError(str(refusal)) from refusal
        if not result.tensors:
            raise InputError(
                f"the {source.noun} returns nothing but constants", hint="return a tensor, or let an axis vary"
            )
        inputs, outputs = graph_names(source.parameters, source.call, result, options)
        weights = set(graph.graph.initializers) if captured.weights is None else captured.weights
        tidy(graph, weights, options.optimize, in_place=options.weights is not None)
        WidenBfloat16()(graph)
        require_values(graph, captured.required)
        if len(outputs) != (count := len(graph.graph.outputs)):  # ``max(n, x.shape[0])`` is either, as the values are
            raise InputError(
                f"the {source.noun} returns {len(outputs)} tensors for the sample, and its graph {count}",
                hint="return tensors whatever the values are, and Python's numbers never or always",
            )
        name_graph(graph, inputs, outputs)
        rename_symbols(graph, captured.groups)
        refine_shapes(graph)
        forget_contradicted(graph, [tensor.shape for tensor in result.tensors])
        describe_model(graph, source, result, inputs, outputs)
        describe_modes(graph, options)
        state_required(graph, captured.required)
        source.own_weights(graph, share=options.share)
        fixed = fixed_axes(self.prober, captured.groups, self.allowed, self.fixed)
        if options.dynamic_all:
            require_all(fixed, source.call.names)
        names = naming_notes(graph, options.dynamic, options.input_names or source.call.names)
        names += limit_notes(self.limited, captured.groups, source.call.names)
        names += [] if options.bounded else end_notes(captured.groups, source.call.names)
        earlier = self.attempts.notes(source.way + self._where, lambda axis: axis_name(axis, source.call.names))
        known = (*source.notes(), *earlier, *constant_notes(source.call, result), *weight_notes(graph), *names)
        add_notes(graph, fixed, *known)
        _settle_sizes(graph, source.limits(self.prober, captured.groups), options)
        model = at_opset(graph, options)
        if not options.share and options.weights is None:
            narrow_weights(model.ir)
        return model

    def _without_guilty(self, model: Model, groups: list[Group], report: Report) -> list[Group]:
        """The groups whose sizes did not lead to the failure, or with two of them bound together.

        Raises:
            VerificationError: There is nothing to give up: no axis varies, or the axes were asked for.
        """
        self._first = report if self._first is None else self._first
        failed = {run.symbol: run for run in report.failures}
        at_sample = _at_sample(report)
        if all(run.edge for run in report.failures):
            self._refuted.add(self.source.way)
            raise unequal(report)
        free = [group for group in groups if group.formula is None]
        if at_sample:  # the operators for varying sizes may be at fault
            guilty = free[1:] if len(free) > 1 else free
        else:
            guilty = [group for group in free if group.symbol in failed] or free[-1:]  # only together: give up one
        if self._kept(model, groups, guilty, report):
            return groups
        if not at_sample and (late := begin_apart([group for group in free if self._given(group)], report, 1)):
            guilty = [group for group in guilty if group not in late]
            if not guilty:
                return groups
        if at_sample and not free:
            self._refuted.add(self.source.way)
        if not guilty or any(group.required for group in guilty):
            raise unequal(self._first)  # later ones say of axes that they were given up, which did not help
        bound = bound_groups(self.prober, guilty[0], groups) if not at_sample and guilty[0].symbol in failed else None
        if bound is not None and _required(bound) == _required(groups):
            self.options.tell(f"axes of '{guilty[0].symbol}' vary only together with others")
            self._tied |= tied_axes(bound, groups)
            return bound
        for group in guilty:
            self._fix(group, report.failures[0] if at_sample else failed.get(group.symbol))
        return [group for group in groups if group not in guilty]

    def _kept(self, model: Model, groups: Sequence[Group], guilty: Sequence[Group], report: Report) -> bool:
        """Whether there is a way to keep all groups: without size 0, in several captures, without small sizes."""
        failed = {run.symbol: run for run in report.failures}
        free = [group for group in groups if group.formula is None]
        if begin_at([group for group in free if self._given(group)], report, 1):
            return True
        again = [group for group in guilty if group.single and group.symbol in failed]
        if again and not _at_sample(report) and self.source.follows_sizes():
            for group in again:
                group.single = False
            return True
        limited = begin_at([group for group in free if self._given(group) >= 2], report, 2) or begin_where_agreeing(
            free, report, self._given, functools.partial(agrees_at, self.source, model, self.options.judging, groups)
        )
        for group in limited:
            numbers = computes_numbers(report, group.symbol)
            reason = _unfollowed(failed[group.symbol]) if numbers else Fixed(UNCOMPUTED)
            if group.symbol in self.options.from_one:
                raise BeginsLateError(f"'{group.symbol}' begins at {group.asked[0]}: {reason}", report=report)
            self._limit(group, reason)
        return bool(limited)

    def _present(self, group: Group) -> int:
        return self.prober.size(min(group.axes))

    def _given(self, group: Group) -> int:
        """Its size in the caller's sample, which a model has to take, wherever it begins."""
        index, axis = min(group.axes)
        return self.prober.sample[index].shape[axis]

    def _limit(self, group: Group, reason: Fixed) -> None:
        self.limited |= dict.fromkeys(sorted(group.axes), reason)
        self.options.tell(f"'{group.symbol}' begins at {group.asked[0]}: {reason}")

    def _fix(self, group: Group, run: Run | None) -> None:
        reason = Fixed(UNFOLLOWED) if run is None else _unfollowed(run)
        for axis in sorted(group.axes):
            self.fixed[axis] = reason
            self.options.tell(f"axis {axis_name(axis, self.source.call.names)} is fixed: {reason}")


def _ends(reasons: Mapping[Axis, Fixed]) -> dict[Axis, int]:
    """From which size on the source takes another path, of the axes that are fixed because of it."""
    return {axis: reason.beyond for axis, reason in reasons.items() if reason.beyond}


def _at_sample(report: Report) -> bool:
    """Whether a model is wrong at the sizes of the sample."""
    return any(run.label in ("sample", "other values") or run.label.startswith(BRANCH) for run in report.failures)


def _unfollowed(run: Run) -> Fixed:
    return Fixed(UNFOLLOWED, f"{run.label} on {run.provider}: {run.message}")


def _required(groups: Sequence[Group]) -> set[str]:
    return {group.symbol for group in groups if group.required}


def _settle_sizes(graph: onnx_ir.Model, limits: Sequence[str], options: Options) -> None:
    """State the conditions on the sizes of inputs, and check them in the graph if that is wanted."""
    state_conditions(graph, limits)
    if options.checks:
        check_conditions(graph, limits)


def at_opset(graph: onnx_ir.Model, options: Options) -> Model:
    """The model at the requested opset, converted only if it is at another."""
    model = Model(graph)
    opset = DEFAULT if options.opset is None else options.opset
    return model if opset == model.opset else convert_opset(model, opset)
