"""A ``torch.nn.Module``: captured by torch.export with the axes that were found to vary."""

from __future__ import annotations

import contextlib
import copy
import functools
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import onnx_ir
import torch

from entrepot.exporters.axes.groups import Axis, Group, settled
from entrepot.exporters.axes.probe import Prober
from entrepot.exporters.exporter import Captured, NoGainError, PostponedError, Refusal, Required
from entrepot.exporters.naming import rename_symbols
from entrepot.exporters.notes import Fixed, listed
from entrepot.exporters.options import Options
from entrepot.exporters.paths.following import Unfollowed, follow
from entrepot.exporters.paths.path import Path
from entrepot.exporters.sample import Sample
from entrepot.exporters.structure import flatten_call
from entrepot.exporters.torch.arrays import TORCH
from entrepot.exporters.torch.capture.automatic import joint_limits
from entrepot.exporters.torch.capture.capture import Begun, capture
from entrepot.exporters.torch.capture.flat import Capture, FlatModule
from entrepot.exporters.torch.capture.paths import capture_automatic, conditions_of
from entrepot.exporters.torch.capture.settled import followed
from entrepot.exporters.torch.capture.shapes import read_shapes, shaped_groups
from entrepot.exporters.torch.capture.together import sizes_against, sizes_of_kinds
from entrepot.exporters.torch.capture.untranslated import translated
from entrepot.exporters.torch.lowering.repair import repair
from entrepot.exporters.torch.lowering.translate import translate
from entrepot.exporters.torch.lowering.weights import weight_names
from entrepot.exporters.torch.quantised.observers import observer_note
from entrepot.exporters.torch.quantised.packed import has_packed
from entrepot.exporters.torch.rewriting.modules import rewritten_copy
from entrepot.exporters.torch.rewriting.reaching import variants
from entrepot.exporters.torch.running.checks import check_module
from entrepot.exporters.torch.running.deciding import DECIDES_OTHERWISE, DecisionSpotter
from entrepot.exporters.torch.running.endless import CallCounter
from entrepot.exporters.torch.running.errors import MODEL_ERRORS
from entrepot.exporters.torch.running.unregistered import told_of_layers
from entrepot.exporters.torch.running.unsupported import check_kernels, known_not_to_work, plain_refusals
from entrepot.exporters.torch.sources.calling import TorchSource, mode_note
from entrepot.exporters.torch.sources.checkpoint import Checkpoint
from entrepot.exporters.torch.sources.kept import Asked, Kept, is_the_same
from entrepot.exporters.torch.sources.other_ways import (
    capture_decided,
    capture_rewritten,
    capture_scripted,
    capture_traced,
)
from entrepot.exporters.weight_store import WeightStore
from entrepot.ir.errors import ConversionError, EntrepotError, InputError
from entrepot.parity.report.report import Report

_PLAIN = "as it is"
_REWRITTEN = "with its branches and loops rewritten"
_PARTS = "in parts"
_SCRIPTED = "by torch.jit.script"
_TRACED = "by torch.jit.trace"
_DECIDED = "as it decides for the sample"
_BEGINNING = 4
"""Of the calls of torch, what is captured of so many is a beginning: little is lost if it is captured once more."""


@dataclass(frozen=True)
class _Known:
    """What came of a capture: what was asked for; axes that vary, and where several end together."""

    asked: Asked
    groups: list[Group]
    ends: list[str]


