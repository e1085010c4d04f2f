"""A model whose capture fixes an axis that the model allows to vary, captured at several sizes and put together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from entrepot.exporters.axes.groups import Group
from entrepot.exporters.axes.probe import Prober
from entrepot.exporters.exporter import Source
from entrepot.exporters.paths.expression import Expression
from entrepot.exporters.paths.joining import joined
from entrepot.exporters.paths.merging import merged, same_nodes
from entrepot.exporters.paths.path import Path
from entrepot.exporters.paths.reading import Irregular
from entrepot.exporters.paths.rolling import rolled
from entrepot.exporters.paths.trying import Trials

_MOST_CAPTURES = 9
_MOST_PATHS = 4
_MOST_LOOKED_AT = 60
_FEWEST_UNROLLED = 3
_MOST_UNROLLED = 4
_MOST_CHECKED = 16
_MOST_CHECKED_UNTOLD = 64
"""Points where captures tell of no condition, so that sizes of another kind show by what is computed there only."""


class Unfollowed(Exception):  # noqa: N818 - an answer, not a fault
    """The captures cannot be put together; says why."""


def follow(
    source: Source,
    prober: Prober,
    groups: Sequence[Group],
    lost: Sequence[Group],
    capture: Callable[[Sequence[object]], Path | None],
    tell: Callable[[str], None],
) -> Path:
    """One path that holds for all sizes.

    Args:
        source: The model.
        prober: Knows which sizes it takes.
        groups: All axes that are to vary.
        lost: Those of them that one capture cannot make vary.
        capture: Captures the model at the sizes of some tensors.
        tell: Told each capture.

    Raises:
        Unfollowed: There is none.
    """
    return _Follower(source, prober, groups, lost, capture, tell).run()


class _Follower:
    def __init__(
        self,
        source: Source,
        prober: Prober,
        groups: Sequence[Group],
        lost: Sequence[Group],
        capture: Callable[[Sequence[object]], Path | None],
        tell: Callable[[str], None],
    ) -> None:
        self._groups = groups
        self._lost = [group.symbol for group in lost if group.formula is None]
        if not self._lost:
            raise Unfollowed("what one capture fixes follows from other sizes")
        self._trials = Trials(source, prober, groups, self._lost)
        self._capture = capture
        self._tell = tell
        self._captures: list[Path] = []
        self._families: list[tuple[Path, list[Path]]] = []

    def run(self) -> Path:
        """Capture where nothing is known yet, then where what was put together is wrong."""
        while (point := self._open()) is not None:
            self._add(self._captured(point))
            self._roll()
        while True:
            found, wrong = self._together()
            if not wrong:
                return found
            self._refine(wrong[0])

    def _refine(self, point: tuple[int, ...]) -> None:
        """Capture at a point where what was put together is wrong."""
        sizes = self._trials.sizes(point)
        if any(path.sizes == sizes for path in self._captures):
            raise Unfollowed("a capture computes something else even at its own sizes")
        before = [family for family, _ in self._families]
        path = self._captured(point)
        self._add(path)
        after = [family for family, _ in self._families]
        if len(after) > len(before):  # it takes a path of its own, which no condition told
            telling = [each.text for each in path.conditions if not all(each(other.sizes) for other in before)]
            if not telling:
                raise Unfollowed("nothing tells the paths apart")
            but = Expression(f"not ({' and '.join(f'({text})' for text in telling)})")
            for at, (family, members) in enumerate(self._families[: len(before)]):
                if family.holds(sizes):
                    self._families[at] = replace(family, conditions=[*family.conditions, but]), members

    def _open(self) -> tuple[int, ...] | None:
        """A point that the model takes and no family covers; at each something is captured but once."""
        looked, captured = 0, [path.sizes for path in self._captures]
        for point in self._trials.points:
            sizes = self._trials.sizes(point)
            if looked > _MOST_LOOKED_AT:
                return None
            if sizes in captured or any(family.holds(sizes) for family, _ in self._families):
                continue
            looked += 1
            if self._trials.taken(point):
                return point
        return None

    def _captured(self, point: tuple[int, ...]) -> Path:
        if len(self._captures) >= _MOST_CAPTURES:
            raise Unfollowed("other sizes take ever other paths")
        sizes = self._trials.sizes(point)
        self._tell("capturing at " + ", ".join(f"{symbol} = {sizes[symbol]}" for symbol in self._lost))
        path = self._capture(self._trials.tensors(point))
        if path is None:
            raise Unfollowed(f"the capture fails at {sizes}")
        return replace(path, sizes=sizes)

    def _add(self, path: Path) -> None:
        """Put a capture with those that have the same nodes, or at the beginning of a new family."""
        self._captures.append(path)
        for at, (_, members) in enumerate(self._families):
            if same_nodes([members[0], path]):
                both = [*members, path]
                found = merged(both, self._groups)
                alone = all(path.fixed.issuperset(self._lost) for path in both)  # no further condition tells more
                if found is None and (alone or len(both) > 5):
                    raise Unfollowed("constants are no formula of the sizes")
                self._families[at] = (found or self._families[at][0], both)
                if found is not None:
                    self._loosen(at)
                return
        self._families.append((path, [path]))
        self._loosen(len(self._families) - 1)

    def _roll(self) -> None:
        """Try whether captures that all differ are the same loop, run more or less often."""
        fixed = [path for path, members in self._families if len(members) == 1 and path.fixed]
        if len(fixed) < _FEWEST_UNROLLED:
            return
        try:
            found = rolled(fixed, self._groups)
        except Irregular as reason:
            raise Unfollowed(f"a loop over a size: {reason}") from reason
        if found is not None:
            self._families = [each for each in self._families if each[0] not in fixed]
            self._families.append((found, fixed))
        elif len(fixed) >= _MOST_UNROLLED:
            raise Unfollowed("every size takes a path of its own, and they are not one loop")

    def _loosen(self, at: int) -> None:
        """Drop the conditions that a family turns out not to need.

        Those that it needs fail at the first point, mostly, and all are judged together: to open a graph takes long.
        """
        family, members = self._families[at]
        if family.fixed:
            return
        beyond = [self._beyond(condition, family.conditions) for condition in family.conditions]
        dropped = {number for number, points in enumerate(beyond) if points}
        for part in (slice(1), slice(1, None)):
            asked = list(dict.fromkeys(point for number in dropped for point in beyond[number][part]))
            wrong = self._trials.wrong(family.graph, asked, family.numbers) if asked else []
            dropped = {number for number in dropped if set(wrong).isdisjoint(beyond[number][part])}
        kept = [condition for number, condition in enumerate(family.conditions) if number not in dropped]
        self._families[at] = (replace(family, conditions=kept), members)

    def _beyond(self, condition: Expression, conditions: Sequence[Expression]) -> list[tuple[int, ...]]:
        """Points that break one condition, and as few others as possible."""
        broken = [point for point in self._trials.points if not condition(self._trials.sizes(point))]
        broken.sort(key=lambda point: sum(not each(self._trials.sizes(point)) for each in conditions))
        found: list[tuple[int, ...]] = []
        for point in broken[:20]:
            if self._trials.taken(point):
                found.append(point)
            if len(found) == 3:
                break
        return found

    def _together(self) -> tuple[Path, list[tuple[int, ...]]]:
        """One path, and the points where it is wrong."""
        families = self._needed([family for family, _ in self._families])
        if len(families) > _MOST_PATHS:
            raise Unfollowed("there are too many paths")
        if len({family.numbers for family in families}) > 1:
            raise Unfollowed("a number that is returned depends on a size on some paths only")
        conditions = [self._telling(family) for family in families[:-1]]
        if self._untold and any(family.fixed and self._is_odd(family) for family in families[:-1]):
            raise Unfollowed("a size takes a path of its own, and no condition says which others do")
        graph = joined(families, conditions, self._groups)
        last = families[-1]
        wrong = self._trials.wrong(graph, self._checked(), last.numbers)
        return Path(graph, last.sizes, [], last.weights, last.numbers), wrong

    def _needed(self, families: list[Path]) -> list[Path]:
        """Without those whose sizes others cover."""
        taken = [self._trials.sizes(point) for point in self._trials.points]
        kept: list[Path] = []
        for family in sorted(families, key=lambda each: -sum(map(each.holds, taken))):
            mine = [sizes for sizes in [*taken, family.sizes] if family.holds(sizes)]
            if not all(any(other.holds(sizes) for other in kept) for sizes in mine):
                kept.append(family)
        return kept[::-1]

    def _telling(self, family: Path) -> list[Expression]:
        """The conditions of a family that fail somewhere else."""
        sizes = [self._trials.sizes(point) for point in self._trials.points]
        telling = [each for each in family.conditions if not all(each(size) for size in sizes)]
        if not telling:
            raise Unfollowed("nothing tells the paths apart")
        return telling

    def _is_odd(self, family: Path) -> bool:
        """Whether it is of a size that is no likely exception, as 1 is, and the size that the sample has."""
        present = self._trials.present
        return any(family.sizes[symbol] not in (1, present[symbol]) for symbol in self._lost)

    @property
    def _untold(self) -> bool:
        """Whether each capture is of its own sizes alone, and says nothing of others."""
        return all(path.fixed.issuperset(self._lost) for path in self._captures)

    def _checked(self) -> list[tuple[int, ...]]:
        """Points at which nothing was captured: size 1, small and large ones, other sizes of what one capture varies.

        A path may have fixed these, too: every size of theirs would take a path of its own.
        """
        captured = {tuple(path.sizes.values()) for path in self._captures}
        most = _MOST_CHECKED_UNTOLD if self._untold else _MOST_CHECKED
        fresh = [point for point in self._trials.points[:80] if point not in captured]
        found: list[tuple[int, ...]] = []
        for _, point in sorted(enumerate(fresh), key=lambda each: (min(each[1]) > 1, each[0] % 7)):
            if self._trials.taken(point):
                found.append(point)
            if len(found) == most:
                break
        met = [path.sizes for path in self._captures]
        last = [replace(family, sizes=members[-1].sizes) for family, members in self._families]
        elsewhere = [point for path in last for point in self._trials.elsewhere(path, met)]
        return [*found, *dict.fromkeys(elsewhere), *captured]
