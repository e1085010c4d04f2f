"""Which sizes a model accepts, as conditions over the symbols of its axes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from entrepot.exporters.axes.groups import Axis, Group
from entrepot.exporters.axes.probe import Prober


def size_limits(prober: Prober, groups: Sequence[Group]) -> list[str]:
    """The smallest size of each group that the model accepts, and the largest that the capture found."""
    free = [group for group in groups if group.formula is None]
    least = _smallest(prober, free)
    bounds = [(group, _bounds(group, each)) for group, each in zip(free, least, strict=True)]
    return [text for group, ends in bounds for text in (*limits_of(group, *ends), *_steps(group))]


def _smallest(prober: Prober, free: Sequence[Group]) -> list[int]:
    """Of each group; then once more beside the smallest sizes of the others, which it may have to be no less than."""
    ones = [_up_to(group, prober.size(min(group.axes)))[0] for group in free]
    least = [_least(prober, group, free, ones) for group in free]
    if least == ones:
        return least
    return [
        first if first == one else _least(prober, group, free, least)
        for group, first, one in zip(free, least, ones, strict=True)
    ]


def _steps(group: Group) -> Iterator[str]:
    if group.step > 1:
        yield f"{group.symbol} % {group.step} == {group.remainder}"


def _bounds(group: Group, smallest: int) -> tuple[int, int | None]:
    """What the model accepts, within what was asked for."""
    least, most = group.asked
    ends = [end for end in (most, group.bounds.get("max")) if end is not None]
    return max(least, smallest), min(ends, default=None)


def limits_of(group: Group, least: int, most: int | None) -> Iterator[str]:
    """What is to be said of a smallest and a largest size."""
    if least > group.step or group.asked[0] > 0:
        yield f"{group.symbol} >= {least}"
    if most is not None:
        yield f"{group.symbol} <= {most}"


def _least(prober: Prober, group: Group, free: Sequence[Group], small: Sequence[int]) -> int:
    """Found by bisection; size 0 is not tried, as hardly any model is made for it."""
    sizes = _up_to(group, prober.size(min(group.axes)))
    others = [dict.fromkeys(each.axes, size) for each, size in zip(free, small, strict=True) if each is not group]
    taken = len(sizes) - 1
    if taken and _accepts(prober, group, sizes[0], others):
        return sizes[0]
    refused = 0 if taken else -1
    while taken - refused > 1:
        middle = (refused + taken) // 2
        if _accepts(prober, group, sizes[middle], others):
            taken = middle
        else:
            refused = middle
    return sizes[taken]


def _up_to(group: Group, present: int) -> Sequence[int]:
    """The sizes that may be accepted, from the smallest on."""
    if group.beside is not None:
        return [root * root + group.beside for root in range(1, math.isqrt(present) + 1)]
    return range(min(present % group.step or group.step, present), present + 1, group.step)


def _accepts(prober: Prober, group: Group, size: int, others: Sequence[dict[Axis, int]]) -> bool:
    """Whether a size is accepted, perhaps with small numbers, or with another one small: it may have to be no less.

    A mask that has to have a row for each token is as small as there are tokens, which says nothing of masks.
    """
    sizes = dict.fromkeys(group.axes, size)
    if prober.takes(sizes) is None or prober.takes_with_small_numbers(sizes):
        return True
    beside = [{**other, **sizes} for other in others]
    return any(prober.takes(each) is None for each in beside) or any(map(prober.takes_with_small_numbers, beside))
