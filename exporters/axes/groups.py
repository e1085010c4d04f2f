"""Axes that share a size, and what they are called."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from entrepot.exporters.arrays import Array, Arrays
from entrepot.exporters.axes.multiples import beside_square
from entrepot.ir.typing.formula import Formula

Axis: TypeAlias = tuple[int, int]
"""Which tensor of the flat sample, which axis of it."""
AMPLE = 2
"""How often the size in the sample is at least taken by an axis that may end somewhere."""


@dataclass
class Group:
    """Axes that always have the same size.

    Attributes:
        axes: The members.
        symbol: Its name in the graph.
        sizes: Sizes that the module accepted while the other groups kept theirs, the present one first.
        bounds: ``min`` and ``max``, where the capture found any.
        automatic: Whether there are conditions that hold within the bounds but that it cannot prove itself.
        single: Whether one capture may hold for all of its sizes, as far as is known.
        required: Whether the caller asked for it by name; it is an error if it cannot vary.
        asked: The smallest and the largest size that the caller wants.
        beyond: Where it goes on although the model takes another path, from which size on; 0 if that is not known.
        bounded: Whether it may end where the model takes another path, well beyond the sample.
        endless: Whether it may end nowhere, though the model may.
        often_one: Whether it is 1 more often than not, so that a path of its own for that is worth having.
        step: What its sizes differ by: 4 where 16, 20 and 24 are accepted, but nothing between them.
        beside: How many more its sizes are than squares, the tokens of a square grid; ``None`` if they are no such.
        formula: Where the size follows from those of other groups: how, over the words for their axes; the symbol then
            is the same over their symbols.
    """

    axes: frozenset[Axis]
    symbol: str
    sizes: list[int]
    bounds: dict[str, int] = field(
        default_factory=lambda: {"min": 2}
    )  # size 1 is proved by running, not by the capture
    automatic: bool = False
    single: bool = True
    required: bool = False
    asked: tuple[int, int | None] = (0, None)
    beyond: int = 0
    bounded: bool = False
    endless: bool = False
    often_one: bool = False
    step: int = 1
    beside: int | None = None
    formula: Formula | None = None

    def wants(self, size: int) -> bool:
        """Whether the caller wants a size, and the model accepts its like."""
        least, most = self.asked
        alike = size % self.step == self.remainder and self.beside in (None, beside_square(size))
        return alike and least <= size and (most is None or size <= most)

    @property
    def remainder(self) -> int:
        """What is left when its sizes are divided by the step."""
        return self.sizes[0] % self.step if self.sizes else 0


def axes_of(groups: Iterable[Group]) -> frozenset[Axis]:
    """All members of some groups."""
    return frozenset[Axis]().union(*(group.axes for group in groups))


def axis_word(axis: Axis) -> str:
    """The name of an axis in formulas, before groups have symbols."""
    return f"axis_{axis[0]}_{axis[1]}"


def word_axis(word: str) -> Axis:
    """The inverse."""
    _, index, axis = word.split("_")
    return int(index), int(axis)


def all_axes(tensors: Sequence[Array]) -> list[Axis]:
    """Every axis of every tensor."""
    return [(index, axis) for index, tensor in enumerate(tensors) for axis in range(len(tensor.shape))]


def resized(arrays: Arrays, tensors: Sequence[Array], sizes: Mapping[Axis, int]) -> list[Array]:
    """The tensors with some axes at other sizes, filled from their own values in their own order.

    Keeping their order keeps indices in range and sorted tensors (offsets, positions) sorted.
    """
    result = list(tensors)
    for (index, axis), size in sizes.items():
        result[index] = arrays.resized(result[index], axis, size)
    return result


def name_groups(
    groups: Sequence[Group],
    arrays: Arrays,
    tensors: Sequence[Array],
    names: Sequence[str],
    taken: Collection[str] = (),
) -> None:
    """Give every group a symbol that is not taken.

    ``batch`` is the leading axis that most inputs share; the others are named by what the input suggests.
    """
    free = [group for group in groups if group.formula is None]
    leading = [group for group in free if any(axis == 0 for _, axis in group.axes)]
    batch = max(leading, key=lambda group: len(group.axes), default=None)
    used: set[str] = set(taken)
    for group in free:
        index, axis = min(group.axes)
        image = not any((index, 1) in other.axes for other in groups)
        wish = "batch" if group is batch else _suggestion(tensors[index], arrays, axis, names[index], image=image)
        wish = "past" if group is not batch and _is_past({names[at] for at, _ in group.axes}) else wish
        group.symbol = wish if wish not in used else _identifier(f"{names[index]}_dim{axis}")
        used.add(group.symbol)
    settled(groups, tensors)


def settled(groups: Iterable[Group], tensors: Sequence[Array]) -> list[Group]:
    """The groups, those that follow from others with symbols made of theirs; without what follows from none of them.

    Args:
        groups: Those that vary.
        tensors: The sample; an axis that does not vary is a number in the symbols.
    """
    groups = list(groups)
    symbols = {axis_word(axis): group.symbol for group in groups if group.formula is None for axis in group.axes}
    for group in groups:
        if group.formula is not None:
            sizes = {name: word_axis(name) for name in group.formula.names}
            words = {name: str(tensors[index].shape[axis]) for name, (index, axis) in sizes.items()}
            group.symbol = group.formula.renamed({name: symbols.get(name, words[name]) for name in words}).text
    return [group for group in groups if group.formula is None or symbols.keys() & {*group.formula.names}]


def _is_past(names: Collection[str]) -> bool:
    """Whether all of these hold what earlier calls left."""
    return all(any(word in name for word in ("past", "cache")) for name in names)


def _suggestion(tensor: Array, arrays: Arrays, axis: int, name: str, *, image: bool) -> str:
    rank, kind = len(tensor.shape), arrays.kind(tensor)
    if rank == 2 and axis == 1 and kind == "integer":
        return "sequence"
    if rank == 4 and axis in (2, 3) and kind == "float" and image:
        return ("height", "width")[axis - 2]
    return _identifier(f"{name}_dim{axis}")


def _identifier(text: str) -> str:
    return "".join(letter if letter.isalnum() else "_" for letter in text)


def axis_name(axis: Axis, names: Sequence[str]) -> str:
    """``x.0``: an input and an axis of it."""
    return f"{names[axis[0]]}.{axis[1]}"
