"""What a shape computed at run time is made of: ``Concat(Shape(x)[0:1], [768])`` is "axis 0 of x, then 768"."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import onnx_ir as ir

from entrepot.ir.opset.values import Known
from entrepot.ir.typing.query import Types

_DEPTH = 32
_LONGEST = 1 << 10  # no vector of sizes has more elements: one that says so is none, or damaged


class Axis(NamedTuple):
    """The extent of one axis of a value."""

    value: ir.Value
    axis: int


Extent: TypeAlias = "int | Axis | None"
"""A number, the extent of an axis, or something else that is computed."""


def is_named(dim: ir.SymbolicDim) -> bool:
    """Whether a symbol says more than "some size": several converters write ``?`` for all that they do not know."""
    return bool((dim.value or "").strip("?"))


class Extents:
    """Takes vectors of sizes apart.

    Args:
        known: What is constant.
        types: Ranks and symbols.
    """

    def __init__(self, known: Known, types: Types) -> None:
        self._known = known
        self._types = types

    def of(self, value: ir.Value, depth: int = _DEPTH) -> list[Extent] | None:
        """The elements of a vector (or one scalar), or ``None`` when not even their number is known."""
        constant = self._known.array(value)
        if constant is not None:
            return [int(size) for size in constant.reshape(-1)]
        node = value.producer()
        if node is not None and not node.domain and depth:
            take_apart = _PARTS.get(node.op_type)
            found = take_apart(self, node, depth - 1) if take_apart else None
            if found is not None:
                return found
        return self._opaque(value)

    def same(self, one: Extent, x: ir.Value, axis: int) -> bool:
        """Whether an extent is certainly that of an axis of ``x``: the same axis, or one with the same symbol."""
        shape = self._types.shape(x)
        dim = shape[axis] if shape is not None and axis < len(shape) else None
        if isinstance(one, int) or one is None:
            return one is not None and one == dim
        if one == Axis(x, axis):
            return True
        other = self._types.shape(one.value)
        symbol = other[one.axis] if other is not None and one.axis < len(other) else None
        return symbol == dim and dim is not None and (isinstance(dim, int) or is_named(dim))

    def _opaque(self, value: ir.Value) -> list[Extent] | None:
        shape = self._types.shape(value)
        if shape is None or not all(isinstance(dim, int) for dim in shape):
            return None
        count = math.prod(int(str(dim)) for dim in shape)
        return [None] * count if count <= _LONGEST else None

    def shape(self, node: ir.Node, _depth: int) -> list[Extent] | None:
        """``Shape``: the extents of its input."""
        x = node.inputs[0]
        shape = None if x is None else self._types.shape(x)
        if x is None or shape is None or any(attr.is_ref() for attr in node.attributes.values()):
            return None
        start, end = (node.attributes.get_int(name, default) for name, default in (("start", 0), ("end", len(shape))))
        extents: list[Extent] = [dim if isinstance(dim, int) else Axis(x, axis) for axis, dim in enumerate(shape)]
        return extents[start:end]

    def concat(self, node: ir.Node, depth: int) -> list[Extent] | None:
        """``Concat``: one vector after the other."""
        parts = [None if item is None else self.of(item, depth) for item in node.inputs]
        return None if any(part is None for part in parts) else [extent for part in parts for extent in part or ()]

    def slice(self, node: ir.Node, depth: int) -> list[Extent] | None:
        """``Slice`` with constant bounds, as inputs or (below version 10) as attributes."""
        data = None if node.inputs[0] is None else self.of(node.inputs[0], depth)
        start, end, step = self._bounds(node)
        return None if data is None or start is None or end is None or step is None else data[start:end:step]

    def _bounds(self, node: ir.Node) -> tuple[int | None, int | None, int | None]:
        if len(node.inputs) == 1:
            return node.attributes["starts"].as_ints()[0], node.attributes["ends"].as_ints()[0], 1
        bounds = [self._known.array(item) for item in node.inputs[1:]]
        start, end = (None if bound is None else int(bound[0]) for bound in bounds[:2])
        if len(bounds) < 4:
            return start, end, 1
        return start, end, None if bounds[3] is None else int(bounds[3][0])

    def gather(self, node: ir.Node, depth: int) -> list[Extent] | None:
        """``Gather`` with constant indices."""
        data = None if node.inputs[0] is None else self.of(node.inputs[0], depth)
        indices = self._known.array(node.inputs[1])
        if data is None or indices is None or any(not -len(data) <= index < len(data) for index in indices.flat):
            return None
        return [data[int(index)] for index in indices.flat]

    def same_elements(self, node: ir.Node, depth: int) -> list[Extent] | None:
        """Operators that change the rank or the integer type and keep the elements."""
        return None if node.inputs[0] is None else self.of(node.inputs[0], depth)


_PARTS: dict[str, Callable[[Extents, ir.Node, int], list[Extent] | None]] = {
    "Shape": Extents.shape,
    "Concat": Extents.concat,
    "Slice": Extents.slice,
    "Gather": Extents.gather,
    **dict.fromkeys(("Cast", "Identity", "Reshape", "Squeeze", "Unsqueeze"), Extents.same_elements),
}
