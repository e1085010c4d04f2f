"""Numbers that follow the turn of a Loop: which place of an axis each turn writes to, and how many turns there are."""

from __future__ import annotations

import re
from typing import NamedTuple

import onnx_ir as ir

from entrepot.ir.opset.extents import Axis, Extent, Extents, is_named
from entrepot.ir.passes.graphs import has_references
from entrepot.ir.typing.query import Types

_DEPTH = 16
_SUM = re.compile(r"(\w+)(?: ([+-]) (\d+))?")
_SAME = ("Cast", "Identity", "Reshape", "Squeeze", "Unsqueeze")
"""What keeps a single number, integers being cast to integers here."""


class Place(NamedTuple):
    """``slope * turn + constant + times * size``, the size being that of an axis."""

    slope: int
    constant: int
    times: int = 0
    size: Axis | None = None

    def scaled(self, factor: int) -> Place:
        """A multiple."""
        return Place(factor * self.slope, factor * self.constant, factor * self.times, self.size)

    def plus(self, other: Place) -> Place | None:
        """The sum, if it has one size."""
        if None not in (self.size, other.size) and self.size != other.size:
            return None
        size = self.size or other.size
        return Place(self.slope + other.slope, self.constant + other.constant, self.times + other.times, size)

    def from_end(self, size: int | Axis, types: Types) -> int | None:
        """What is added to the size of an axis, that of a value, if this is all that is added to it."""
        if isinstance(size, int):
            return None if self.times else self.constant - size
        if self.times != 1 or self.size is None:
            return None
        if self.size == size:
            return self.constant
        (name, more), (other, further) = _sum(self.size, types), _sum(size, types)
        return None if name != other or not name else self.constant + more - further


def _sum(size: Axis, types: Types) -> tuple[str, int]:
    """The name of a size and what is added to it, as of ``length + 1``; no name if it has none."""
    shape = types.shape(size.value)
    dim = shape[size.axis] if shape is not None and size.axis < len(shape) else None
    found = _SUM.fullmatch(dim.value or "") if isinstance(dim, ir.SymbolicDim) and is_named(dim) else None
    return ("", 0) if found is None else (found[1], int(f"{found[2] or '+'}{found[3] or 0}"))


def place_of(value: ir.Value | None, turn: ir.Value | None, types: Types, depth: int = _DEPTH) -> Place | None:
    """A number in terms of the turn; ``None`` if it is none, or not known to be one."""
    if value is None or not depth:
        return None
    if value is turn:
        return Place(1, 0)
    made = Extents(types.known, types).of(value)
    if made is not None and len(made) == 1 and made[0] is not None:
        return _fixed(made[0])
    node = value.producer()
    return None if node is None or node.domain or has_references(node) else _computed(node, turn, types, depth - 1)


def _computed(node: ir.Node, turn: ir.Value | None, types: Types, depth: int) -> Place | None:
    if node.op_type not in (*_SAME, "Add", "Mul", "Neg", "Sub"):
        return None
    numbers = node.inputs[:1] if node.op_type in _SAME else node.inputs  # others are sizes and axes
    parts = [place_of(each, turn, types, depth) for each in numbers]
    known = [part for part in parts if part is not None]
    if len(known) < len(parts):
        return None
    if node.op_type == "Mul":
        one, other = known
        one, other = (other, one) if one.slope or one.times else (one, other)
        return None if one.slope or one.times else other.scaled(one.constant)
    last = known[-1].scaled(-1 if node.op_type in ("Neg", "Sub") else 1)
    return last if len(known) == 1 else known[0].plus(last)


def _fixed(extent: Extent) -> Place:
    return Place(0, 0, 1, extent) if isinstance(extent, Axis) else Place(0, int(extent or 0))


class Slots(NamedTuple):
    """The places of an axis that a Loop writes, one per turn: all but ``before`` and ``behind`` of them, in order.

    Attributes:
        before: How many there are before the first.
        behind: How many there are behind the last.
        backwards: Whether the last one is written first.
    """

    before: int
    behind: int
    backwards: bool


def slots(place: Place, turns: Place | None, data: ir.Value, axis: int, types: Types) -> Slots | None:
    """The places that a Loop writes, if they certainly lie inside the axis of ``data`` and none is met twice."""
    shape = types.shape(data)
    if turns is None or shape is None:
        return None
    size = shape[axis]
    whole = size if isinstance(size, int) else Axis(data, axis)
    missing = turns.from_end(whole, types)
    if missing is None or turns.slope:
        return None
    if place.slope == 1 and not place.times and 0 <= place.constant <= -missing:
        return Slots(place.constant, -missing - place.constant, backwards=False)
    last = place.from_end(whole, types)
    if place.slope == -1 and last is not None and missing <= last + 1 <= 0:
        return Slots(last + 1 - missing, -1 - last, backwards=True)
    return None
