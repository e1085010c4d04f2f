"""Which axes a module really allows to vary, found by running it at other sizes.

torch.export could be asked instead, but its automatic dimensions turn refusals into silently fixed sizes. Here an axis
is dynamic when the module itself accepts other sizes and its results keep their structure and rank. Axes that fail
apart and pass together are linked: they share a symbol. A size of 1 is enlarged first, if the module allows it:
otherwise broadcasting would make a tied axis look free, and the capture would take the 1 for a constant.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import torch

from entrepot.exporters.torch.eager import Eager, EagerRefusal
from entrepot.exporters.torch.flatten import Flat, same_structure

_MOST_PAIRED = 12  # how many axes of one size may be tried in pairs; each trial runs the module

Axis: TypeAlias = tuple[int, int]
"""Which tensor of the flat sample, which axis of it."""


@dataclass
class Group:
    """Axes that always have the same size.

    Attributes:
        axes: The members.
        symbol: Its name in the graph.
        sizes: Sizes that the module accepted while the other groups kept theirs, the present one first.
        bounds: ``min`` and ``max`` for ``torch.export.Dim``, where the capture found any.
        automatic: Whether there are conditions that hold within the bounds but that torch.export cannot prove.
        required: Whether the caller asked for it by name; it is an error if it cannot vary.
        asked: The smallest and the largest size that the caller wants.
    """

    axes: frozenset[Axis]
    symbol: str
    sizes: list[int]
    bounds: dict[str, int] = field(
        default_factory=lambda: {"min": 2}
    )  # size 1 is proved by running, not by the capture
    automatic: bool = False
    required: bool = False
    asked: tuple[int, int | None] = (0, None)

    def wants(self, size: int) -> bool:
        """Whether the caller wants a size."""
        least, most = self.asked
        return least <= size and (most is None or size <= most)


class Prober:
    """Tries sizes on a module.

    Args:
        eager: The module.
        tensors: The flat sample; ``Prober.base`` becomes the same with sizes of 1 enlarged.
        result: What the module returns for it; a trial at another size must return the same structure.
    """

    def __init__(self, eager: Eager, tensors: Sequence[torch.Tensor], result: Flat) -> None:
        self._eager = eager
        self.base = list(tensors)
        self.result = result
        self._open: list[Axis] | None = None
        self._answers: dict[frozenset[tuple[Axis, int]], EagerRefusal | None] = {}

    def find_groups(self, among: Sequence[Axis] | None = None) -> list[Group]:
        """Every group of axes that may vary, in the order of the inputs; symbols are not named yet.

        Args:
            among: The axes to try; by default all.
        """
        self._open = None if among is None else list(among)
        self._enlarge_ones()
        alone = {axis: sizes for axis in self._candidates() if (sizes := self.other_sizes([axis]))}
        growing = [axis for axis, sizes in alone.items() if max(sizes) > self.size(axis)]
        groups = []
        for size, members in self._by_size(axis for axis in self._candidates() if axis not in growing).items():
            linked = self._linked([axis for axis in members if axis not in alone])
            bound = {axis for group in linked for axis in group.axes}
            tolerant = [axis for axis in growing if self.size(axis) == size]
            led = self._led([axis for axis in members if axis not in bound], tolerant)
            groups += linked + led
            for axis in frozenset[Axis]().union(*(group.axes for group in led)):
                alone.pop(axis, None)
        groups += [Group(frozenset([axis]), "", [self.size(axis), *sizes]) for axis, sizes in alone.items()]
        return sorted(groups, key=lambda group: min(group.axes))

    def size(self, axis: Axis) -> int:
        """The size of an axis of the base sample."""
        return self.base[axis[0]].shape[axis[1]]

    def takes(self, sizes: Mapping[Axis, int]) -> EagerRefusal | None:
        """Run the module at changed sizes; ``None`` if it accepts them."""
        key = frozenset(sizes.items())
        if key not in self._answers:
            self._answers[key] = self._try(sizes)
        return self._answers[key]

    def takes_shape(self, axes: Iterable[Axis], size: int) -> bool:
        """Whether the module accepts a size that is too large to run it with."""
        chosen = set(axes)
        shapes = [
            [size if (index, axis) in chosen else old for axis, old in enumerate(tensor.shape)]
            for index, tensor in enumerate(self.base)
        ]
        return self._eager.takes_shape(
            [tensor.new_empty(1).expand(shape) for tensor, shape in zip(self.base, shapes, strict=True)]
        )

    def _try(self, sizes: Mapping[Axis, int]) -> EagerRefusal | None:
        try:
            result = self._eager(resized(self.base, sizes))
        except EagerRefusal as refusal:
            return refusal
        if self._comparable(result):
            return None
        return EagerRefusal(TypeError("the structure or the rank of the results changes with the size"))

    def fresh_sizes(self, size: int, taken: Iterable[int] = ()) -> list[int]:
        """Up to two larger and two smaller sizes, none of which happens to occur in the sample."""
        used = {dim for tensor in self.base for dim in tensor.shape} | set(taken) | {0, 1}
        larger = next(other for other in itertools.count(size + 1) if other not in used)
        largest = next(other for other in itertools.count(max(2 * size, larger) + 1) if other not in used)
        smaller = next((other for other in range(size - 1, 1, -1) if other not in used), None)
        smallest = next((other for other in range(size // 2, 1, -1) if other not in used), None)
        return list(dict.fromkeys(other for other in (larger, largest, smaller, smallest) if other is not None))

    def enlarge(self, axes: Iterable[Axis], size: int) -> None:
        """Start from another size of some axes."""
        self.base = resized(self.base, dict.fromkeys(axes, size))
        self._answers.clear()

    def _comparable(self, result: Flat) -> bool:
        return same_structure(result.tree, self.result.tree) and all(
            a.dim() == b.dim() and a.dtype == b.dtype for a, b in zip(result.tensors, self.result.tensors, strict=True)
        )

    def _candidates(self) -> list[Axis]:
        return all_axes(self.base) if self._open is None else self._open

    def _by_size(self, axes: Iterable[Axis]) -> dict[int, list[Axis]]:
        found: dict[int, list[Axis]] = {}
        for axis in axes:
            found.setdefault(self.size(axis), []).append(axis)
        return found

    def other_sizes(self, axes: Iterable[Axis]) -> list[int]:
        """Two other sizes that the module accepts when ``axes`` have them together, or none.

        One is not enough: a pooling that rounds down accepts 29 instead of 28 without letting the axis vary.
        """
        axes, found = list(axes), list[int]()
        for size in self.fresh_sizes(self.size(axes[0])):
            if self.takes(dict.fromkeys(axes, size)) is None:
                found.append(size)
            if len(found) == 2:
                return found
        return []

    def _linked(self, members: list[Axis]) -> list[Group]:
        """Split axes of one size, none of which varies alone, into minimal groups that vary together."""
        groups = []
        while together := next((axes for axes in _subsets(members) if self.other_sizes(axes)), None):
            kept = _minimal(together, lambda axes: bool(self.other_sizes(axes)))
            groups.append(Group(frozenset(kept), "", [self.size(kept[0]), *self.other_sizes(kept)]))
            members = [axis for axis in members if axis not in kept]
        return groups

    def _led(self, stuck: list[Axis], tolerant: list[Axis]) -> list[Group]:
        """Groups of axes that can grow only together with others, while those may also grow alone.

        Some models accept a mask with more rows than there are ids, and read the first ones; then there may also be
        fewer ids, and yet the two belong together.
        """
        groups = []
        while stuck and tolerant:
            choices = [*_subsets(stuck), *([axis] for axis in stuck)]
            together = next((axes for axes in choices if self._grows(stuck, [*axes, *tolerant])), None)
            if together is None:
                break
            needed = _minimal([*tolerant, *together], functools.partial(self._grows, stuck))
            groups.append(Group(frozenset(needed), "", [self.size(needed[0]), *self.other_sizes(needed)]))
            stuck = [axis for axis in stuck if axis not in needed]
            tolerant = [axis for axis in tolerant if axis not in needed]
        return groups

    def bind(self, group: Group, groups: Sequence[Group]) -> list[Group] | None:
        """Groups in which ``group`` varies with others that now have its size, if the module accepts that.

        A module that skips a mask of ones accepts one of any batch size; its graph does not.
        """
        size = self.size(min(group.axes))
        others = [other for other in groups if other is not group and self.size(min(other.axes)) == size]
        axes = group.axes.union(*(other.axes for other in others))
        if not others or not (sizes := self.other_sizes(sorted(axes))):
            return None
        first = min([group, *others], key=lambda each: min(each.axes))
        required = any(each.required for each in (group, *others))
        together = Group(axes, first.symbol, [size, *sizes], required=required)
        return [together if each is first else each for each in groups if each is first or each not in (group, *others)]

    def _grows(self, stuck: list[Axis], axes: list[Axis]) -> bool:
        """Whether axes, some of which cannot vary without the others, accept a larger size together."""
        return any(axis in stuck for axis in axes) and max(self.other_sizes(axes), default=0) > self.size(axes[0])

    def _enlarge_ones(self) -> None:
        """Make axes of size 1 larger, first the leading ones together (a batch of one), then any others that vary."""
        ones = [axis for axis in self._candidates() if self.size(axis) <= 1]
        self._enlarge_first(_without_one([axis for axis in ones if axis[1] == 0]))
        for axis in ones:
            self._enlarge_first([[axis]] if self.size(axis) <= 1 else [])
        self._enlarge_first(_subsets([axis for axis in ones if self.size(axis) <= 1]))

    def _enlarge_first(self, choices: Iterable[list[Axis]]) -> None:
        """Enlarge the axes of the first choice that the module accepts."""
        size = self.fresh_sizes(1)[0]
        for axes in choices:
            if axes and self.takes(dict.fromkeys(axes, size)) is None:
                self.enlarge(axes, size)
                return


def all_axes(tensors: Sequence[torch.Tensor]) -> list[Axis]:
    """Every axis of every tensor."""
    return [(index, axis) for index, tensor in enumerate(tensors) for axis in range(tensor.dim())]


def resized(tensors: Sequence[torch.Tensor], sizes: Mapping[Axis, int]) -> list[torch.Tensor]:
    """The tensors with some axes at other sizes, filled from their own values in their own order.

    Keeping their order keeps indices in range and sorted tensors (offsets, positions) sorted.
    """
    result = list(tensors)
    for (index, axis), size in sizes.items():
        result[index] = _resize(result[index], axis, size)
    return result


def _resize(tensor: torch.Tensor, axis: int, size: int) -> torch.Tensor:
    old = tensor.shape[axis]
    if old == 0:
        shape = list(tensor.shape)
        shape[axis] = size
        return tensor.new_zeros(shape)
    return tensor.index_select(axis, torch.arange(size) * old // max(size, 1))


def _subsets(axes: list[Axis]) -> Iterator[list[Axis]]:
    """Sets of two or more axes that may belong together, the likeliest first."""
    yield from (choice for choice in _without_one(axes) if len(choice) > 1)
    for position in dict.fromkeys(axis for _, axis in axes):
        same = [axis for axis in axes if axis[1] == position]
        if 1 < len(same) < len(axes) - 1:
            yield same
    yield from (list(pair) for pair in itertools.combinations(axes, 2) if 3 < len(axes) <= _MOST_PAIRED)


def _without_one(axes: list[Axis]) -> Iterator[list[Axis]]:
    """All axes, then all but one: a size that is equal by accident must not hide a group."""
    yield axes
    if len(axes) <= _MOST_PAIRED:
        yield from ([other for other in axes if other != axis] for axis in axes)


def _minimal(axes: list[Axis], passes: Callable[[list[Axis]], bool]) -> list[Axis]:
    """Drop every axis that the rest can vary without."""
    kept = list(axes)
    for axis in axes:
        rest = [other for other in kept if other != axis]
        if rest and passes(rest):
            kept = rest
    return kept


def name_groups(
    groups: Sequence[Group], tensors: Sequence[torch.Tensor], names: Sequence[str], taken: Collection[str] = ()
) -> None:
    """Give every group a symbol that is not taken.

    ``batch`` is the leading axis that most inputs share; the others are named by what the input suggests.
    """
    leading = [group for group in groups if any(axis == 0 for _, axis in group.axes)]
    batch = max(leading, key=lambda group: len(group.axes), default=None)
    used: set[str] = set(taken)
    for group in groups:
        index, axis = min(group.axes)
        image = not any((index, 1) in other.axes for other in groups)
        wish = "batch" if group is batch else _suggestion(tensors[index], axis, names[index], image=image)
        group.symbol = wish if wish not in used else _identifier(f"{names[index]}_dim{axis}")
        used.add(group.symbol)


def _suggestion(tensor: torch.Tensor, axis: int, name: str, *, image: bool) -> str:
    integers = not tensor.is_floating_point() and tensor.dtype != torch.bool
    if tensor.dim() == 2 and axis == 1 and integers:
        return "sequence"
    if tensor.dim() == 4 and axis in (2, 3) and tensor.is_floating_point() and image:
        return ("height", "width")[axis - 2]
    return _identifier(f"{name}_dim{axis}")


def _identifier(text: str) -> str:
    return "".join(letter if letter.isalnum() else "_" for letter in text)
