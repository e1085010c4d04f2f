"""Lists that grow in a loop: while it runs, in the form that its body needs, and as it leaves them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple, Self

import torch

from entrepot.exporters.torch.rewriting.environment import empty_without
from entrepot.exporters.torch.rewriting.sequences import Numbers, Parted, Rows, Sections, Unfinished
from entrepot.exporters.torch.rewriting.shapes import as_tensor


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
        return super().pop(index)


class Filled(Parted):
    """What is given items at its end, as lists are."""

    def append(self, item: Any) -> None:
        """Put an item at the end."""
        raise NotImplementedError

    def extend(self, items: Any) -> None:
        """Put several at the end."""
        for item in items:
            self.append(item)

    def __iadd__(self, items: Any) -> Self:
        self.extend(items)
        return self


class Growing(Filled):
    """What stands for a list that grows in a loop."""

    def __iter__(self) -> Iterator[Any]:
        """Python would go through a list without end, since nothing says that an item is not there."""
        raise TypeError("a list that grows in a loop is gone through in it")

    def __add__(self, items: Iterable[Any]) -> Any:
        longer = self.joined(self.parts())
        longer.extend(items)
        return longer


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
            raise TypeError("a list that grows in a loop is looked at elsewhere than at its end")
        return self.last


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


class Like(NamedTuple):
    """What an item is like whose sizes may mean nothing where they are asked for."""

    shape: Sequence[Any]
    dtype: torch.dtype


class Lengthened(Growing):
    """A list that is given pieces of different sizes in a loop, as one tensor.

    Args:
        tensor: What it holds so far, along one axis, in the place of the first of those below, that stands for all.
        sizes: Those of the pieces, a row each.
        axes: Along which pieces differ; numbers that are apart along the last of them are nearest.
    """

    def __init__(self, tensor: torch.Tensor, sizes: torch.Tensor, axes: Sequence[int]) -> None:
        self.tensor, self.sizes, self.axes = tensor, sizes, axes
        self._place = axes[0] - sum(axis < axes[0] for axis in axes)
        self._together = [*range(self._place, self._place + len(axes))]

    @property
    def count(self) -> Any:
        """How many pieces there are."""
        empty_without(count := self.sizes.shape[0], self.tensor.shape[self._place])
        return count

    @classmethod
    def of(cls, items: Sequence[torch.Tensor], like: torch.Tensor | Like, axes: Sequence[int]) -> Lengthened:
        """With what a list holds before the loop, and one of the pieces to come."""
        shape = [0 if at == axes[0] else size for at, size in enumerate(like.shape) if at not in axes[1:]]
        made = cls(torch.empty(shape, dtype=like.dtype), torch.empty(0, len(axes), dtype=torch.int64), axes)
        made.extend(items)
        return made

    def piece(self) -> Like:
        """What one of the pieces is like."""
        shape = [size for at, size in enumerate(self.tensor.shape) if at != self._place]
        for axis in sorted(self.axes):
            shape.insert(axis, 1)
        return Like(shape, self.tensor.dtype)

    def parts(self) -> Sequence[Any]:
        return self.tensor, self.sizes

    def joined(self, parts: Sequence[Any]) -> Lengthened:
        return Lengthened(parts[0], parts[1], self.axes)

    def append(self, item: torch.Tensor) -> None:
        sizes = torch.stack([as_tensor(item.shape[axis]) for axis in self.axes])
        self._join(item.movedim([*self.axes], self._together), sizes.unsqueeze(0))

    def extend(self, items: Any) -> None:
        if isinstance(items, Lengthened) and [*items.axes] == [*self.axes[: len(items.axes)]]:
            self._join(*self._laid_out(items))
        else:
            super().extend(items)

    def _laid_out(self, pieces: Lengthened) -> tuple[torch.Tensor, torch.Tensor]:
        """What a loop in the body has made, whose pieces may be of one size where those of several turns are not."""
        others = self.axes[len(pieces.axes) :]
        places = [axis - sum(each < axis for each in pieces.axes[1:]) for axis in others]
        tensor = pieces.tensor.movedim([pieces._place, *places], self._together[: 1 + len(others)])
        alike = [as_tensor(pieces.tensor.shape[place]).expand(pieces.count, 1) for place in places]
        return tensor, torch.cat([pieces.sizes, *alike], 1)

    def _join(self, tensor: torch.Tensor, sizes: torch.Tensor) -> None:
        flat = tensor.flatten(self._place, self._place + tensor.dim() - self.tensor.dim())
        self.tensor, self.sizes = torch.cat([self.tensor, flat], self._place), torch.cat([self.sizes, sizes])

    def __getitem__(self, index: Any) -> Any:
        return self.sections()[index]

    def sections(self) -> Sections:
        """The pieces, one by one."""
        if len(self.axes) > 1:
            raise TypeError("pieces whose sizes differ along several axes are gone through")
        return Sections(self.tensor, self.sizes.reshape(-1), self._place)

    def stacked(self) -> torch.Tensor:
        """The pieces along a new first axis: torch stacks no others than those of one size."""
        counted = self._unfolded(self.count).movedim(self._place, 0)
        return counted.movedim([at + 1 for at in self._together], [axis + 1 for axis in self.axes])

    def joined_up(self, axis: int) -> torch.Tensor:
        """All pieces one after the other; torch puts no others together than those of one size along other axes."""
        axis %= self.tensor.dim() + len(self.axes) - 1
        if axis not in self.axes:
            return self.stacked().movedim(0, axis).flatten(axis, axis + 1)
        if axis != self.axes[0]:
            raise TypeError("pieces whose sizes differ along several axes are put together along a later one")
        return self.tensor if len(self.axes) == 1 else self._unfolded().movedim(self._together, [*self.axes])

    def _unfolded(self, *count: Any) -> torch.Tensor:
        """All there is with all axes, and one for each piece if asked for, where sizes are those of the first piece."""
        shape, place = [*self.tensor.shape], self._place
        others = [self.sizes[0, at].item() for at in range(1, len(self.axes))]
        shape[place : place + 1] = [*count, shape[place] // math.prod([*count, *others]), *others]
        return self.tensor.reshape(shape)


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
        self.tensor = torch.cat([self.tensor, more.to(self.tensor.dtype)])

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return Rows(self.tensor[index])
        return self.tensor[index].item() if self.numbers else self.tensor[index]

    def grown(self) -> Unfinished:
        """The same as a list that a loop has made."""
        return Numbers(self.tensor) if self.numbers else Grown(Stacked(self.tensor))


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
