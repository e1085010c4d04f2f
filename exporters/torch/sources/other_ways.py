"""Other ways to capture a module than as it is: rewritten, scripted, traced, as it decides for the sample."""

from __future__ import annotations

import contextlib
import copy
import functools
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import onnx_ir
import torch

from entrepot.exporters.axes.groups import Group
from entrepot.exporters.axes.probe import Prober
from entrepot.exporters.exporter import Captured, Refusal
from entrepot.exporters.notes import listed
from entrepot.exporters.options import Options
from entrepot.exporters.structure import Leaf, places
from entrepot.exporters.torch.capture.capture import capture
from entrepot.exporters.torch.capture.decided import deciding
from entrepot.exporters.torch.capture.flat import Capture, FlatModule
from entrepot.exporters.torch.capture.together import longer_ways, sizes_against
from entrepot.exporters.torch.capture.untranslated import REWRITTEN, translated
from entrepot.exporters.torch.lowering.flows import expand_flows
from entrepot.exporters.torch.lowering.repair import repair
from entrepot.exporters.torch.lowering.translate import translate
from entrepot.exporters.torch.lowering.weights import weight_names
from entrepot.exporters.torch.rewriting.bodies import Bodies
from entrepot.exporters.torch.rewriting.flows import FLOWS
from entrepot.exporters.torch.rewriting.modules import rewritten_copy
from entrepot.exporters.torch.rewriting.reaching import LEFT_OUT, SIZES, reach
from entrepot.exporters.torch.rewriting.stored import stores_followed
from entrepot.exporters.torch.rewriting.trees import UnlikeError
from entrepot.exporters.torch.running.deciding import DecisionSpotter
from entrepot.exporters.torch.running.eager import Eager
from entrepot.exporters.torch.running.errors import MODEL_ERRORS
from entrepot.exporters.torch.running.guard import quiet
from entrepot.exporters.torch.scripts.closed import closed
from entrepot.exporters.torch.sources.kept import Kept
from entrepot.exporters.torch.sources.script import translate_script
from entrepot.exporters.torch.upstream import FrontendError, TracerWarning, size_notes
from entrepot.ir.errors import ConversionError, EntrepotError

if TYPE_CHECKING:
    from entrepot.exporters.torch.sources.module import ModuleSource


def capture_rewritten(source: ModuleSource, prober: Prober, groups: list[Group], options: Options) -> Captured:
    """Capture a copy whose branches and loops become those of the graph.

    Raises:
        ConversionError: The source of no part is known, or something in it cannot be followed.
    """
    module = rewritten_copy(source.module)
    if module is None:
        raise ConversionError("its source is not known, or has no branches and loops")
    asked = prober.shapes, copy.deepcopy(groups)
    if source.kept is not None and (kept := source.kept.beginning_later(asked)) is not None:
        source.more, source.way_notes = source.kept.more, source.kept.notes
        return kept
    options.tell("capturing the rewritten module")
    try:
        with stores_followed(module), _refusing():
            take = functools.partial(_capture_rewritten, source, module, prober, options=options)
            lower = functools.partial(_lowered, module, options)
            captured = take(groups)
            source.stuck = True
            captured, graph = (
                translated(captured, prober, lower, take) if source.yields else (captured, lower(captured.program))
            )
            source.stuck = False
            longer = longer_ways(source.steps, captured.groups, prober) if options.verify else []
            against = [*sizes_against(captured, prober, options), *longer]
        source.more, source.way_notes = _reached(source, module)
    finally:
        FLOWS.clear()
        LEFT_OUT.clear()
        source.state.restore()
    repair(graph, source.module)
    weights = weight_names(source.module)
    made = Captured(graph, captured.groups, captured.fixed, captured.numbers, weights, against=against)
    source.kept = Kept.of(made, asked, captured.tensors, source.more, source.way_notes)
    return made


@contextlib.contextmanager
def _refusing() -> Iterator[None]:
    """Inside, what a module raises while it is captured is a refusal."""
    try:
        yield
    except EntrepotError:
        raise
    except (*MODEL_ERRORS, UnlikeError) as error:
        raise ConversionError(f"{REWRITTEN}: {error}") from error


