"""Where a sequence repeats itself."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

_LONGEST = 2000


@dataclass(frozen=True)
class Stretch:
    """Part of a sequence: ``count`` times the same ``length`` items, from ``start`` on."""

    start: int
    length: int
    count: int


def stretches(items: Sequence[Hashable]) -> list[Stretch]:
    """The sequence as repeated and single items; of all repetitions that begin somewhere, the one that covers most."""
    numbers: dict[Hashable, int] = {}
    codes = [numbers.setdefault(item, len(numbers)) for item in items]
    found, at = [], 0
    while at < len(codes):
        best = _longest(codes, at)
        found.append(best)
        at += best.length * best.count
    return found


def _longest(codes: Sequence[int], at: int) -> Stretch:
    best = Stretch(at, 1, 1)
    for length in range(1, min(_LONGEST, (len(codes) - at) // 2) + 1):
        if codes[at] != codes[at + length] or codes[at : at + length] != codes[at + length : at + 2 * length]:
            continue
        count = 2
        while codes[at : at + length] == codes[at + count * length : at + (count + 1) * length]:
            count += 1
        if length * count > best.length * best.count:
            best = Stretch(at, length, count)
    return best


def aligned(sequences: Sequence[Sequence[Hashable]]) -> list[list[Stretch]] | None:
    """For each of several sequences its stretches, alike in all but how often they repeat; ``None`` if they differ.

    Stretches that repeat equally often in all are taken apart.
    """
    parsed = [stretches(items) for items in sequences]
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
            mine += [each] if varies else [Stretch(each.start + at, 1, 1) for at in range(size)]
    return result
