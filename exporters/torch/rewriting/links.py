"""What a loop's body does to the structure of variables: which leaf becomes which, and which lists grow."""

from __future__ import annotations

import functools
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from entrepot.exporters.torch.rewriting.apart import Apart, pattern
from entrepot.exporters.torch.rewriting.environment import is_private
from entrepot.exporters.torch.rewriting.lists import (
    Columns,
    Grown,
    Leading,
    Piled,
    Stacked,
    Tracked,
    Trailing,
)
from entrepot.exporters.torch.rewriting.queues import Queue, Queued, QueuedPieces
from entrepot.exporters.torch.rewriting.results import type_of
from entrepot.exporters.torch.rewriting.sequences import Elements
from entrepot.exporters.torch.rewriting.shapes import as_tensor
from entrepot.exporters.torch.rewriting.trees import NUMBERS, UNDEFINED, Fork, Place, Rest, UnlikeError, kind
from entrepot.exporters.torch.rewriting.uneven import Lengthened, Like
from entrepot.exporters.torch.upstream import numpy_in_torch


class ListError(UnlikeError):
    """A list that grows in a loop has to be kept in another form.

    Attributes:
        list: The list, as it is outside.
        form: Makes the same in the other form; to be called outside of the loop.
    """

    def __init__(self, message: str, found: Any, form: Callable[[], Any]) -> None:
        super().__init__(message)
        self.list, self.form = found, form


class NothingYetError(UnlikeError):
    """A list that grows in a loop is asked for an item before one has been put into it that says what items are."""


def _read(found: Any, *, front: bool) -> ListError:
    """A list is looked at in the loop: the item that it was given last and its length are kept beside it."""
    items = list(list.__iter__(found))
    kind = Leading if front else Trailing
    form = functools.partial(kind, items, items[kind.place] if items else UNDEFINED, len(items))
    return ListError("a list that grows in the loop is looked at in it", found, form)


def not_yet(found: Tracked) -> ListError:
    """An item is asked for that the list will hold once the loop has turned: ``x[t] if t < n else made[-1]``."""
    return _read(_outermost(found), front=False)


def piled(found: Trailing) -> Exception:
    """All items of a list that grows in a loop are put together in it: they are kept as one tensor."""
    items = found.outside.items
    if isinstance(found, Leading):
        return UnlikeError("a list that grows at its front in a loop is looked at elsewhere than there")
    held, numbers = (found.last, *items), isinstance(found.last, NUMBERS)
    if not all(isinstance(item, NUMBERS if numbers else torch.Tensor) for item in held):
        return NothingYetError("a list that grows in a loop is put together in it before it holds a tensor")
    like = torch.empty((), dtype=type_of(found.last)) if numbers else found.last
    form = functools.partial(Piled.of, items, like, numbers=numbers)
    return ListError("a list that grows in the loop is put together in it", found.outside, form)


def whole(items: Any) -> Any:
    """A list that grows in a loop, and an array, as one that can be gone through in it; anything else as it is."""
    if isinstance(items, Trailing):
        raise piled(items)
    if isinstance(items, Lengthened):
        return items.sections()
    if isinstance(items, numpy_in_torch.ndarray) and items.ndim and not isinstance(items.shape[0], int):
        return Elements(items.tensor)
    return items.grown() if isinstance(items, Piled) else items


def _outermost(found: Any) -> Any:
    """The list outside of all blocks that this one is a copy of."""
    while isinstance(found, Tracked | Queue) and found.origin is not None:
        found = found.origin
    return found


def uneven(found: Any, like: torch.Tensor | Like, axes: Sequence[int]) -> UnlikeError:
    """A list is given items whose sizes differ from one time to the next: they are put together at once.

    Args:
        found: The list, as it is outside.
        like: An item.
        axes: Those whose sizes differ.
    """
    message, origin = "what a list is given changes its size from one time to the next", _outermost(found)
    items = list(list.__iter__(origin)) if isinstance(origin, list) else None
    if items is None or not all(isinstance(item, torch.Tensor) for item in items):
        return UnlikeError(message)
    axes = axes if origin is found else _differing(like, axes)
    return ListError(message, origin, functools.partial(Lengthened.of, items, like, axes))


def _differing(like: torch.Tensor | Like, axes: Sequence[int]) -> Sequence[int]:
    """Axes whose sizes differ from one time to the next in an inner loop, and those in loops around it."""
    return [*axes, *(at for at, size in enumerate(like.shape) if at not in axes and is_private(size))]


