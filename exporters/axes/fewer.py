"""Captures in which as many axes vary as their operators allow: some have to know a size when the graph is written."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import replace

from entrepot.exporters.arrays import Array
from entrepot.exporters.axes.groups import Axis, Group, settled
from entrepot.exporters.exporter import Captured
from entrepot.exporters.notes import CAPTURED, Fixed
from entrepot.ir.errors import ConversionError, EntrepotError, UnsupportedOpError
from entrepot.ir.nesting import check_nesting

_FAILURES = (ConversionError, UnsupportedOpError)


def widest(capture: Callable[[list[Group]], Captured], groups: list[Group], tensors: Sequence[Array]) -> Captured:
    """What ``capture`` makes of all groups, or of as many as it can.

    Args:
        capture: Raises where it cannot make a graph in which these vary.
        groups: Those that should.
        tensors: The sample.

    Raises:
        ConversionError: There is no such graph whatever varies; the error is that of all groups.
        UnsupportedOpError: The same.
    """
    capture = functools.partial(_readable, capture)
    try:
        return capture(groups)
    except _FAILURES as error:
        found = _with_required(capture, groups, tensors, error)
    kept, fixed = _required(groups, tensors), dict[Axis, Fixed]()
    for group in groups:
        if group in kept or group.formula is not None:
            continue
        try:
            found = capture(_with(group, kept, groups, tensors))
            kept = found.groups
        except _FAILURES as error:
            fixed |= dict.fromkeys(group.axes, Fixed(CAPTURED, error.message))
    return replace(found, fixed={**found.fixed, **fixed})


def _readable(capture: Callable[[list[Group]], Captured], groups: list[Group]) -> Captured:
    """A capture that a file can hold: where a size varies, recursion over it may be written out for every size."""
    found = capture(groups)
    check_nesting(found.graph)
    return found


def _with_required(
    capture: Callable[[list[Group]], Captured], groups: list[Group], tensors: Sequence[Array], error: EntrepotError
) -> Captured:
    """What is made where nothing varies that need not; the first error tells more than one of fewer axes."""
    required = _required(groups, tensors)
    if len(required) == len(groups):
        raise error
    try:
        return capture(required)
    except _FAILURES:
        raise error from None


def _required(groups: Sequence[Group], tensors: Sequence[Array]) -> list[Group]:
    return settled([group for group in groups if group.required], tensors)


def _with(group: Group, kept: Sequence[Group], groups: Sequence[Group], tensors: Sequence[Array]) -> list[Group]:
    """One more, and what follows from it alone or from it and those that are kept."""
    free = [*kept, group]
    return settled([each for each in groups if each in free or each.formula is not None], tensors)
