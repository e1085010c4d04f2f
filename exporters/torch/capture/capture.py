"""A module as a ``torch.export.ExportedProgram`` whose dynamic axes are those that were found to vary."""

from __future__ import annotations

import copy
import functools
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

import torch

from entrepot.exporters.axes.conditions import holding_range
from entrepot.exporters.axes.groups import Axis, Group, axis_name
from entrepot.exporters.axes.groups import settled as still_varying
from entrepot.exporters.axes.probe import Prober
from entrepot.exporters.axes.related import tied_groups
from entrepot.exporters.axes.together import bound_groups
from entrepot.exporters.exporter import NoGainError
from entrepot.exporters.notes import CAPTURED, FAILED, Fixed
from entrepot.exporters.structure import Flat
from entrepot.exporters.torch.capture.automatic import Broken, broken_condition, pinning_condition
from entrepot.exporters.torch.capture.blame import captured_blame, guard_line, noted_line, plain, required_blame
from entrepot.exporters.torch.capture.dims import export_along, leave_open
from entrepot.exporters.torch.capture.flat import Capture, FlatModule, capture_sample
from entrepot.exporters.torch.capture.narrowing import NO_NEWS, keep_within
from entrepot.exporters.torch.capture.ranges import Opening, capture_open
from entrepot.exporters.torch.capture.unfollowed import bound_by_program
from entrepot.exporters.torch.capture.watching import CaptureEnded, Watch
from entrepot.exporters.torch.messages import (
    is_about_sizes,
    of_size,
    specialised,
    suggested_bounds,
    suggested_fixes,
    unmet_conditions,
)
from entrepot.exporters.torch.running.errors import MODEL_ERRORS
from entrepot.exporters.torch.running.stepping import Stepper
from entrepot.ir.errors import ConversionError, EntrepotError

_Settled: TypeAlias = tuple[list[Group], list[tuple[Group, Fixed]]]
"""The groups to try next, and why others are given up."""

Gain: TypeAlias = Callable[[Sequence[Group], Mapping[Axis, Fixed]], None]

PutOff: TypeAlias = Callable[[Sequence[Group], int], bool]

Begun: TypeAlias = tuple[list[Group], dict[Axis, Fixed]]
"""The axes that are left, and why others are not."""

_MOST_ATTEMPTS = 12  # each attempt settles at least one axis; more attempts mean that settling does not converge
_MOST_ALONE = 6
"""Of how many groups each is captured alone, to find those that a capture fails with."""


def capture(
    module: torch.nn.Module,
    call: Flat,
    prober: Prober,
    groups: list[Group],
    *,
    progress: Callable[[str], None],
    stepper: Stepper | None = None,
    tied: bool = False,
    gain: Gain = lambda *_: None,
    ended: Gain = lambda *_: None,
    put_off: PutOff = lambda *_: False,
    begun: Begun | None = None,
    failed: Callable[[], None] | None = None,
    hopeless: Callable[[], None] | None = None,
) -> Capture:
    """Capture ``module`` with the axes of ``groups`` dynamic.

    Args:
        module: In evaluation mode.
        call: The flat sample.
        prober: Holds the enlarged sample and knows what the module accepts.
        groups: Axes to make dynamic; one that cannot be is an error if it is required, and otherwise fixed at the size
            in the sample.
        progress: Told which axes were given up.
        stepper: What is called instead of the module, where its state is among the arguments.
        tied: Whether what follows is told at the beginning that the axes of a group are equal.
        gain: Given the axes that are left before another attempt, and why others are not; may raise, where that is of
            no use.
        ended: Given the same after an attempt that was of no use; may raise as well.
        put_off: Whether it raises for an attempt that leaves only some groups open, and was given up after so many
            nodes; an attempt that has more is made to its end.
        begun: What ``ended`` was given when it raised, to go on from there.
        failed: Called before axes are given up without a reason that has to do with them; may raise, and be called
            more than once.
        hopeless: Called where it fails with every axis fixed as well, before that is raised; without it, this is not
            tried if every axis is required.

    Raises:
        ConversionError: The module cannot be captured, or an axis that is required cannot be dynamic.
    """
    first: EntrepotError | None = None
    settled: _Settled | None
    opened, groups, fixed = _opened(module, call, prober, groups, progress, stepper, gain, ended, put_off, begun)
    if opened.capture is not None:
        return replace(opened.capture, fixed=fixed)
    groups = [*opened.beginning] or groups
    free = [group for group in groups if group.formula is None]
    worth = [group for group in free if not _is_useless(gain, [group])]
    known = len(worth) < len(free) or (hopeless is None and all(group.required for group in free))
    _tell_early(failed, opened.error, prober, groups)
    failing = _for_no_size(opened.error, module, call, prober, stepper, None if known else hopeless or _nothing)
    for _ in range(_MOST_ATTEMPTS):
        tensors = capture_sample(call, prober, groups)
        flat = FlatModule(module, call.tree, stepper, groups, tied=tied)
        flat.training = False
        leave_open(groups)
        watch = Watch([group for group in groups if _is_named(group)], tensors, lambda end: end.pinned)
        try:
            if failing is not None:
                raise failing
            program = export_along(flat, tensors, groups, watch)
            broken = [(group, why) for group in groups if (why := _broken(program, group))]
            bound = None if broken else bound_by_program(program, prober, groups)
            if not broken and bound is None:
                return Capture(program, tensors, groups, fixed, frozenset(flat.numbers))
            settled = _without_broken(groups, broken, prober) if bound is None else (bound, [])
        except CaptureEnded:
            settled = _without_pinned(groups, watch)
        except MODEL_ERRORS as error:
            required = {group.symbol for group in groups if group.required}
            settled = _settle(plain(error), groups, prober, tensors)
            if settled is None:
                first = first or captured_blame(error, flat, tensors, groups, call.names)
                taken = functools.partial(_is_captured, module, call, prober, stepper)
                settled = _together(prober, groups) or _fewer(groups, first, taken, worth, failed or _nothing)
            if settled is None or required - {group.symbol for group in settled[0]}:
                raise first or captured_blame(error, flat, tensors, groups, call.names) from error
        failing = None
        before, (groups, reasons) = groups, settled
        groups = still_varying(groups, prober.base)
        own = _reasons(reasons, functools.partial(_line, opened, flat, tensors, before))
        _tell(own, call, progress)
        fixed |= own
        gain(groups, fixed)
        if reasons:
            ended(groups, fixed)
    raise ConversionError(
        "torch.export kept refusing the dynamic axes", hint="name them yourself: dynamic={...} or dynamic=False"
    )


