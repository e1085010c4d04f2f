"""Where a sequence repeats itself."""

from __future__ import annotations

import bisect
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

_LONGEST = 2000


@dataclass(frozen=True)
class Stretch:
    """Part of a sequence: ``count`` times the same ``length`` items, from ``start`` on."""

    start: int
    length: int
    count: int


Preference: TypeAlias = Callable[[Stretch], tuple[int, ...]]
"""Which of the repetitions that begin somewhere is taken: the one for which this is largest."""


def _coverage(stretch: Stretch) -> tuple[int, ...]:
    return (stretch.length * stretch.count, stretch.count)


def _count(stretch: Stretch) -> tuple[int, ...]:
    """Several loops of equal bodies, one after the other, are no loop of loops."""
    return (stretch.count, stretch.length)


def stretches(items: Sequence[Hashable], preference: Preference = _coverage) -> list[Stretch]:
    """The sequence as repeated and single items."""
    numbers: dict[Hashable, int] = {}
    codes = [numbers.setdefault(item, len(numbers)) for item in items]
    places: list[list[int]] = [[] for _ in numbers]
    for at, code in enumerate(codes):
        places[code].append(at)
    found, at = [], 0
    while at < len(codes):
        best = _longest(codes, at, places[codes[at]], preference)
        found.append(best)
        at += best.length * best.count
    return found


def _longest(codes: Sequence[int], at: int, alike: Sequence[int], preference: Preference) -> Stretch:
    """The repetition that begins at a place; ``alike`` has the places of the same item."""
    best = Stretch(at, 1, 1)
    last = at + min(_LONGEST, (len(codes) - at) // 2)
    for second in alike[bisect.bisect_right(alike, at) : bisect.bisect_right(alike, last)]:
        length = second - at
        if codes[at:second] != codes[second : second + length]:
            continue
        count = 2
        while codes[at : at + length] == codes[at + count * length : at + (count + 1) * length]:
            count += 1
        best = max(best, Stretch(at, length, count), key=preference)
    return best


def aligned(sequences: Sequence[Sequence[Hashable]]) -> list[list[Stretch]] | None:
    """For each of several sequences its stretches, alike in all but how often they repeat; ``None`` if they differ.

    Stretches that repeat equally often in all are taken apart.
    """
    return _aligned(sequences, _coverage) or _aligned(sequences, _count)


def _aligned(sequences: Sequence[Sequence[Hashable]], preference: Preference) -> list[list[Stretch]] | None:
    parsed = [stretches(items, preference) for items in sequences]
    if len({len(each) for each in parsed}) != 1:
        return None
    result: list[list[Stretch]] = [[] for _ in sequences]
    for together in zip(*parsed, strict=True):
        blocks = {
            tuple(items[each.start : each.start + each.length]) for items, each in zip(sequences, together, strict=True)
        }
        if len(blocks) != 1:
            return None
        varies = len({each.count for each in together}) > 1
        for mine, each in zip(result, together, strict=True):
            size = each.length * each.count
            mine.extend([each] if varies else [Stretch(each.start + at, 1, 1) for at in range(size)])
    return result
