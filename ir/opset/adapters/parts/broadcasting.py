"""Broadcasting before opset 7: one-sided, asked for by ``broadcast=1``, aligned by ``axis``."""

from __future__ import annotations

from typing import NamedTuple

import onnx_ir as ir

from entrepot.ir.opset.builder import OpBuilder
from entrepot.ir.opset.rules import Replacement, adapter


def broadcasting_changed(op_type: str, older: int) -> None:
    """Declare that version 7 broadcasts as NumPy does, where the older one had attributes for it."""
    adapter(op_type, older, 7)(numpy_broadcast)
    adapter(op_type, 7, older)(attribute_broadcast)


def numpy_broadcast(op: OpBuilder, _node: ir.Node) -> Replacement:
    """Give B trailing axes where ``axis`` aligned it further left than NumPy does; -1 was "at the end" in Caffe2."""
    a, b, axis = op.x(0), op.x(1), op.attr("axis", -1)
    if op.attr("broadcast", 0) and axis != -1:
        rank_a, rank_b = op.need_rank(a), op.need_rank(b)
        trailing = rank_a - axis - rank_b
        if trailing > 0:
            op.inputs(a, op.Unsqueeze(b, axes=list(range(rank_b, rank_b + trailing))))
    return op.drop("broadcast", "axis", "consumed_inputs")


TURNED = {"Add": "Add", "Mul": "Mul", "And": "And", "Or": "Or", "Xor": "Xor", "Equal": "Equal"} | {
    "Less": "Greater",
    "Greater": "Less",
}
"""The operator that says the same with A and B exchanged."""


def attribute_broadcast(op: OpBuilder, node: ir.Node) -> Replacement:
    """Say where B lies in A, or A in B; what only NumPy can broadcast is refused."""
    a, b = op.shape(op.x(0)), op.shape(op.x(1))
    if a is None or b is None:
        op.refuse("the shapes of its inputs are unknown", hint="possible if the file states shapes (value_info)")
    if _same(op, a, b):
        return None
    place, other = _place(a, b), _place(b, a)
    if place is not None:
        op.inputs(op.x(0), _alone(op, op.x(1), place, len(b)))
        return op.set(**place.attributes)
    if other is not None and node.op_type in TURNED:
        smaller = _alone(op, op.x(0), other, len(a))
        return op.emit(TURNED[node.op_type], [op.x(1), smaller], other.attributes)
    if other is not None and node.op_type == "Sub" and _is_floating(op):
        smaller = _alone(op, op.x(0), other, len(a))
        return op.emit("Add", [op.Neg(op.x(1)), smaller], other.attributes)
    reason = "both inputs are broadcast, or along axes that are not adjacent"
    raise op.refusal(reason, hint="possible with an Expand before it")


class Place(NamedTuple):
    """The sizes of B without the ones around them, how many go before, and the axis of A where they lie."""

    core: list[int | None]
    before: int
    axis: int

    def ones(self, rank: int) -> list[int]:
        """The axes of B around those."""
        return [axis for axis in range(rank) if not self.before <= axis < self.before + len(self.core)]

    @property
    def attributes(self) -> dict[str, int]:
        """How the older version says it; a single element fits anywhere."""
        return {"broadcast": 1, "axis": self.axis} if self.core else {"broadcast": 1}


def _alone(op: OpBuilder, b: ir.Value, place: Place, rank: int) -> ir.Value:
    """B without the ones around its sizes."""
    if len(place.core) == rank:
        return b
    if place.core.count(0) > 1:
        op.refuse("it broadcasts a tensor that has no elements along two axes")
    reshaped: ir.Value = op.Reshape(b, op.ints(*[dim or -1 for dim in place.core] or [1]))  # 0 would copy a size
    return reshaped


def _place(a: list[int | None], b: list[int | None]) -> Place | None:
    """Where B lies in A; ``None`` where it does not."""
    significant = [index for index, dim in enumerate(b) if dim != 1]
    first = significant[0] if significant else len(b)
    last = significant[-1] + 1 if significant else len(b)
    core = b[first:last]
    offset = len(a) - len(b) + first
    if len(b) > len(a) or None in core or core != a[offset : offset + len(core)]:
        return None
    return Place(core, first, offset)


def _is_floating(op: OpBuilder) -> bool:
    dtype = op.dtype(op.x(0))
    return dtype is not None and dtype.is_floating_point()


def _same(op: OpBuilder, a: list[int | None], b: list[int | None]) -> bool:
    if a == b and None not in a:
        return True
    return op.around.types.shape(op.x(0)) == op.around.types.shape(op.x(1)) and _named(op)


def _named(op: OpBuilder) -> bool:
    shape = op.around.types.shape(op.x(0))
    return shape is not None and all(isinstance(dim, int) or dim.value is not None for dim in shape)