def _opened(
    module: torch.nn.Module,
    call: Flat,
    prober: Prober,
    groups: list[Group],
    progress: Callable[[str], None],
    stepper: Stepper | None,
    gain: Gain,
    ended: Gain,
    put_off: PutOff,
    begun: Begun | None,
) -> tuple[Opening, list[Group], dict[Axis, Fixed]]:
    """A capture with open sizes, the groups that it was made with, and the axes that it and those before it fixed.

    Raises:
        ConversionError: It ends an axis that is required, as one with a name for its size would.
    """
    fixed: dict[Axis, Fixed] = {}
    if begun is not None:
        groups, fixed = copy.deepcopy(begun[0]), dict(begun[1])
        _tell(fixed, call, progress)
        gain(groups, fixed)
    while True:
        useless = functools.partial(_is_useless_without, gain, put_off, groups)
        opened = capture_open(module, call, prober, groups, stepper, useless)
        for group, reason in opened.ends:
            if group.required:
                raise required_blame(group, reason.line, reason.detail, call.names)
        if opened.ends:
            own = _ended(opened)
            groups = still_varying([each for each in groups if own.keys().isdisjoint(each.axes)], prober.base)
        elif opened.capture is None:
            return opened, groups, fixed
        else:
            own = dict(opened.capture.fixed)
        _tell(own, call, progress)
        fixed |= own
        if opened.capture is None:
            gain(groups, fixed)
            ended(groups, fixed)
            continue
        bound = bound_by_program(opened.capture.program, prober, opened.capture.groups)
        if bound is None:
            return opened, groups, fixed
        progress("some axes vary only together with others")
        groups = bound


def _ended(opened: Opening) -> dict[Axis, Fixed]:
    """Why a program that ends some groups early is none for them."""
    return {axis: reason for group, reason in opened.ends for axis in sorted(group.axes)}


def _is_useless_without(gain: Gain, put_off: PutOff, groups: Sequence[Group], fixed: Group, made: int) -> bool:
    left = [group for group in groups if group is not fixed]
    return _is_useless(gain, left) or put_off(left, made)


def _is_useless(gain: Gain, groups: Sequence[Group]) -> bool:
    """Whether nothing would be gained with no more than some groups."""
    try:
        gain(groups, {})
    except NoGainError:
        return True
    return False


def _tell(fixed: Mapping[Axis, Fixed], call: Flat, progress: Callable[[str], None]) -> None:
    for axis, reason in fixed.items():
        progress(f"axis {axis_name(axis, call.names)} is fixed: {reason}")