@_refusing()
def _lowered(module: torch.nn.Module, options: Options, program: torch.export.ExportedProgram) -> onnx_ir.Model:
    """The graph of the last capture, with the bodies of its branches and loops."""
    bodies = Bodies(program, FLOWS, module, size_notes(program).sizes)
    options.tell("translating to ONNX")
    graph = translate(program)
    expand_flows(graph, FLOWS, lambda flow, body: translate(bodies.take(flow, body)))
    return graph


class _DecidedInstead(Exception):  # noqa: N818 - an answer, not a fault
    """Sizes that depend on the way taken are why a capture fails: where they do not, every axis varies."""


@dataclass(frozen=True)
class _Taken:
    """A capture with what is noted about its branches and loops, and about checks that it left out."""

    capture: Capture
    flows: Mapping[str, Any]
    left_out: Mapping[str, Any]

    def back(self) -> Capture:
        """It, noted once more."""
        _note_again(self.flows, self.left_out)
        return self.capture


def _note_again(flows: Mapping[str, Any], left_out: Mapping[str, Any]) -> None:
    FLOWS.clear()
    LEFT_OUT.clear()
    FLOWS.update(flows)
    LEFT_OUT.update(left_out)


@_refusing()
def _capture_rewritten(
    source: ModuleSource, module: torch.nn.Module, prober: Prober, groups: list[Group], options: Options
) -> Capture:
    """Both ways of branches on sizes are in the graph, unless more axes vary if they go as in the sample.

    Sizes that depend on the way taken are known when the graph runs, and not everything takes such sizes.
    """
    gain = functools.partial(source.check_gain, groups)
    take = functools.partial(capture, module, source.call, prober, progress=options.tell, tied=True, gain=gain)

    def taken(**more: Any) -> _Taken:
        FLOWS.clear()
        LEFT_OUT.clear()
        made = take(copy.deepcopy(groups), **more)
        gain(made.groups, made.fixed)
        return _Taken(made, dict(FLOWS), dict(LEFT_OUT))

    if any(group.often_one for group in groups):  # without the branch on that, it may as well go as it is
        return taken().capture
    SIZES.met = False
    found, other = _both_ways(taken)
    if found is not None and not (found.capture.fixed and SIZES.met):
        return found.capture
    other = other or _decided(taken)
    if isinstance(other, ConversionError):
        if found is None:
            raise other
        return found.back()
    if found is None or len(other.capture.fixed) < len(found.capture.fixed):
        return other.back()
    return found.back()


def _both_ways(taken: Callable[..., _Taken]) -> tuple[_Taken | None, _Taken | ConversionError | None]:
    """A capture with both ways of branches on sizes, and what came of one that goes as the sample, if that came first.

    Raises:
        ConversionError: There is no capture, and no size decides anything.
    """
    others: list[_Taken | ConversionError] = []

    def before_axes_are_given_up() -> None:
        if not SIZES.met or others:
            return
        noted = dict(FLOWS), dict(LEFT_OUT)
        others.append(_decided(taken))
        if isinstance(others[0], _Taken) and not others[0].capture.fixed:
            raise _DecidedInstead
        _note_again(*noted)

    found: _Taken | None = None
    try:
        found = taken(failed=before_axes_are_given_up)
    except _DecidedInstead:
        pass
    except ConversionError:
        if not SIZES.met:
            raise
    return found, next(iter(others), None)


def _decided(take: Callable[[], _Taken]) -> _Taken | ConversionError:
    """A capture in which branches on sizes go as in the sample, or why there is none."""
    with SIZES.decided():
        try:
            return take()
        except ConversionError as error:
            return error


def _reached(source: ModuleSource, module: torch.nn.Module) -> tuple[list[list[torch.Tensor]], list[str]]:
    """Inputs that take branches which the sample does not take, and what to say of the others and of checks."""
    eager = Eager(module, source.call.tree, source.state)
    eager.may_not_end = True

    def run(tensors: Sequence[torch.Tensor]) -> bool:
        try:
            eager(tensors)
        except Refusal:
            return False
        return True

    def is_firm(tensors: Sequence[torch.Tensor]) -> bool:
        with source.first_of_equal():
            return run(tensors)

    places = {flow.line for flow in FLOWS.values() if len(flow.bodies) == 2 and flow.bodies[0].condition is None}
    more, never = reach(run, source.call.tensors, places, is_firm) if places else ([], [])
    notes = [f"no input was found that takes the branch at {listed(never)}"] if never else []
    for kind, meaning in _LEFT_OUT.items():
        places_of = [place for place, left in LEFT_OUT.items() if left == kind]
        notes += [f"{meaning} at {listed(places_of)}"] if places_of else []
    return more, notes


