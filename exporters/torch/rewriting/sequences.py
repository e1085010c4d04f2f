"""Sequences whose length is a size that varies, as a loop runs over them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch

from entrepot.exporters.torch.rewriting.environment import known
from entrepot.exporters.torch.upstream import numpy_in_torch


class Parted:
    """Something that consists of parts, as lists do."""

    def parts(self) -> Sequence[Any]:
        """Its parts."""
        raise NotImplementedError

    def joined(self, parts: Sequence[Any]) -> Any:
        """The same with other parts."""
        return type(self)(*parts)


class Unfinished(Parted):
    """A sequence that a graph runs over.

    Attributes:
        length: How many items there are.
    """

    length: Any

    def at(self, index: Any) -> Any:
        """An item."""
        raise NotImplementedError

    def __iter__(self) -> Iterator[Any]:
        if isinstance(self.length, int):
            return (self.at(index) for index in range(self.length))
        raise TypeError("the length of this sequence varies, and what runs over it is no loop that is known")

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return self.sliced(index)
        return self.at(index + self.length if isinstance(index, int) and index < 0 else index)

    def __add__(self, other: Any) -> Unfinished:
        return Chained(self, other)

    def __radd__(self, other: Any) -> Unfinished:
        return Chained(other, self)

    def sliced(self, part: slice) -> Any:
        """``xs[1:]``, ``xs[:-1]``, ``xs[::2]`` and ``xs[::-1]``."""
        if part == slice(None, None, -1):
            return Backwards(self)
        step = 1 if part.step is None else part.step
        if not isinstance(step, int) or step < 1:
            raise TypeError("a sequence whose length varies is sliced backwards, or in steps that vary")
        start = 0 if part.start is None else _within(part.start, self.length)
        stop = self.length if part.stop is None else _within(part.stop, self.length)
        count = stop - start
        count = count if known(count >= 0) else torch.sym_max(count, 0)
        return Part(self, start, (count + step - 1) // step if step > 1 else count, step)


def _within(end: Any, length: Any) -> Any:
    """Where a slice begins or ends: a negative number counts from the end, and what is beyond an end is that end."""
    from_end = known(end < 0)
    if from_end is not False:
        end = end + (length if from_end else length * torch.sym_max(0, torch.sym_min(1, -end)))
        end = end if known(end >= 0) else torch.sym_max(end, 0)
    return end if from_end or known(end <= length) else torch.sym_min(end, length)


class Span(Unfinished):
    """``range``."""

    def __init__(self, start: Any, step: Any, length: Any) -> None:
        self.start, self.step, self.length = start, step, length

    @classmethod
    def of(cls, *limits: Any) -> Span:
        """With the arguments of ``range``."""
        start, stop, step = (0, limits[0], 1) if len(limits) == 1 else (*limits, 1)[:3]
        return cls(start, step, cls._length(start, stop, step))

    @staticmethod
    def _length(start: Any, stop: Any, step: Any) -> Any:
        distance = stop - start
        if step is stop and start == 0:  # ``range(0, n, n)``
            return 1
        if isinstance(step, int) and step == 1:
            return distance
        return (distance + step - 1) // step if step > 0 else (-distance - step - 1) // -step

    def parts(self) -> Sequence[Any]:
        return self.start, self.step, self.length

    def at(self, index: Any) -> Any:
        return self.start + index * self.step


def rows_between(tensor: torch.Tensor, part: slice) -> torch.Tensor:
    """``tensor[start:stop]``, without asking where these lie if the number of rows varies: torch would."""
    count: Any = tensor.shape[0]
    ends = 0 if part.start is None else part.start, part.stop
    if isinstance(count, int) and all(isinstance(end, int | None) for end in ends):
        return tensor[part]
    signs = [end is None or known(end >= 0) for end in ends]
    if None in signs:
        raise TypeError("a list that grows in a loop is cut where a number says that may be negative or not")
    start, stop = ends
    if start == 0 and stop is None:
        return tensor
    if stop is None:
        length = torch.sym_max(count - start, 0) if signs[0] else torch.sym_min(count, -start)
        first = count - length
    else:
        first = torch.sym_min(start, count) if signs[0] else torch.sym_max(count + start, 0)
        stop = torch.sym_min(stop, count) if signs[1] else torch.sym_max(count + stop, 0)
        length = stop if start == 0 else torch.sym_max(stop - first, 0)
    return tensor[torch.arange(length) + first]


class Rows(Unfinished):
    """A tensor along an axis."""

    def __init__(self, tensor: torch.Tensor, axis: int = 0) -> None:
        self.tensor, self.axis, self.length = tensor, axis, tensor.shape[axis]

    def parts(self) -> Sequence[Any]:
        return (self.tensor,)

    def joined(self, parts: Sequence[Any]) -> Rows:
        return Rows(parts[0], self.axis)

    def at(self, index: Any) -> torch.Tensor:
        return self.tensor.select(self.axis, index)


class Numbers(Rows):
    """``tolist``."""

    def at(self, index: Any) -> Any:
        row = super().at(index)
        return Numbers(row) if row.dim() else row.item()

    def joined(self, parts: Sequence[Any]) -> Numbers:
        return Numbers(parts[0], self.axis)


class Elements(Rows):
    """An array of NumPy's."""

    def at(self, index: Any) -> Any:
        row = super().at(index)
        return numpy_in_torch.ndarray(row) if row.dim() else row.item()

    def joined(self, parts: Sequence[Any]) -> Elements:
        return Elements(parts[0], self.axis)


