"""Which sizes a model accepts, as conditions over the symbols of its axes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from entrepot.exporters.axes.groups import Group
from entrepot.exporters.axes.probe import Prober


def size_limits(prober: Prober, groups: Sequence[Group]) -> list[str]:
    """The smallest size of each group that the model accepts, and the largest that the capture found."""
    free = [group for group in groups if group.formula is None]
    return [text for group in free for text in (*limits_of(group, *_bounds(prober, group, free)), *_steps(group))]


def _steps(group: Group) -> Iterator[str]:
    if group.step > 1:
        yield f"{group.symbol} % {group.step} == {group.remainder}"


def _bounds(prober: Prober, group: Group, free: Sequence[Group]) -> tuple[int, int | None]:
    """What the model accepts, within what was asked for."""
    least, most = group.asked
    ends = [end for end in (most, group.bounds.get("max")) if end is not None]
    return max(least, _least(prober, group, free)), min(ends, default=None)


def limits_of(group: Group, least: int, most: int | None) -> Iterator[str]:
    """What is to be said of a smallest and a largest size."""
    if least > group.step or group.asked[0] > 0:
        yield f"{group.symbol} >= {least}"
    if most is not None:
        yield f"{group.symbol} <= {most}"


def _least(prober: Prober, group: Group, free: Sequence[Group]) -> int:
    """Found by bisection; size 0 is not tried, as hardly any model is made for it."""
    taken, step = prober.size(min(group.axes)), group.step
    first = taken % step or step
    if taken > first and _accepts(prober, group, first, free):
        return first
    refused = first - step if taken == first else first
    while taken - refused > step:
        middle = refused + (taken - refused) // (2 * step) * step
        if _accepts(prober, group, middle, free):
            taken = middle
        else:
            refused = middle
    return taken


def _accepts(prober: Prober, group: Group, size: int, free: Sequence[Group]) -> bool:
    """Whether a size is accepted, perhaps with small numbers, or with another one small: it may have to be no less.

    A mask that has to have a row for each token is as small as there are tokens, which says nothing of masks.
    """
    sizes = dict.fromkeys(group.axes, size)
    if prober.takes(sizes) is None or prober.takes_with_small_numbers(sizes):
        return True
    small = ({axis: min(each.remainder or each.step, prober.size(axis)) for axis in each.axes} for each in free)
    return any(prober.takes({**other, **sizes}) is None for other in small if other.keys() != group.axes)
