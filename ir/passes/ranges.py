"""What a Slice takes of one axis."""

from __future__ import annotations

from dataclasses import dataclass

import onnx_ir as ir

from entrepot.ir.typing.query import Types


@dataclass(frozen=True)
class Range:
    """Elements of one axis, from ``start`` up to ``end``, which is not among them."""

    axis: int
    start: int
    end: int


def range_of(node: ir.Node, types: Types) -> Range | None:
    """What a Slice takes, if it is a range of one axis whose size is known, without steps."""
    given = [None if value is None else types.known.array(value) for value in node.inputs[1:]]
    shape = types.shape(node.inputs[0])
    if shape is None or len(given) < 3 or any(each is None or each.size != 1 for each in given):
        return None
    start, end, axis, *step = [int(each.item()) for each in given if each is not None]
    size = shape[axis]
    if not isinstance(size, int) or step not in ([], [1]):
        return None
    start, end, _ = slice(start, end).indices(size)
    return Range(axis % len(shape), start, max(start, end))


def size_of(value: ir.Value | None, axis: int, types: Types) -> int | None:
    """The size of an axis, if it is a known number."""
    shape = types.shape(value)
    size = None if shape is None else shape[axis]
    return size if isinstance(size, int) else None