class ModuleSource(TorchSource):
    """A module and what it is called with."""

    ways: Sequence[str] = (_PLAIN, _REWRITTEN, _PARTS, _SCRIPTED, _TRACED)
    looping: str = _REWRITTEN
    sized: Sequence[str] = (_PLAIN, _REWRITTEN)
    last: Sequence[str] = (_DECIDED,)
    joins: Mapping[str, str] = MappingProxyType({_PARTS: _PLAIN})

    more: list[list[torch.Tensor]]
    way_notes: Sequence[str] = ()
    kept: Kept | None = None

    def __init__(self, module: torch.nn.Module, sample: Any) -> None:
        self.sample = Sample.of(sample, module.forward)
        super().__init__(module, flatten_call(self.sample, module.forward, TORCH))
        self._mode = mode_note(module)
        self._observers = observer_note(module)
        self._shared = False
        self._ends: list[str] = []
        self._known: _Known | None = None
        self._failed: tuple[object, ConversionError] | None = None
        self._kept: tuple[object, tuple[Capture, ConversionError | None]] | None = None
        self._begun: tuple[Asked, Begun] | None = None
        self._last: tuple[Asked, Capture] | None = None
        self._refused: tuple[Asked, ConversionError] | None = None

    def accept(self, options: Options) -> None:
        """Every option, if the module may be run at other sizes, and its weights are where they can be shared."""
        if options.weights is not None:
            self.checkpoint = Checkpoint(self.module, options.weights)
        else:
            check_module(self.module)
        check_kernels(self.module)
        if options.share and has_packed(self.module):
            raise InputError("quantised weights cannot be shared: they are packed", hint="leave share out to copy them")
        self._shared, self.store = options.share, options.store or WeightStore()
        self.keeps, self.random, self.training = options.state, options.random or options.training, options.training
        if self.training and not self._mode:
            raise InputError("the module is in evaluation mode", hint="call train() on it, or leave training out")

    @contextlib.contextmanager
    def guard(self) -> Iterator[None]:
        """As for every source; weights that are shared are computed in the graph, not before it."""
        told = contextlib.nullcontext() if self.training else told_of_layers(self.module)
        with followed(self._shared), super().guard(), told:
            yield

    def follows_sizes(self) -> bool:
        """In parts only."""
        return self.way == _PARTS

    def variants(self, tensors: Sequence[torch.Tensor]) -> Iterator[Sequence[torch.Tensor]]:
        """Simple ones, one for each of the ways that they decide otherwise what Python reads the truth of."""
        seen = [self._decided(tensors)]
        for other in variants(tensors) if seen[0] else ():
            decided = self._decided(other)
            if decided and decided not in seen:
                seen.append(decided)
                yield other

    def _decided(self, tensors: Sequence[torch.Tensor]) -> list[Required]:
        """What Python reads; nothing where the module refuses such values."""
        with DecisionSpotter() as spotter, contextlib.suppress(Refusal):
            self.eager(tensors)
            return spotter.found
        return []

    def steps(self, tensors: Sequence[torch.Tensor]) -> int:
        """Its calls of torch."""
        with CallCounter() as calls:
            self.eager(tensors)
        return calls.count

    def shaped_groups(self, prober: Prober, dynamic_shapes: Any) -> tuple[list[Group], Collection[Axis]]:
        """The axes that torch.export's ``dynamic_shapes`` names or hints at."""
        wishes = read_shapes(dynamic_shapes, self.module, self.sample, self.call)
        return shaped_groups(prober, wishes, self.call.names), wishes.keys()

    def capture(self, prober: Prober, groups: list[Group], options: Options) -> Captured:
        """Capture in the way that is asked for; translate with torch.onnx."""
        self.more, self.way_notes, self._ends = [], [], []
        self.eager.may_not_end |= self.way != self.ways[0]
        if self.stepper is not None and self.way not in (_PLAIN, _PARTS):
            raise ConversionError("a module whose state is followed is captured as it is, or not at all")
        with plain_refusals(lambda: self._known_not_to_work):
            if self.way == _REWRITTEN:
                return capture_rewritten(self, prober, groups, options)
            if self.way == _SCRIPTED:
                return capture_scripted(self, groups, options)
            if self.way == _TRACED:
                traced = capture_traced(self, groups, options)
                return replace(traced, against=sizes_of_kinds(groups, prober, options))
            if self.way == _DECIDED:
                return capture_decided(self, prober, groups, options)
            return self._plain(prober, groups, options)

    @functools.cached_property
    def _known_not_to_work(self) -> tuple[str, str] | None:
        """Found by running the module on the sample, which is done once, however many ways fail."""
        return known_not_to_work(self.eager, self.call.tensors)

    def _plain(self, prober: Prober, groups: list[Group], options: Options) -> Captured:
        asked = prober.shapes, copy.deepcopy(groups)
        if self.follows_sizes() and self._known is not None and self._known.asked == asked:
            self._ends = self._known.ends
            if (joined := self._joined(prober, groups, self._known.groups, options)) is not None:
                return joined
        if self._failed is not None and self._failed[0] == asked:  # the way of one capture was no other
            raise self._failed[1]
        captured, refusal = self._made_before(asked) or self._made(prober, groups, asked, options)
        self._ends = joint_limits(captured.program, captured.groups)
        self._known = _Known(asked, copy.deepcopy(captured.groups), self._ends)
        self.state.restore()
        if self.follows_sizes() and (joined := self._joined(prober, groups, captured.groups, options)) is not None:
            return joined
        if refusal is not None:
            raise refusal
        self.check_gain(groups, captured.groups, captured.fixed)
        options.tell("translating to ONNX")
        captured, graph = translated(
            captured, prober, self._lowered, lambda fewer: self._capture(prober, fewer, options.tell)
        )
        self._last = (prober.shapes, copy.deepcopy(captured.groups)), captured
        weights, against = self._weights(captured.program), sizes_against(captured, prober, options)
        return Captured(graph, captured.groups, captured.fixed, captured.numbers, weights, against=against)

    def _made(
        self, prober: Prober, groups: list[Group], asked: Asked, options: Options
    ) -> tuple[Capture, ConversionError | None]:
        """As of ``_captured``; what comes of it is known from now on."""
        options.tell("capturing the module")
        try:
            captured, refusal = self._captured(prober, groups, asked, options)
        except PostponedError:
            raise
        except ConversionError as error:
            if self._refused is None or self._refused[1] is not error:
                self._failed = asked, error
            raise
        if refusal is None:
            self._kept = asked, (captured, refusal)
            self._postpone(asked, captured.groups, captured.fixed)
            self._kept = None
        return captured, refusal

    def _made_before(self, asked: Asked) -> tuple[Capture, ConversionError | None] | None:
        """What came of a capture that was put off, or would be the same as the last."""
        if self._kept is not None and self._kept[0] == asked:
            kept, self._kept = self._kept[1], None
            return kept
        last = self._beginning_later(asked)
        return None if last is None else (last, None)

    def _beginning_later(self, asked: Asked) -> Capture | None:
        """The last capture, if its axes are asked for again, some from a later size on: it would be the same."""
        if self._last is None or self._last[1].fixed:
            return None
        (shapes, groups), last = self._last
        same = is_the_same(asked, shapes, groups, last.tensors)
        return replace(last, groups=copy.deepcopy(asked[1])) if same else None

    def _lowered(self, program: torch.export.ExportedProgram) -> onnx_ir.Model:
        graph = translate(program)
        repair(graph, self.module)
        return graph

    def _weights(self, program: torch.export.ExportedProgram) -> frozenset[str]:
        """Names of initializers that are weights, those that were unpacked for the capture included."""
        return frozenset([*weight_names(self.module), *(name.removeprefix("module.") for name in program.state_dict)])

    def _captured(
        self, prober: Prober, groups: list[Group], asked: Asked, options: Options
    ) -> tuple[Capture, ConversionError | None]:
        """One capture, and why it is not enough where an axis that is required does not vary in it.

        Raises:
            ConversionError: The module cannot be captured at all, or one capture has to be enough.
        """
        required = {group.symbol for group in groups if group.required}
        refusal = self._refused[1] if self._refused is not None and self._refused[0] == asked else None
        if refusal is None:
            hopeless: list[bool] = []
            try:
                return self._capture(prober, groups, options.tell, groups, lambda: hopeless.append(True)), None
            except ConversionError as error:
                if hopeless or not required or isinstance(error, NoGainError | PostponedError):
                    raise
                refusal = error
                self._refused = asked, error
        if not self.follows_sizes():  # fewer axes are of use to captures that are put together, and to nobody else
            raise refusal
        wanted = [replace(group, required=False, bounds={"min": 2}) for group in groups]
        found = self._capture(prober, wanted, lambda line: None)
        for group in found.groups:
            group.required = group.symbol in required
        return found, refusal

    def _capture(
        self,
        prober: Prober,
        groups: list[Group],
        progress: Callable[[str], None],
        asked: Sequence[Group] | None = None,
        hopeless: Callable[[], None] | None = None,
    ) -> Capture:
        """One capture; given up as soon as it is of no use, if it is known what all is asked for."""
        told: dict[str, Any] = {"hopeless": hopeless}
        if asked is not None and not self.follows_sizes():
            wanted = prober.shapes, copy.deepcopy([*asked])
            told |= {
                "gain": functools.partial(self.check_gain, wanted[1]),
                "ended": functools.partial(self._postpone, wanted),
                "put_off": functools.partial(self._is_put_off, wanted),
            }
            if self._begun is not None and self._begun[0] == wanted:
                told["begun"] = self._begun[1]
        return capture(self.module, self.call, prober, groups, progress=progress, stepper=self.stepper, **told)

    def _postpone(self, asked: Asked, left: Sequence[Group], fixed: Mapping[Axis, Fixed]) -> None:
        """Put a capture off, if a rewritten module may do better; it goes on from here, should it be resumed."""
        if self._may_be_rewritten():
            self._begun = asked, (copy.deepcopy([*left]), dict(fixed))
            self.postpone(asked[1], left, fixed)

    def _is_put_off(self, asked: Asked, left: Sequence[Group], made: int) -> bool:
        """Whether a capture that leaves only these groups open is put off, and most of it is still to be made.

        Args:
            asked: What it is to be captured for.
            left: What it leaves open.
            made: How many nodes it has.
        """
        early = _BEGINNING * made < self.eager.usual
        return early and self.would_postpone(asked[1], left) and self._may_be_rewritten()

    def _may_be_rewritten(self) -> bool:
        return self.postpones and self.way == _PLAIN and rewritten_copy(self.module) is not None

    def _joined(
        self, prober: Prober, groups: Sequence[Group], captured: Sequence[Group], options: Options
    ) -> Captured | None:
        """Several captures put together, for axes that one capture fixes or gets wrong."""
        varying = {axis for group in captured for axis in group.axes}
        kept_axes = varying - frozenset(self.lost)  # which the proof gave up, too
        derived = [group for group in groups if group.formula is not None]
        free = [group for group in groups if group.formula is None]
        lost = [group for group in free if not (group.single and group.axes <= kept_axes)]
        if not lost:
            return None
        lost = [replace(group, bounds={"min": 2}, automatic=False, single=False) for group in lost]
        taken = {axis for group in lost for axis in group.axes}
        kept = [group for group in captured if group.formula is None and taken.isdisjoint(group.axes)]
        groups = settled(sorted([*kept, *lost, *derived], key=lambda group: min(group.axes)), prober.base)
        try:
            path = follow(self, prober, groups, lost, functools.partial(self._path, groups, lost), options.tell)
        except Unfollowed as reason:
            raise ConversionError(f"captures at several sizes do not add up: {reason}") from reason
        against = sizes_of_kinds(groups, prober, options)
        return Captured(path.graph, groups, {}, path.numbers, path.weights, against=against)

    def _path(self, groups: Sequence[Group], lost: Sequence[Group], tensors: Sequence[Any]) -> Path | None:
        """The module as it behaves at the sizes of some tensors, with fewer axes that vary if need be."""
        kept = [group for group in groups if group not in lost]
        attempts = (self._path_along(varying, groups, tensors) for varying in (groups, kept))
        return next(filter(None, attempts), None)

    def _path_along(self, varying: Sequence[Group], groups: Sequence[Group], tensors: Sequence[Any]) -> Path | None:
        flat = FlatModule(self.module, self.call.tree, self.stepper, varying)
        flat.training = False
        try:
            program = capture_automatic(flat, tensors, varying)
            graph = self._lowered(program)
            conditions = conditions_of(program, groups)
        except (*MODEL_ERRORS, EntrepotError):
            return None
        finally:
            self.state.restore()
        rename_symbols(graph, groups)
        return Path(graph, {}, conditions, self._weights(program), frozenset(flat.numbers))

    def objection(self, report: Report, groups: Sequence[Group]) -> str:
        """Where it decides as for the sample, it has to do so for all other values and sizes, but for edge values."""
        if not self.required:
            return ""
        other = next((run for run in report.runs if DECIDES_OTHERWISE in run.message and not run.edge), None)
        if other is not None:
            return f"{other.message}, with {other.label}"
        agreeing = {run.symbol for run in report.runs if run.ok and run.label != "sample"}
        alone = [group.symbol for group in groups if group.formula is None and group.symbol not in agreeing]
        return f"what it decides at other sizes of {listed(alone)} is not known" if alone else ""

    def limits(self, prober: Prober, groups: Sequence[Group]) -> list[str]:
        """Those that the module has, and those that its capture has for several sizes at once."""
        return [*super().limits(prober, groups), *self._ends]

    def notes(self) -> Sequence[str]:
        """The mode that it was in, and state of the sample that is not followed."""
        return [
            "" if self.training else self._mode,
            "" if self.training else self._observers,
            *self.state_notes,
            *self.way_notes,
        ]