def _reasons(found: Sequence[tuple[Group, Fixed]], line: Callable[[Group], str]) -> dict[Axis, Fixed]:
    """Why axes are given up, each with the user's line."""
    lined = ((group, replace(reason, line=reason.line or line(group))) for group, reason in found)
    return {axis: reason for group, reason in lined for axis in sorted(group.axes)}


def _line(
    opened: Opening, flat: FlatModule, tensors: Sequence[torch.Tensor], others: Sequence[Group], group: Group
) -> str:
    """The user's line that fixed a group, as far as a capture with open sizes can tell."""
    if opened.program is not None:
        return noted_line(opened.program, opened.tensors, group)
    return "" if opened.error is not None else guard_line(flat, tensors, [*others, group], group)


def _for_no_size(
    error: BaseException | None,
    module: torch.nn.Module,
    call: Flat,
    prober: Prober,
    stepper: Stepper | None,
    hopeless: Callable[[], None] | None,
) -> BaseException | None:
    """Why a capture with open sizes failed, if for no size: with names for the sizes, it fails as well.

    Args:
        error: Why it failed.
        module: As of ``capture``, like the others.
        call: The flat sample.
        prober: Holds the enlarged sample.
        stepper: What is called instead of the module.
        hopeless: Called where it does; ``None`` if it is of no use to know that it does not.

    Raises:
        ConversionError: It even fails with every axis fixed; no use trying with one after the other.
    """
    if error is None or not _is_for_no_size(error):
        return None
    if hopeless is None:
        return error
    tensors = capture_sample(call, prober, [])
    flat = FlatModule(module, call.tree, stepper, [])
    flat.training = False
    try:
        export_along(flat, tensors, [])
    except MODEL_ERRORS as again:
        hopeless()
        raise captured_blame(again, flat, tensors, [], call.names) from again
    return error


def _is_for_no_size(error: BaseException | None) -> bool:
    """Whether a capture failed, and says nothing of sizes."""
    return error is not None and not is_about_sizes(plain(error))


def _tell_early(
    failed: Callable[[], None] | None, error: BaseException | None, prober: Prober, groups: Sequence[Group]
) -> None:
    """Call ``failed`` where it would be called once it is known that sizes are to blame, which takes a capture."""
    if failed is None or not _is_for_no_size(error):
        return
    sizes = [prober.size(min(group.axes)) for group in groups if group.formula is None]
    may_be_tied = len(set(sizes)) < len(sizes) or prober.said(prober.sample, [group.axes for group in groups])
    if not may_be_tied:  # which is tried before, see ``_together``
        failed()


def _nothing() -> None:
    """For want of somebody to tell."""


def _broken(program: torch.export.ExportedProgram, group: Group) -> Broken | None:
    """What torch.export does not check by itself."""
    if group.automatic:
        return broken_condition(program, group)
    return pinning_condition(program, group) if group.step > 1 and group.formula is None else None


def _is_named(group: Group) -> bool:
    """Whether torch.export is given a name for its size, so that it refuses whatever makes a number of it."""
    return group.formula is None and not group.automatic and not group.required


def _without_pinned(groups: list[Group], watch: Watch) -> _Settled:
    """What to try after a capture that was ended because it made numbers of sizes that have names."""
    reasons = [
        (end.group, Fixed(CAPTURED, f"the capture needs {symbol} = {end.size}", end.line))
        for symbol, end in watch.ends.items()
    ]
    return [group for group in groups if group.symbol not in watch.ends], reasons


def _is_captured(module: torch.nn.Module, call: Flat, prober: Prober, stepper: Stepper | None, *groups: Group) -> bool:
    """Whether a module is captured with some groups dynamic, perhaps under conditions."""
    some = copy.deepcopy([*groups])
    tensors = capture_sample(call, prober, some)
    flat = FlatModule(module, call.tree, stepper, some)
    flat.training = False
    try:
        export_along(flat, tensors, some)
    except MODEL_ERRORS as error:
        return _settle(plain(error), some, prober, tensors) is not None
    return True


def _without_broken(groups: list[Group], broken: Sequence[tuple[Group, Broken]], prober: Prober) -> _Settled:
    """What to try when a capture holds for some sizes only: where others matter, axes of one size bound, else fewer.

    Raises:
        ConversionError: An axis is required.
    """
    for group, why in broken:
        bound = bound_groups(prober, group, groups) if why.shared else None
        if bound is not None:
            return bound, []
    for group, why in broken:
        if group.required:
            raise ConversionError(f"'{group.symbol}' cannot be dynamic: {why.reason}")
    lost = [group for group, _ in broken]
    return [group for group in groups if group not in lost], [
        (group, Fixed(CAPTURED, why.reason)) for group, why in broken
    ]


