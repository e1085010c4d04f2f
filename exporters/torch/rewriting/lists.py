"""Lists that grow in a loop: while it runs, in the form that its body needs, and as it leaves them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import torch

from entrepot.exporters.torch.rewriting.sequences import Numbers, Parted, Rows, Unfinished, rows_between
from entrepot.exporters.torch.rewriting.shapes import as_tensor
from entrepot.exporters.torch.rewriting.uneven import Filled, Growing, Lengthened


class Tracked(list[Any]):
    """A list that knows how it is used.

    Args:
        items: What it holds.
        origin: The list that it stands for in an arm of a branch: what is looked at there is looked at in that one.

    Attributes:
        front: How many items were put at its beginning.
        origin: The list that it is a copy of, if it is one.
    """

    front = 0

    def __init__(self, items: Iterable[Any] = (), origin: Any = None) -> None:
        super().__init__(items)
        self.origin, self._read = origin, False

    @property
    def read(self) -> bool:
        """Whether its items, or how many there are, were looked at."""
        return self._read

    def look(self) -> None:
        """Note that somebody looks at what it holds."""
        self._read = True
        if isinstance(self.origin, Tracked):
            self.origin.look()

    def insert(self, index: Any, item: Any) -> None:
        if index == 0:
            self.front += 1
        super().insert(index, item)

    def extend(self, items: Any) -> None:
        if isinstance(items, Numbers) and isinstance(items.length, torch.SymInt):
            items = Grown(Stacked(items.tensor))
        super().extend(items.items if isinstance(items, Grown) else items)

    def __iadd__(self, items: Any) -> Any:
        return longer(self, items)

    def __getitem__(self, index: Any) -> Any:
        self.look()
        return super().__getitem__(index)

    def __iter__(self) -> Iterator[Any]:
        self.look()
        return super().__iter__()

    def __reversed__(self) -> Iterator[Any]:
        self.look()
        return super().__reversed__()

    def __add__(self, other: Any) -> Any:
        self.look()
        return super().__add__(other)

    def copy(self) -> list[Any]:
        self.look()
        return super().copy()

    def pop(self, index: Any = -1) -> Any:
        self.look()
        if not len(self):
            from entrepot.exporters.torch.rewriting.links import NothingYetError

            raise NothingYetError("an item is taken from a list that holds none")
        return super().pop(index)

    def __delitem__(self, index: Any) -> None:
        self.look()
        super().__delitem__(index)


class Trailing(Growing):
    """A list that grows in a loop whose body looks at its last item or its length.

    Args:
        items: What it held before.
        last: The last item.
        count: How many items there are.
        new: What it was given since.

    Attributes:
        outside: The same list, as it is outside of the loop.
        place: The index of the item that it is given last.
    """

    place = -1

    def __init__(self, items: Sequence[Any], last: Any, count: Any, *new: Any) -> None:
        self.items, self.last, self.count, self.new = items, last, count, Tracked(new)
        self.outside = self

    def parts(self) -> Sequence[Any]:
        return self.last, self.count, self.new

    def joined(self, parts: Sequence[Any]) -> Trailing:
        new = type(self)(self.items, parts[0], parts[1], *list.__iter__(parts[2]))
        new.new.front = parts[2].front
        new.outside = self.outside
        return new

    def append(self, item: Any) -> None:
        self.new.append(item)
        self.last, self.count = item, self.count + 1

    def insert(self, index: int, item: Any) -> None:
        raise TypeError("a list that grows at its end in a loop is given something elsewhere")

    def __getitem__(self, index: Any) -> Any:
        if index != self.place:
            self._put_together()
        return self.last

    def __delitem__(self, index: Any) -> None:
        self._put_together()

    def pop(self, index: Any = -1) -> Any:
        """Take an item out."""
        self._put_together()

    def _put_together(self) -> None:
        """Have all items kept, of which the last one does not tell enough."""
        from entrepot.exporters.torch.rewriting.links import piled

        raise piled(self)


class Leading(Trailing):
    """A list that grows at its front in a loop whose body looks at its first item or its length."""

    place = 0

    def append(self, item: Any) -> None:
        raise TypeError("a list that grows at its front in a loop is given something elsewhere")

    def insert(self, index: int, item: Any) -> None:
        if index != 0:
            raise TypeError("a list that grows at its front in a loop is given something elsewhere")
        self.new.insert(0, item)
        self.last, self.count = item, self.count + 1


class Piled(Growing):
    """A list of tensors alike that grows in a loop whose body puts all of them together, as one tensor.

    Args:
        tensor: The items along a new first axis.
        numbers: Whether they are Python's numbers.
    """

    def __init__(self, tensor: torch.Tensor, *, numbers: bool = False) -> None:
        self.tensor, self.numbers = tensor, numbers

    @classmethod
    def of(cls, items: Sequence[Any], like: torch.Tensor, *, numbers: bool = False) -> Piled:
        """With what a list holds before the loop, and one of the items to come."""
        made = cls(torch.empty([0, *like.shape], dtype=like.dtype), numbers=numbers)
        made.extend(items)
        return made

    @property
    def count(self) -> Any:
        """How many items there are."""
        return self.tensor.shape[0]

    def parts(self) -> Sequence[Any]:
        return (self.tensor,)

    def joined(self, parts: Sequence[Any]) -> Piled:
        return Piled(parts[0], numbers=self.numbers)

    def append(self, item: Any) -> None:
        self._longer(as_tensor(item).unsqueeze(0))

    def insert(self, index: int, item: Any) -> None:
        """Put an item at the front."""
        if index != 0:
            raise TypeError("an item is put into the middle of a list that grows in a loop")
        self.tensor = torch.cat([as_tensor(item).unsqueeze(0).to(self.tensor.dtype), self.tensor])

    def pop(self, index: int = -1) -> Any:
        """Take out the first item, or the last one."""
        item = self[index]
        del self[index]
        return item

    def __delitem__(self, index: Any) -> None:
        kept = {0: slice(1, None), -1: slice(None, -1)}.get(index) if isinstance(index, int) else _unless(index)
        if kept is None:
            raise TypeError("an item is taken out of the middle of a list that grows in a loop")
        self.tensor = rows_between(self.tensor, kept)

    def __setitem__(self, index: Any, item: Any) -> None:
        rows = self.tensor.clone()
        rows[index] = as_tensor(item)
        self.tensor = rows

    def extend(self, items: Any) -> None:
        items = items.grown() if isinstance(items, Piled) else items
        if isinstance(items, Numbers):
            self._longer(items.tensor)
        elif isinstance(items, Grown) and items.items:
            self._longer(items.stacked())
        else:
            super().extend(items)

    def __radd__(self, items: Any) -> Any:
        return Piled.of([*items], torch.empty(self.tensor.shape[1:], dtype=self.tensor.dtype)) + self

    def _longer(self, more: torch.Tensor) -> None:
        dtype = self.tensor.dtype
        if torch.promote_types(dtype, more.dtype) != dtype:
            raise TypeError("a list that grows in a loop is given items of several types")
        self.tensor = torch.cat([self.tensor, more.to(dtype)])

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice) and index.step not in (None, 1):
            return Rows(self.tensor[index])
        if isinstance(index, slice):
            return self.joined([rows_between(self.tensor, index)])
        if isinstance(self.count, int) and not self.count:  # in the first trial, which asks for what will be there
            item = self.tensor.new_zeros(self.tensor.shape[1:])
        elif isinstance(index, int) and index not in (0, -1):  # a later one may hold fewer items than a run
            item = self.tensor[as_tensor(index).reshape(1)].squeeze(0)
        else:
            item = self.tensor[index]
        return item.item() if self.numbers else item

    def grown(self) -> Unfinished:
        """The same as a list that a loop has made."""
        return Numbers(self.tensor) if self.numbers else Grown(Stacked(self.tensor))


def _unless(part: Any) -> slice | None:
    """What stays of a list where a part at one of its ends is taken out."""
    if not isinstance(part, slice) or part.step not in (None, 1):
        return None
    if part.start is None:
        return slice(part.stop, None)
    return slice(None, part.start) if part.stop is None else None


class Stacked(Parted):
    """Items that a loop has made, as one tensor with an axis more, in the middle of a list."""

    def __init__(self, tensor: torch.Tensor) -> None:
        self.tensor = tensor

    def parts(self) -> Sequence[Any]:
        return (self.tensor,)


def repeated(items: list[Any], count: Any) -> Any:
    """``[a] * n``, as one tensor where the number of times varies."""
    numbers = all(isinstance(each, int | float | torch.SymInt | torch.SymFloat) for each in items)
    made = list(map(as_tensor, items)) if numbers else items
    alike = all(isinstance(each, torch.Tensor) and each.shape == made[0].shape for each in made)
    if not (isinstance(count, torch.SymInt) and made and alike and len({each.dtype for each in made}) == 1):
        return items * count
    all_of_them = torch.stack(made).repeat(count, *[1] * made[0].dim())
    return Numbers(all_of_them) if numbers else Grown(Stacked(all_of_them))


class Columns(Filled, Unfinished):
    """A list of lists or tuples of one length that a loop gives some: what they hold at each place, as one tensor.

    Args:
        columns: These tensors.
        numbers: Which of them hold Python's numbers.
        kind: What they are.
    """

    def __init__(self, *columns: torch.Tensor, numbers: Sequence[bool], kind: type = list) -> None:
        self.columns, self.numbers, self.kind = columns, numbers, kind

    @classmethod
    def of(cls, rows: Sequence[Any], like: Sequence[torch.Tensor], numbers: Sequence[bool], kind: type) -> Columns:
        """With what a list holds before the loop, and what one of the rows to come is made of."""
        made = cls(*(torch.empty([0, *each.shape], dtype=each.dtype) for each in like), numbers=numbers, kind=kind)
        for row in rows:
            made.append(row)
        return made

    @property
    def length(self) -> Any:
        """How many rows there are."""
        return self.columns[0].shape[0]

    def parts(self) -> Sequence[Any]:
        return self.columns

    def joined(self, parts: Sequence[Any]) -> Columns:
        return Columns(*parts, numbers=self.numbers, kind=self.kind)

    def at(self, index: Any) -> Any:
        rows = [column.select(0, index) for column in self.columns]
        return self.kind(row.item() if number else row for row, number in zip(rows, self.numbers, strict=True))

    def append(self, item: Any) -> None:
        self._longer([as_tensor(each).unsqueeze(0) for each in item])

    def extend(self, items: Any) -> None:
        if isinstance(items, Columns):
            self._longer(items.columns)
        else:
            super().extend(items)

    def _longer(self, more: Sequence[torch.Tensor]) -> None:
        pairs = zip(self.columns, more, strict=True)
        self.columns = tuple(torch.cat([column, new.to(column.dtype)]) for column, new in pairs)


class Grown(Filled, Unfinished):
    """A list some of whose items a loop in the graph has made."""

    def __init__(self, *items: Any) -> None:
        self.items = list(items)
        self.front = 0

    @property
    def length(self) -> Any:
        """How many items there are."""
        counts = [each.tensor.shape[0] if isinstance(each, Stacked) else 1 for each in self.items]
        return sum(counts[1:], counts[0]) if counts else 0

    def parts(self) -> Sequence[Any]:
        return self.items

    def append(self, item: Any) -> None:
        self.items.append(item)

    def extend(self, items: Any) -> None:
        self.items.extend(items.items if isinstance(items, Grown) else items)

    def insert(self, index: int, item: Any) -> None:
        if index != 0:
            raise TypeError("an item is put into the middle of a list that grows in a loop")
        self.front += 1
        self.items.insert(0, item)

    def pop(self, index: int = -1) -> Any:
        item = self[index]
        if index != -1:
            raise TypeError("an item is taken out of the middle of a list that grows in a loop")
        last = self.items.pop()
        if isinstance(last, Stacked):
            self.items.append(Stacked(last.tensor[:-1]))
        return item

    def reverse(self) -> None:
        self.items = [Stacked(each.tensor.flip(0)) if isinstance(each, Stacked) else each for each in self.items[::-1]]

    def copy(self) -> Grown:
        return Grown(*self.items)

    def at(self, index: Any) -> Any:
        return self.stacked().select(0, index)

    def __getitem__(self, index: Any) -> Any:
        at_end = isinstance(index, int) and (index == -1 or (index == 0 and not isinstance(self.items[0], Stacked)))
        if at_end:  # whether a size that varies is there is not asked: the answer would become a condition
            item = self.items[index]
            return item.tensor[index] if isinstance(item, Stacked) else item
        if isinstance(index, slice) and index == slice(None, None, -1):
            turned = self.copy()
            turned.reverse()
            return turned
        return super().__getitem__(index)

    def __setitem__(self, index: Any, item: Any) -> None:
        tensor = self.stacked().clone()
        value = torch.as_tensor(item)
        if isinstance(index, slice) or value.dtype != tensor.dtype or [*value.shape] != [*tensor.shape[1:]]:
            raise TypeError("an item of another kind takes the place of one in a list that a loop has made")
        tensor.select(0, index).copy_(value)
        self.items = [Stacked(tensor)]

    def __add__(self, other: Any) -> Grown:
        return Grown(*self.items, *(other.items if isinstance(other, Grown) else other))

    def __radd__(self, other: Any) -> Grown:
        return Grown(*other, *self.items)

    def stacked(self) -> torch.Tensor:
        """All items as one tensor, along a new first axis."""
        rows = [each.tensor if isinstance(each, Stacked) else torch.as_tensor(each).unsqueeze(0) for each in self.items]
        return rows[0] if len(rows) == 1 else torch.cat(rows)

    def joined_up(self, axis: int) -> torch.Tensor:
        """All items one after the other along an axis they have."""
        flat = []
        for each in self.items:
            if isinstance(each, Stacked):
                place = axis % (each.tensor.dim() - 1)
                flat.append(each.tensor.movedim(0, place).flatten(place, place + 1))
            else:
                flat.append(each)
        return flat[0] if len(flat) == 1 else torch.cat(flat, axis)


def longer(items: Any, more: Any) -> Any:
    """A list, and what it is given at its end; what a loop has made as a whole takes its place."""
    more = more.grown() if isinstance(more, Piled) else more
    if isinstance(more, Columns | Lengthened) and isinstance(items, list):
        if list.__len__(items):
            raise TypeError("a list that holds something is given rows or pieces that a loop has made")
        return more
    items.extend(more)
    return items
