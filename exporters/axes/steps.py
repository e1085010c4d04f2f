"""Relations between axes of a model that says nothing of itself: found by changing two sizes in step.

Where ``a`` may grow by 2 if ``b`` grows by 4, ``b`` has a term ``2*a``; all such terms of ``b``, and what is left of
its size, are a formula. Steps in proportion to two other sizes make a product, and a size that takes a step only at
every fourth one of ``a`` is ``a // 4``.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from entrepot.exporters.axes.groups import Axis, axis_word
from entrepot.exporters.axes.relations import Relation
from entrepot.ir.typing.formula import Formula

if TYPE_CHECKING:
    from entrepot.exporters.axes.probe import Prober

_MOST_TRIALS = 200
_Unit = tuple[Axis, ...]


def stepped_relations(prober: Prober, axes: Sequence[Axis]) -> list[Relation]:
    """The relations between axes that cannot vary by themselves, or only to some sizes.

    Args:
        prober: Tries sizes; relations that it knows already are followed.
        axes: What may be related.
    """
    terms: dict[_Unit, dict[_Unit, int]] = {}
    trials = itertools.count()
    for small, large in itertools.permutations(_units(prober, axes), 2):
        if not set(small) & set(large) and (prober.size(small[0]), small) < (prober.size(large[0]), large):
            factor = _factor(prober, small, large, trials)
            if factor:
                terms.setdefault(large, {})[small] = factor
    found: list[Relation] = []
    for large in sorted(terms, key=lambda unit: prober.size(unit[0]), reverse=True):
        relation = _relation(prober, large, terms[large])
        if relation is not None and not _is_part_of(relation, found):
            found.append(relation)
    return found


def multiple_relations(prober: Prober, axes: Sequence[Axis]) -> list[Relation]:
    """Those relations that are mere multiples, or products where the factor is a size itself, found in a few runs.

    Args:
        prober: Tries sizes.
        axes: What may be related.
    """
    found: list[Relation] = []
    for small, large in itertools.permutations(_units(prober, axes), 2):
        size, factor = prober.size(small[0]), prober.size(large[0]) // max(prober.size(small[0]), 1)
        fits = size > 1 and factor > 1 and prober.size(large[0]) == size * factor and not set(small) & set(large)
        if fits and _are_multiples(prober, small, large, factor):
            other = _of_size(prober, small, large, factor)
            relation = _made(large, f"{axis_word(other[0]) if other else factor}*{axis_word(small[0])}")
            found += [] if relation is None or _is_part_of(relation, found) else [relation]
    return found


def beyond_relations(prober: Prober, stuck: Sequence[Axis], growing: Sequence[Axis]) -> list[Relation]:
    """Axes that others may grow only along with, by as much: what is read beyond the end of a length.

    Args:
        prober: Tries sizes.
        stuck: Axes that do not vary by themselves.
        growing: Those that may be larger than they are, but not smaller: the rest of them may not be read.
    """
    found: list[Relation] = []
    for large, small in itertools.product(_units(prober, growing), _units(prober, stuck)):
        size, rest = prober.size(small[0]), prober.size(large[0]) - prober.size(small[0])
        larger = [fresh for fresh in prober.fresh_sizes(size) if fresh > size]
        tried = (dict.fromkeys(small, fresh) | dict.fromkeys(large, fresh + rest) for fresh in larger)
        if rest > 0 and len(larger) == 2 and all(prober.takes(sizes) is None for sizes in tried):
            relation = _made(large, f"{axis_word(small[0])} + {rest}")
            found += [] if relation is None or _is_part_of(relation, found) else [relation]
    return found


def _of_size(prober: Prober, small: _Unit, large: _Unit, factor: int) -> _Unit | None:
    """What is the factor itself: a grid of 3 by 4 has 4 * 3 tokens, and one of 3 by 5 has 15."""
    units = (unit for unit in _units(prober, prober.candidates()) if not set(unit) & {*small, *large})
    size = prober.size(small[0])
    same = (unit for unit in units if prober.size(unit[0]) == factor and _are_multiples(prober, unit, large, size))
    return next(same, None)


def _are_multiples(prober: Prober, small: _Unit, large: _Unit, factor: int) -> bool:
    """Whether the larger axes may be so many times as large as the smaller ones at two other sizes, and only so."""
    fresh = prober.fresh_sizes(prober.size(small[0]))
    tried = (dict.fromkeys(small, each) | dict.fromkeys(large, factor * each) for each in fresh[:2])
    return all(prober.takes(sizes) is None and not _is_taken_apart(prober, sizes, small, large) for sizes in tried)


def _is_part_of(relation: Relation, others: Sequence[Relation]) -> bool:
    """Whether others hold what it says: of two sizes that add up to a third, one shrinks as the other grows."""
    taken = frozenset[Axis]().union(*(other.axes.union(other.drivers) for other in others))
    return not taken.isdisjoint(relation.axes)


def _units(prober: Prober, axes: Sequence[Axis]) -> list[_Unit]:
    """Axes that may belong together: those of one size, and those at one place in tensors of one shape."""
    of_size: dict[int, list[Axis]] = {}
    at_place: dict[tuple[int, tuple[int, ...]], list[Axis]] = {}
    for index, axis in axes:
        shape = tuple(prober.base[index].shape)
        of_size.setdefault(shape[axis], []).append((index, axis))
        at_place.setdefault((axis, shape), []).append((index, axis))
    return list(dict.fromkeys(tuple(members) for members in (*of_size.values(), *at_place.values())))


def _factor(prober: Prober, small: _Unit, large: _Unit, trials: Iterator[int]) -> int:
    """By how much the larger axes grow for each step of the smaller ones; 0 if they do not go together."""
    size, other = prober.size(small[0]), prober.size(large[0])
    for factor in dict.fromkeys((1, other // max(size, 1), -(-other // max(size, 1)), -1)):
        accepted = 0
        for fresh in dict.fromkeys((*prober.fresh_sizes(size), 2 * size, 3 * size)):  # multiples, if nothing else
            sizes = dict.fromkeys(small, fresh) | dict.fromkeys(large, other + factor * (fresh - size))
            if min(sizes.values()) < 1 or next(trials) > _MOST_TRIALS:
                continue
            accepted += prober.takes(sizes) is None and not _is_taken_apart(prober, sizes, small, large)
            if accepted == 2:
                return factor
    return 0


def _is_taken_apart(prober: Prober, sizes: Mapping[Axis, int], small: _Unit, large: _Unit) -> bool:
    """Whether either may have its size without the other: steps that both can take show nothing."""
    return all(prober.takes({axis: sizes[axis] for axis in unit}) is None for unit in (small, large))


def _relation(prober: Prober, large: _Unit, terms: Mapping[_Unit, int]) -> Relation | None:
    words = {axis_word(unit[0]): (prober.size(unit[0]), factor) for unit, factor in terms.items()}
    if len(terms) == 1:
        ((small, factor),) = terms.items()
        if factor > 1 and (rounded := _rounded(prober, small, large, factor)):
            return rounded
    if len(words) == 2:
        (one, (a, by_a)), (other, (b, by_b)) = words.items()
        if (by_a, by_b) == (b, a) and prober.size(large[0]) == a * b and (a, b) != (1, 1):
            return _made(large, f"{one}*{other}")
    rest = prober.size(large[0]) - sum(size * factor for size, factor in words.values())
    return _made(large, " + ".join([*(f"{factor}*{word}" for word, (_, factor) in words.items()), f"({rest})"]))


def _rounded(prober: Prober, small: _Unit, large: _Unit, step: int) -> Relation | None:
    """The smaller size as the larger one divided, where the larger one may grow a little by itself."""
    size = prober.size(large[0])
    alone = [by for by in range(1 - step, step) if by == 0 or prober.takes(dict.fromkeys(large, size + by)) is None]
    if len(alone) != step:
        return None
    offset = -(size + max(alone) + 1) % step
    rest = prober.size(small[0]) - (size + offset) // step
    return _made(small, f"({axis_word(large[0])} + {offset})//{step} + ({rest})")


def _made(axes: _Unit, text: str) -> Relation | None:
    formula = Formula.of(text)
    return None if formula is None or not formula.names else Relation(frozenset(axes), formula)