def by_turns(found: Any, like: torch.Tensor) -> UnlikeError:
    """A list is given more tensors or numbers one time than another: they are kept in one tensor.

    Args:
        found: The list, as it is outside.
        like: An item.
    """
    message, origin = "a list is given more items one time than another", _outermost(found)
    if not isinstance(origin, list):
        return UnlikeError(message)
    return ListError(message, origin, lambda: Piled.of([*list.__iter__(origin)], like))


def rows_by_turns(found: Any, like: Sequence[torch.Tensor], numbers: Sequence[bool], kind: type) -> UnlikeError:
    """A list is given more lists or tuples one time than another: each of their places is kept in one tensor.

    Args:
        found: The list, as it is outside.
        like: What such a row is made of.
        numbers: Which places hold Python's numbers.
        kind: What rows are.
    """
    message, origin = "a list is given more rows one time than another", _outermost(found)
    if not isinstance(origin, list):
        return UnlikeError(message)
    return ListError(message, origin, lambda: Columns.of([*list.__iter__(origin)], like, numbers, kind))


def kept_apart(found: Any, row: Any) -> UnlikeError:
    """A list is given dicts or other rows that hold several things: it becomes a list for each of these.

    Args:
        found: The list, as it is outside.
        row: One of the rows, as a tree.
    """
    looks, origin = pattern(row), _outermost(found)
    if looks is None or not isinstance(origin, list):
        return UnlikeError("a list is given something else than tensors and numbers, or rows of these")
    form = functools.partial(Apart.of, looks, [*list.__iter__(origin)])
    return ListError("a list is given rows that hold several things", origin, form)


def queued(found: Any, item: Any, leaf: Any) -> UnlikeError:
    """A queue is given an item: what it holds is kept in one tensor.

    Args:
        found: The queue, as it is outside.
        item: What it is given, as a tree.
        leaf: The same where it is a tensor or number.
    """
    origin = _outermost(found)
    if isinstance(item, Fork) and (looks := pattern(item)) is not None:
        form: Any = functools.partial(Apart.of, looks, [*origin], functools.partial(deque, maxlen=origin.maxlen))
        return ListError("a queue is given rows that hold several things", origin, form)
    like = leaf if isinstance(leaf, torch.Tensor) else torch.empty((), dtype=type_of(leaf))
    changing = [axis for axis, size in enumerate(like.shape) if is_private(size)]
    if not isinstance(item, Place) or len(changing) > 1:
        return UnlikeError("a queue is given something else than numbers and tensors that differ along one axis")
    if changing:
        form = functools.partial(QueuedPieces.of_queue, [*origin], origin.maxlen, like, changing)
    else:
        numbers = not isinstance(leaf, torch.Tensor)
        form = functools.partial(Queued.of_queue, [*origin], origin.maxlen, like, numbers=numbers)
    return ListError("a queue is filled in the loop", origin, form)


def lopsided(found: Any, like: torch.Tensor, *, uneven: bool, numbers: bool = False) -> UnlikeError:
    """A list is given an item in one arm of a branch alone: its items are kept in one tensor.

    Args:
        found: The list, as it is outside.
        like: The item.
        uneven: Whether items are of other sizes along their first axis.
        numbers: Whether they are Python's numbers.
    """

    def form(items: Any) -> Any:
        items = list(list.__iter__(items))
        return Lengthened.of(items, like, [0]) if uneven else Piled.of(items, like, numbers=numbers)

    origin = _outermost(found)
    if not isinstance(origin, list):
        return UnlikeError("one arm gives an item to a list, and the other does not")
    return ListError("one arm gives an item to a list, and the other does not", origin, functools.partial(form, origin))


def lopsided_after_loop(found: Grown, like: torch.Tensor, axes: Sequence[int]) -> ListError:
    """As ``lopsided``, for a list that a loop has made items of.

    Args:
        found: The list, as it is outside.
        like: The item.
        axes: Those along which its size is another than that of the others; one at most.
    """

    def form() -> Any:
        if not axes:
            return Piled.of([], like) + found
        made = Lengthened.of([], like, axes)
        for item in found.items:
            made.stack(item.tensor) if isinstance(item, Stacked) else made.append(item)
        return made

    return ListError("one arm gives an item to a list that a loop has made, and the other does not", found, form)