class Pieces(Unfinished):
    """``split`` into pieces of one size; the last one may be smaller."""

    def __init__(self, tensor: torch.Tensor, size: Any, axis: int) -> None:
        self.tensor, self.size, self.axis = tensor, size, axis
        self.length = (tensor.shape[axis] + size - 1) // size

    def parts(self) -> Sequence[Any]:
        return self.tensor, self.size

    def joined(self, parts: Sequence[Any]) -> Pieces:
        return Pieces(parts[0], parts[1], self.axis)

    def at(self, index: Any) -> torch.Tensor:
        start = index * self.size
        return self.tensor[(*[slice(None)] * self.axis, slice(start, start + self.size))]


class Sections(Unfinished):
    """``split`` into pieces whose sizes a tensor holds."""

    def __init__(self, tensor: torch.Tensor, sizes: torch.Tensor, axis: int) -> None:
        self.tensor, self.sizes, self.axis = tensor, sizes, axis
        self.length = sizes.shape[0]

    def parts(self) -> Sequence[Any]:
        return self.tensor, self.sizes

    def joined(self, parts: Sequence[Any]) -> Sections:
        return Sections(parts[0], parts[1], self.axis)

    def at(self, index: Any) -> torch.Tensor:
        stop = self.sizes.cumsum(0).select(0, index).item()
        start = stop - self.sizes.select(0, index).item()
        return self.tensor[(*[slice(None)] * self.axis, slice(start, stop))]

    def padded(self, filling: float) -> torch.Tensor:
        """The pieces side by side along a new first axis, each filled up to the longest."""
        rows = self.tensor.movedim(self.axis, 0)
        place = torch.arange(self.sizes.max().item())
        start = self.sizes.cumsum(0) - self.sizes
        inside = place < self.sizes[:, None]
        taken = rows[torch.where(inside, start[:, None] + place, 0)]
        other = torch.full((), filling, dtype=rows.dtype)  # beside integers, a fraction would make fractions of them
        return torch.where(inside.reshape(*inside.shape, *[1] * (rows.dim() - 1)), taken, other)


class Part(Unfinished):
    """A slice of another one."""

    def __init__(self, whole: Any, start: Any, length: Any, step: int = 1) -> None:
        self.whole, self.start, self.length, self.step = whole, start, length, step

    def parts(self) -> Sequence[Any]:
        return self.whole, self.start, self.length

    def joined(self, parts: Sequence[Any]) -> Part:
        return Part(parts[0], parts[1], parts[2], self.step)

    def at(self, index: Any) -> Any:
        return self.whole[(index if self.step == 1 else index * self.step) + self.start]


class Chained(Unfinished):
    """Lists and such sequences, one after the other.

    Args:
        pieces: Each a list, or a sequence whose length varies.
    """

    def __init__(self, *pieces: Any) -> None:
        self.pieces: list[Any] = []
        for each in pieces:
            self.pieces += each.pieces if isinstance(each, Chained) else [each]
        lengths = [each.length if isinstance(each, Unfinished) else len(each) for each in self.pieces]
        self.length = sum(lengths[1:], lengths[0])

    def parts(self) -> Sequence[Any]:
        return self.pieces

    def __getitem__(self, index: Any) -> Any:
        """Only what is at one of the ends: in between, which piece an item is in varies."""
        if isinstance(index, slice):
            return super().__getitem__(index)
        end = self.pieces[0] if isinstance(index, int) and index >= 0 else self.pieces[-1]
        if not isinstance(index, int) or (isinstance(end, list) and not -len(end) <= index < len(end)):
            raise TypeError("an item is taken out of the middle of a list whose length varies")
        return end[index]

    def at(self, index: Any) -> Any:
        return self[index]

    def sliced(self, part: slice) -> Any:
        """Within the last piece, if those before it are lists that are left out."""
        start, pieces = 0 if part.start is None else part.start, self.pieces
        while isinstance(pieces[0], list) and isinstance(start, int) and start >= len(pieces[0]) and len(pieces) > 1:
            start, pieces = start - len(pieces[0]), pieces[1:]
        at_end = part.stop is None or (isinstance(part.stop, int) and part.stop < 0)
        if len(pieces) == 1 and at_end and isinstance(start, int) and start >= 0:
            return pieces[0][start : part.stop : part.step]
        return super().sliced(part)


class Backwards(Unfinished):
    """``reversed``."""

    def __init__(self, whole: Any) -> None:
        self.whole, self.length = whole, whole.length

    def parts(self) -> Sequence[Any]:
        return (self.whole,)

    def at(self, index: Any) -> Any:
        return self.whole.at(self.length - 1 - index)


class Together(Unfinished):
    """``zip``, and so ``enumerate``.

    Args:
        wholes: What is gone through side by side.
        strict: Whether all are equally long.
    """

    def __init__(self, *wholes: Any, strict: bool = False) -> None:
        self.wholes, self.strict = wholes, strict
        lengths = [each.length if isinstance(each, Unfinished) else len(each) for each in wholes]
        given = min((length for length in lengths if isinstance(length, int)), default=None)
        if given is not None and (strict or all(known(length >= given) for length in lengths)):
            lengths = [given]
        self.length = lengths[0]
        for length in lengths[1:]:
            self.length = self.length if self.length is length else torch.sym_min(self.length, length)

    def parts(self) -> Sequence[Any]:
        return self.wholes

    def joined(self, parts: Sequence[Any]) -> Together:
        return Together(*parts, strict=self.strict)

    def at(self, index: Any) -> Any:
        return tuple(each.at(index) if isinstance(each, Unfinished) else _listed(each, index) for each in self.wholes)


def _listed(items: Sequence[Any], index: Any) -> Any:
    from entrepot.exporters.torch.rewriting.combining import are_alike, one_of

    if isinstance(index, int):
        return items[index]
    if not are_alike(items):
        raise TypeError("a list is gone through beside a sequence whose length varies")
    return one_of(items, index)