def _together(prober: Prober, groups: list[Group]) -> _Settled | None:
    """What to try first when a capture fails without a suggestion: axes of one size bound."""
    tied = tied_groups(prober, groups)
    if tied is not None:
        return tied, []
    bound = (bound_groups(prober, group, groups, alike=alike) for alike in (True, False) for group in groups)
    found = next((each for each in bound if each is not None), None)
    return None if found is None else (found, [])


def _fewer(
    groups: list[Group],
    error: EntrepotError,
    is_captured: Callable[..., bool],
    worth: Collection[Group],
    failed: Callable[[], None],
) -> _Settled | None:
    """What else to try: fewer axes, then none; nothing if all of them are required.

    Those that are ``worth`` a capture come first: if none of them is captured alone, nothing is gained by the others.
    If each of them is, one may be in the way of the others; the last axes are those that weights fix, most of the time.
    """
    failed()
    free = [group for group in groups if group.formula is None]
    if all(group.required for group in free):
        return None
    kept = free[:1] if len(free) > 1 else []
    if 1 < len(free) <= _MOST_ALONE:
        first = [group for group in free if any(group.axes == each.axes for each in worth)]
        rest = [group for group in free if group not in first]
        taken = [group for group in first if is_captured(group)]
        if rest and first and not taken:
            kept = rest
        elif 0 < len(taken := [*taken, *filter(is_captured, rest)]) < len(free):
            kept = [group for group in free if group in taken]
        elif taken and len(free) > 2:
            others = ([each for each in free if each is not group] for group in reversed(free))
            kept = next((some for some in others if is_captured(*some)), kept)
    dropped = [(group, Fixed(FAILED, error.message)) for group in groups if group not in kept]
    return (kept, dropped) if dropped else None


def _settle(message: str, groups: list[Group], prober: Prober, tensors: Sequence[torch.Tensor]) -> _Settled | None:
    """Follow torch.export's conditions and suggestions; ``None`` when there are none that concern our symbols."""
    by_symbol = {group.symbol: group for group in groups if group.formula is None}
    derived = [group for group in groups if group.formula is not None]
    dropped: dict[str, str] = {}
    told = [(symbol, _range(by_symbol, symbol, text, tensors), text) for symbol, text in unmet_conditions(message)]
    told += [(symbol, bounds, "") for symbol, value in suggested_fixes(message) if (bounds := suggested_bounds(value))]
    narrowed: set[str] = set()
    beyond: dict[str, int] = {}
    for symbol, bounds, condition in told:
        if symbol in by_symbol and symbol not in dropped:
            reason = keep_within(by_symbol[symbol], bounds, prober, narrowed)
            if reason:
                dropped[symbol] = f"the capture needs {condition}" if reason == NO_NEWS else reason
                beyond[symbol] = bounds["max"] + 1 if "max" in bounds else 0
    linked = False
    for symbol, value in suggested_fixes(message):
        if symbol not in by_symbol or symbol in dropped or symbol in narrowed or suggested_bounds(value):
            continue
        if value in by_symbol and value not in dropped and value != symbol:
            by_symbol[value].axes |= by_symbol.pop(symbol).axes
            linked = True
        else:
            dropped[symbol] = f"the capture needs {symbol} = {value}"
    for symbol in specialised(message):
        if symbol in by_symbol:
            dropped.setdefault(symbol, "forward turns it into a constant")
    reasons = [
        (by_symbol.pop(symbol), Fixed(CAPTURED, reason, beyond=beyond.get(symbol, 0)))
        for symbol, reason in dropped.items()
    ]
    return ([*by_symbol.values(), *derived], reasons) if linked or narrowed or reasons else None


def _range(
    by_symbol: Mapping[str, Group], symbol: str, condition: str, tensors: Sequence[torch.Tensor]
) -> dict[str, int]:
    """The sizes for which a condition holds; one that is not understood is taken for one about small sizes."""
    if symbol not in by_symbol:
        return {}
    index, axis = min(by_symbol[symbol].axes)
    present = tensors[index].shape[axis]
    understood = of_size(condition, by_symbol[symbol].axes)
    found = None if understood is None else holding_range(understood, present)
    if found is None:
        return {"min": by_symbol[symbol].sizes[0]}
    smallest, largest = found
    return {"min": smallest} if largest == math.inf else {"min": smallest, "max": int(largest)}