class Links:
    """Which leaf after a run is which before, and which are new items of lists.

    Attributes:
        kept: Leaves before and after.
        rows: Leaves that lists have been given.
        lists: Which list, as it is outside, each of these was given to.
    """

    def __init__(self, before: Any, after: Any, leaves: Sequence[Any], copies: Mapping[int, Any]) -> None:
        self._leaves, self._copies = leaves, copies
        self.kept: list[tuple[int, int]] = []
        self.rows: list[int] = []
        self.lists: dict[int, Any] = {}
        self._grown: dict[int, tuple[int, int]] = {}
        self._numbers: dict[int, list[bool]] = {}
        self._tables = set[int]()
        self._tuples: dict[int, Fork] = {}
        self._rows_of: dict[int, Fork] = {}
        self._several = set[int]()
        """Those of the rows that hold several items each, which a loop in the body has made."""
        self._link(before.parts[0], after.parts[1])

    def _link(self, before: Any, after: Any) -> None:
        match before, after:
            case Place(one), Place(other):
                self.kept.append((one, other))
            case Fork(list()), Fork(Columns()):
                self._table(before, after)
            case Fork(list()), Fork(Lengthened() as pieces):
                raise uneven(before.model, like := pieces.piece(), _differing(like, pieces.axes))
            case Fork(deque()), Fork(deque()) if len(after.parts) != len(before.parts):
                item = (after.parts or before.parts)[-1]
                if after.parts and len(after.parts) == before.model.maxlen:
                    raise UnlikeError("a queue is full after the first time")
                raise queued(before.model, item, self._leaves[item.index] if isinstance(item, Place) else None)
            case Fork(model), Fork() if isinstance(model, list | Grown) and len(after.parts) > len(before.parts):
                self._list(before, after)
            case Fork(), Fork() if _alike(before, after):
                for one, other in zip(before.parts, after.parts, strict=True):
                    self._link(one, other)
            case Rest(value), Rest(other) if value is other or value == other:
                return
            case _:
                raise UnlikeError("the body changes the structure of a variable")

    def _list(self, before: Fork, after: Fork) -> None:
        outside = self._copies.get(id(after.model), (None, before.model))[1]
        front = getattr(after.model, "front", 0)
        if getattr(after.model, "read", type(after.model) is list):  # a new list: how much of the old one is in it?
            raise _read(outside, front=front > 0)
        old = len(before.parts)
        new = len(after.parts) - old
        if front not in (0, new):
            raise UnlikeError("a list grows at both ends")
        self._grown[id(after)] = front, new
        for one, other in zip(before.parts, after.parts[front : front + old], strict=True):
            self._link(one, other)
        added = after.parts[:front] or after.parts[old:]
        if not front and all(map(is_row, after.parts)) and len({len(row.parts) for row in added}) == 1:
            kinds = [[not isinstance(self._leaves[part.index], torch.Tensor) for part in row.parts] for row in added]
            self._numbers[id(after)] = [all(column) for column in zip(*kinds, strict=True)]
            self._tuples |= {part.index: row for row in added for part in row.parts if pattern(row) is not None}
            added = tuple(part for row in added for part in row.parts)
        for part in added:
            row = _stacked(part)
            if not isinstance(row, Place):
                raise kept_apart(outside, part)
            if isinstance(part, Fork) and isinstance(part.model, Stacked):
                self._several.add(row.index)
            self.rows.append(row.index)
            self.lists[row.index] = outside

    def _table(self, before: Fork, after: Fork) -> None:
        """A list that a loop in the body gives rows."""
        columns = [part.index for part in after.parts]
        self._tables.add(id(after))
        self.rows += columns
        self._several.update(columns)
        self.lists.update(dict.fromkeys(columns, before.model))
        self._rows_of.update(dict.fromkeys(columns, after))
        if before.parts:  # they become columns first
            raise self.varying(columns[0])

    def varying(self, row: int) -> UnlikeError:
        """What to do about a row that holds more items one time than another."""
        found, after = self.lists[row], self._rows_of.get(row)
        if after is None:
            return by_turns(found, self._item(row))
        like = [self._item(part.index) for part in after.parts]
        return rows_by_turns(found, like, after.model.numbers, after.model.kind)

    def changing(self, row: int, axes: Sequence[int]) -> UnlikeError:
        """What to do about a row with items whose sizes along some axes differ from one time to the next."""
        if row in self._tuples:
            return kept_apart(self.lists[row], self._tuples[row])
        return uneven(self.lists[row], self._leaves[row], axes)

    def _item(self, row: int) -> torch.Tensor:
        """Something like one of the items; these themselves are not to be had outside of the loop."""
        leaf = self._leaves[row]
        return torch.empty(leaf.shape[1:], dtype=leaf.dtype)

    def is_several(self, row: int) -> bool:
        """Whether a row holds as many items as a loop in the body has made."""
        return row in self._several

    def finished(self, tree: Any, leaves: list[Any]) -> Any:
        """The structure after the loop: what lists were given is stacked."""
        if not isinstance(tree, Fork):
            return tree
        parts = [self.finished(part, leaves) for part in tree.parts]
        if isinstance(tree.model, Trailing):
            (grown,) = [part for part in parts if isinstance(part, Fork)]
            old = [Rest(item) for item in tree.model.items]
            parts = [*grown.parts, *old] if isinstance(tree.model, Leading) else [*old, *grown.parts]
            return Fork(Grown(), (), tuple(parts))
        if id(tree) in self._tables:
            columns = [leaves[part.index].flatten(0, 1) for part in tree.parts]
            return self._put(columns, leaves, tree.model.joined(columns))
        if id(tree) not in self._grown:
            return Fork(tree.model, tree.keys, tuple(parts))
        if id(tree) in self._numbers:
            return self._columns(parts, leaves, self._numbers[id(tree)], self._grown[id(tree)][1])
        front, new = self._grown[id(tree)]
        places = [_stacked(part).index for part in (parts[:front] or parts[-new:])]
        rows = [leaves[place] for place in places]
        if front:
            rows = [row.flip(0) for row in rows]
        if self._several.isdisjoint(places):
            stack = rows[0] if new == 1 else torch.stack(rows, 1).flatten(0, 1)
        else:
            each = [row if at in self._several else row.unsqueeze(1) for at, row in zip(places, rows, strict=True)]
            stack = torch.cat(each, 1).flatten(0, 1)
        leaves.append(stack)
        grown = Fork(Stacked(stack), (), (Place(len(leaves) - 1),))
        return Fork(Grown(), (), (grown, *parts[front:]) if front else (*parts[:-new], grown))

    def _columns(self, rows: Sequence[Fork], leaves: list[Any], numbers: Sequence[bool], new: int) -> Fork:
        """A list of lists: those from before the loop, and what it has made of the new ones of a turn."""
        before, several = rows[:-new], rows[-new:]
        made = several[0]
        if any(len(row.parts) != len(made.parts) for row in before):
            raise UnlikeError("a list is given lists of different lengths")
        columns = []
        for at in range(len(made.parts)):
            first = [as_tensor(leaves[row.parts[at].index]).unsqueeze(0) for row in before]
            turns = [leaves[row.parts[at].index] for row in several]
            column = turns[0] if new == 1 else torch.stack(turns, 1).flatten(0, 1)
            columns.append(torch.cat([*first, column]) if first else column)
        kind = tuple if isinstance(made.model, tuple) else list
        return self._put(columns, leaves, Columns(*columns, numbers=numbers, kind=kind))

    @staticmethod
    def _put(columns: Sequence[torch.Tensor], leaves: list[Any], model: Columns) -> Fork:
        places = tuple(Place(len(leaves) + at) for at in range(len(columns)))
        leaves += columns
        return Fork(model, (), places)


def _alike(before: Fork, after: Fork) -> bool:
    """Whether two containers are of one kind; lists may have been copied."""
    kinds = {kind(each.model) for each in (before, after)}
    return len(kinds) == 1 and before.keys == after.keys and len(before.parts) == len(after.parts)


def _stacked(item: Any) -> Any:
    """Where the tensor goes that a loop has made of items; anything else as it is."""
    if isinstance(item, Fork) and isinstance(item.model, Grown) and len(item.parts) == 1:
        inner = item.parts[0]  # a list of its own
        return _stacked(inner) if isinstance(inner, Fork) and isinstance(inner.model, Stacked) else item
    if isinstance(item, Fork) and isinstance(item.model, Stacked):
        return item.parts[0]
    return item


def is_row(item: Any) -> bool:
    """Whether an item is a list or a tuple of tensors and numbers."""
    is_row = isinstance(item, Fork) and (isinstance(item.model, list) or type(item.model) is tuple)
    return is_row and bool(item.parts) and all(isinstance(part, Place) for part in item.parts)
