"""Lists of dicts and other rows that a loop gives some: a list for each tensor or number that a row holds."""

from __future__ import annotations

import copy
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from entrepot.exporters.torch.rewriting.lists import Piled, Tracked, Trailing
from entrepot.exporters.torch.rewriting.sequences import Unfinished
from entrepot.exporters.torch.rewriting.trees import Fork, Place, Rest, UnlikeError, gather, paired, places, spread
from entrepot.exporters.torch.rewriting.uneven import Filled, Lengthened


class Apart(Filled, Unfinished):
    """A list of rows, each of which looks like the others.

    Args:
        row: What a row looks like, as a tree.
        lists: What they hold at each place of it.
    """

    def __init__(self, row: Fork, *lists: Any) -> None:
        self.row, self.lists = row, list(lists)

    @classmethod
    def of(cls, row: Fork, items: Iterable[Any], empty: Callable[[], Any] = list) -> Apart:
        """With the rows of a list, or of what else starts empty."""
        made = cls(row, *(empty() for _ in places(row)))
        made.extend(items)
        return made

    @property
    def length(self) -> Any:
        """How many rows there are."""
        items = self.lists[0]
        if isinstance(items, Tracked):
            items.look()
        if isinstance(items, Trailing | Piled | Lengthened):
            return items.count
        return items.length if isinstance(items, Unfinished) else len(items)

    def parts(self) -> Sequence[Any]:
        """These lists."""
        return self.lists

    def joined(self, parts: Sequence[Any]) -> Apart:
        """The same with other lists."""
        return Apart(self.row, *parts)

    def at(self, index: Any) -> Any:
        """A row."""
        return gather(self.row, [each[index] for each in self.lists])

    def append(self, item: Any) -> None:
        """Put a row at the end."""
        leaves: list[Any] = []
        try:
            pairs = list(paired(self.row, spread(item, leaves)))
        except UnlikeError as error:
            raise TypeError("a list that grows in a loop holds rows of different kinds") from error
        for one, other in pairs:
            self.lists[one.index].append(leaves[other.index])

    def extend(self, items: Any) -> None:
        """Put several there."""
        if isinstance(items, Apart):
            for one, other in zip(self.lists, items.lists, strict=True):
                one.extend(other)
        else:
            super().extend(items)


class _Cell:
    """A place of a row."""

    def __init__(self, at: int) -> None:
        self.at = at


def picked(rows: Any, function: Callable[[Any], Any]) -> Any:
    """``[row[key] for row in rows]`` of rows that are kept apart: one of their lists; ``None`` for anything else."""
    if not isinstance(rows, Apart):
        return None
    cell = function(gather(rows.row, [_Cell(at) for at in range(len(rows.lists))]))
    found = rows.lists[cell.at] if isinstance(cell, _Cell) else None
    if isinstance(found, deque):
        return list(found)
    return found.joined(found.parts()) if isinstance(found, Lengthened | Piled) else copy.copy(found)


def pattern(row: Any) -> Fork | None:
    """What rows look like, if they can be kept apart, given the tree of one."""
    if not isinstance(row, Fork) or not _is_plain(row):
        return None
    indices = {place.index: at for at, place in enumerate(places(row))}
    return _renumbered(row, indices) if indices else None


def _is_plain(tree: Any) -> bool:
    """Whether it consists of dicts, tuples, dataclasses and the like."""
    if isinstance(tree, Fork):
        return not isinstance(tree.model, list | Unfinished) and all(map(_is_plain, tree.parts))
    return isinstance(tree, Place) or (isinstance(tree, Rest) and isinstance(tree.value, str | None))


def _renumbered(tree: Any, indices: dict[int, int]) -> Any:
    match tree:
        case Place(index):
            return Place(indices[index])
        case Fork(model, keys, parts):
            return Fork(model, keys, tuple(_renumbered(part, indices) for part in parts))
    return tree
