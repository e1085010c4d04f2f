"""A capture in which every size was left to torch.export: which sizes it holds for, read from the program itself.

With a name for each size, torch.export refuses whatever it cannot prove for all sizes, and the capture has to be made
anew with what it suggests. Left to itself, it notes the same in the program.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import sympy  # type: ignore[import-untyped]
import torch

from entrepot.exporters.axes.conditions import holding_range
from entrepot.exporters.axes.groups import Axis, Group, settled
from entrepot.exporters.axes.probe import Prober
from entrepot.exporters.notes import CAPTURED, Fixed
from entrepot.exporters.structure import Flat
from entrepot.exporters.torch.capture.automatic import broken_condition, symbols_of, terms_of
from entrepot.exporters.torch.capture.blame import guard_line, noted_line
from entrepot.exporters.torch.capture.dims import export_along
from entrepot.exporters.torch.capture.flat import Capture, FlatModule, capture_sample
from entrepot.exporters.torch.capture.narrowing import is_at_stake, keep_within
from entrepot.exporters.torch.capture.watching import CaptureEnded, End, Watch
from entrepot.exporters.torch.running.errors import MODEL_ERRORS
from entrepot.exporters.torch.running.stepping import Stepper
from entrepot.exporters.torch.upstream import size_notes

_UNBOUNDED = 2**31


@dataclass(frozen=True)
class Opening:
    """What came of a capture in which every size was left to torch.export.

    Attributes:
        capture: It, if it holds for every group by itself that it left open.
        program: What torch.export made, if anything, also where that does not hold.
        tensors: What it was made with.
        error: Why there is no program.
        ends: Groups that it ends early, where the module goes on, or fixes, each with the reason. A capture with names
            for the sizes goes the same way, and torch.export would refuse it.
        beginning: All groups, each from the size on from which the program holds, where it holds for several only
            together.
    """

    capture: Capture | None = None
    program: torch.export.ExportedProgram | None = None
    tensors: Sequence[torch.Tensor] = ()
    error: BaseException | None = None
    ends: Sequence[tuple[Group, Fixed]] = ()
    beginning: Sequence[Group] = ()


def capture_open(
    module: torch.nn.Module,
    call: Flat,
    prober: Prober,
    groups: list[Group],
    stepper: Stepper | None,
    useless: Callable[[Group, int], bool],
) -> Opening:
    """A capture that finds the bounds of all sizes by itself.

    Args:
        module: In evaluation mode.
        call: The flat sample.
        prober: Knows what the module accepts.
        groups: Axes to leave open.
        stepper: What is called instead of the module, where its state is among the arguments.
        useless: Whether a capture is of no use that fixes a group, and has so many nodes; it is not made to its end
            then.
    """
    if not groups or any(group.step > 1 for group in groups):
        return Opening()
    tensors = capture_sample(call, prober, groups)
    flat = FlatModule(module, call.tree, stepper, groups, tied=True)
    flat.training = False
    automatic = [replace(group, automatic=True) for group in groups]
    watched = [group for group in groups if group.formula is None]

    def is_of_no_use(end: End) -> bool:
        if end.pinned:
            return end.group.required or useless(end.group, watch.made)
        return end.most < max(end.group.sizes) or is_at_stake(end.group, end.most + 1)

    while True:
        watch = Watch(watched, tensors, is_of_no_use)
        try:
            program = export_along(flat, tensors, automatic, watch)
        except CaptureEnded:
            reasons = {symbol: _ended(end, prober) for symbol, end in watch.ends.items()}
            if any(reason is not None for reason in reasons.values()):
                found = [(end, reason) for symbol, end in watch.ends.items() if (reason := reasons[symbol])]
                lines = [end.line or guard_line(flat, tensors, groups, end.group) for end, _ in found]
                return Opening(
                    ends=[
                        (end.group, _fixed(reason, line, 0 if end.pinned else end.most))
                        for (end, reason), line in zip(found, lines, strict=True)
                    ]
                )
            watched = [group for group in watched if group.symbol not in watch.ends]
            continue
        except MODEL_ERRORS as error:
            return Opening(error=error)
        opened = _opening(program, tensors, flat, call, prober, groups)
        told = {end.group.symbol: end.line for end in watch.ends.values()}
        ends = [
            (group, replace(reason, line=reason.line or told.get(group.symbol, ""))) for group, reason in opened.ends
        ]
        return replace(opened, ends=ends)


def _ended(end: End, prober: Prober) -> str | None:
    """As ``_beyond``."""
    if end.pinned:
        return f"the capture needs {end.group.symbol} = {end.size}"
    return _beyond(end.group, _within(end.group, end.least, end.most), prober)


def _fixed(reason: str, line: str, most: int) -> Fixed:
    """Why a group is fixed, at the end of a path if one ends after ``most``."""
    return Fixed(CAPTURED, reason, line, beyond=most + 1 if most else 0)


def _opening(
    program: torch.export.ExportedProgram,
    tensors: list[torch.Tensor],
    flat: FlatModule,
    call: Flat,
    prober: Prober,
    groups: list[Group],
) -> Opening:
    pinned = [group for group in groups if group.formula is None and not symbols_of(program, group)]
    if asked := [group for group in pinned if group.required]:
        return Opening(None, program, tensors, ends=[(group, _pinned(program, tensors, group)) for group in asked])
    kept, fixed = _without_pinned(program, pinned, tensors, call, prober, groups)
    found = _bounded(program, kept)
    if found is None:
        return Opening(None, program, tensors)
    if any(broken_condition(program, group) for group in found if group.formula is None):
        beginning = [
            replace(group, bounds=group.bounds | {"min": own.bounds["min"]})
            for group, own in zip(kept, found, strict=True)
        ]
        return Opening(None, program, tensors, beginning=beginning)
    ends = [(group, _beyond(group, own, prober)) for group, own in zip(kept, found, strict=True)]
    if any(reason is not None for _, reason in ends):
        early = [
            (group, _fixed(reason, noted_line(program, tensors, group), own.bounds.get("max", 0)))
            for (group, reason), own in zip(ends, found, strict=True)
            if reason
        ]
        return Opening(None, program, tensors, ends=early)
    return Opening(Capture(program, tensors, found, fixed, frozenset(flat.numbers)), program, tensors)


def _pinned(program: torch.export.ExportedProgram, tensors: Sequence[torch.Tensor], group: Group) -> Fixed:
    """Why a group is fixed whose size a program made a number."""
    index, axis = min(group.axes)
    reason = f"the capture needs {group.symbol} = {tensors[index].shape[axis]}"
    return Fixed(CAPTURED, reason, noted_line(program, tensors, group))


def _without_pinned(
    program: torch.export.ExportedProgram,
    pinned: Sequence[Group],
    tensors: Sequence[torch.Tensor],
    call: Flat,
    prober: Prober,
    groups: list[Group],
) -> tuple[list[Group], dict[Axis, Fixed]]:
    """The groups whose sizes the program did not make numbers; all, if those are not the numbers of the sample."""
    if not pinned:
        return groups, {}
    kept = settled(copy.deepcopy([group for group in groups if group not in pinned]), prober.base)
    if [tensor.shape for tensor in capture_sample(call, prober, kept)] != [tensor.shape for tensor in tensors]:
        return groups, {}
    fixed: dict[Axis, Fixed] = {}
    for group in pinned:
        fixed |= dict.fromkeys(sorted(group.axes), _pinned(program, tensors, group))
    return kept, fixed


def _bounded(program: torch.export.ExportedProgram, groups: Sequence[Group]) -> list[Group] | None:
    """The groups with the bounds that a program has for them; ``None`` if their sizes are not symbols of their own."""
    free = [group for group in groups if group.formula is None]
    terms = [terms_of(program, group) for group in free]
    symbols = [next(iter(found)) for found in terms if found is not None and len(found) == 1]
    if len(set(symbols)) < len(free) or not all(symbol.is_Symbol for symbol in symbols):
        return None
    bounds = [_bounds(program, symbol) for symbol in symbols]
    found = {id(group): _within(group, *own) for group, own in zip(free, bounds, strict=True)}
    return [found.get(id(group), group) for group in groups]


def _beyond(group: Group, found: Group, prober: Prober) -> str | None:
    """Why a group cannot vary within the bounds of a capture; empty if it can in steps, which it has then."""
    if found.bounds == group.bounds:
        return None
    kept = replace(group, bounds=dict(group.bounds))
    if reason := keep_within(kept, found.bounds, prober, set()):
        return reason
    if kept.step == group.step:
        return None
    group.step, group.sizes = kept.step, kept.sizes
    return ""


def _bounds(program: torch.export.ExportedProgram, symbol: sympy.Symbol) -> tuple[int, int | None]:
    """The sizes for which a program holds as far as it depends on one size alone."""
    known: Any = program.range_constraints.get(symbol)
    least, most = (0, math.inf) if known is None else (int(known.lower), min(math.inf, known.upper))
    notes = size_notes(program)
    for guard in notes.guards:
        if guard.condition.free_symbols == {symbol}:
            text = str(guard.condition.xreplace({symbol: sympy.Symbol("size", integer=True)}))
            first, last = holding_range(text, notes.sizes.get(symbol, 0)) or (0, math.inf)
            least, most = max(least, first), min(most, last)
    return least, None if most > _UNBOUNDED else int(most)


def _within(group: Group, least: int, most: int | None) -> Group:
    bounds = {**group.bounds, "min": max(group.bounds["min"], least)}
    if most is not None:
        bounds["max"] = min(bounds.get("max", most), most)
    return replace(group, bounds=bounds)
