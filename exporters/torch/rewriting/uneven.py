"""Lists that are given pieces of different sizes in a loop, and what all have in common that are filled in one."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple, Self

import torch

from entrepot.exporters.torch.rewriting.environment import empty_without
from entrepot.exporters.torch.rewriting.sequences import Parted, Sections
from entrepot.exporters.torch.rewriting.shapes import as_tensor


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
    def of(cls, items: Sequence[torch.Tensor], like: torch.Tensor | Like, axes: Sequence[int]) -> Self:
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

    def stack(self, rows: torch.Tensor) -> None:
        """Put pieces of one size at the end, which lie along a new first axis."""
        sizes = torch.stack([as_tensor(rows.shape[axis + 1]) for axis in self.axes])
        places = [self._place, *(at + 1 for at in self._together)]
        self._join(rows.movedim([0, *(axis + 1 for axis in self.axes)], places), sizes.expand(rows.shape[0], -1))

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