_LEFT_OUT = {
    "check": "left out, since a graph raises no errors: the check",
    "form": "tensors without elements have the form that others have, whatever is decided",
}


def capture_scripted(source: ModuleSource, groups: list[Group], options: Options) -> Captured:
    """Compile the module's source with TorchScript, where loops and branches stay what they are.

    Raises:
        ConversionError: TorchScript does not understand the module.
    """
    if not all(isinstance(place, Leaf) for place in places(source.call.tree)) or source.sample.kwargs:
        raise ConversionError("TorchScript is tried only on tensors that are given by position")
    return _script(source, groups, options, lambda: closed(torch.jit.script(source.module), source.sample))


def capture_traced(source: ModuleSource, groups: list[Group], options: Options) -> Captured:
    """Note the operators of one call.

    Raises:
        ConversionError: torch cannot trace the module, or what it does depends on the values of the sample.
    """
    flat = FlatModule(source.module, source.call.tree)
    flat.training = False
    tensors = tuple(tensor.clone() for tensor in source.call.tensors)  # the module is run, and may write to them

    with DecisionSpotter() as spotter:
        source.eager(tensors)
    if spotter.failed:  # torch's tracer (2.13) ends the process where an error in one of its calls is caught
        raise ConversionError(f"an operation fails for the sample, which forward catches: {spotter.failed[0]}")

    def trace() -> Any:
        with DecisionSpotter() as spotter:  # torch warns of some of them only
            made = torch.jit.trace(flat, tensors, check_trace=False, strict=False)
        if spotter.found:
            raise ConversionError(f"the trace depends on values of the sample: {spotter.found[0].line}")
        return made

    return _script(source, groups, options, trace)


def capture_decided(source: ModuleSource, prober: Prober, groups: list[Group], options: Options) -> Captured:
    """Capture what the module does where it decides by values as it does for the sample; the graph checks them.

    Raises:
        ConversionError: It does not decide by values, or cannot be captured for another reason.
    """
    with deciding(source.eager.decisions) as decisions:
        captured = capture(source.module, source.call, prober, groups, progress=options.tell)
    if not decisions.taken:
        raise ConversionError("nothing in it is decided by values")
    options.tell("translating to ONNX")
    graph = translate(captured.program)
    repair(graph, source.module)
    required = list(decisions.taken)
    lines = dict.fromkeys(f"{each.line} ({each.holds})" for each in required)
    source.way_notes = [
        f"takes only inputs for which forward decides as for the sample, which the graph checks: {listed(list(lines))}"
    ]
    return Captured(
        graph,
        captured.groups,
        captured.fixed,
        captured.numbers,
        weight_names(source.module),
        required,
        sizes_against(captured, prober, options),
    )


def _script(source: ModuleSource, groups: list[Group], options: Options, make: Callable[[], Any]) -> Captured:
    if options.share:
        raise ConversionError("the weights of a ScriptModule cannot be shared", hint="leave share out to copy them")
    try:
        with quiet(), warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always", TracerWarning)
            made = make()
    except EntrepotError:
        raise
    except (*MODEL_ERRORS, FrontendError, SyntaxError, OSError) as error:  # a lambda, a source that is not there
        first = next(iter(str(error).strip().splitlines()), type(error).__name__)
        raise ConversionError(f"TorchScript does not take the module: {first}") from error
    finally:
        source.state.restore()
    for warning in told:  # a value of the sample has become a constant, or has decided what was noted
        first = next(iter(str(warning.message).splitlines()))
        raise ConversionError(f"the trace depends on values of the sample: {first}")
    options.tell("translating to ONNX")
    graph = translate_script(made, source.call, groups)
    for value in list(graph.graph.initializers.values()):
        name = str(value.name).removeprefix("module.")
        if name not in graph.graph.initializers:
            value.name = name
    return Captured(graph, groups, weights=weight_names(source.module))
