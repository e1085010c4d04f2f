"""What shapes say to a pass: which sizes are certainly equal, and how a Reshape gets somewhere with a constant."""

from __future__ import annotations

import onnx_ir as ir

from entrepot.ir.opset.extents import Axis, Extent, Extents, is_named
from entrepot.ir.typing.query import Types


def same_dim(one: int | ir.SymbolicDim | None, other: int | ir.SymbolicDim | None) -> bool:
    """Whether two sizes are certainly equal: one number, or one symbol."""
    if isinstance(one, int) or isinstance(other, int):
        return one == other
    return one is not None and other is not None and is_named(one) and one.value == other.value


def same_shape(one: ir.Shape | None, other: ir.Shape | None) -> bool:
    """Whether two shapes are certainly equal."""
    if one is None or other is None or len(one) != len(other):
        return False
    return all(same_dim(a, b) for a, b in zip(one, other, strict=True))


def keeps_shape(node: ir.Node, types: Types) -> bool:
    """Whether the first output certainly has the shape of the first input, and the node is no check."""
    if not same_shape(types.shape(node.inputs[0]), types.shape(node.outputs[0])):
        return False
    return not any(is_checked(value, types) for value in node.inputs[1:])


def is_checked(shape: ir.Value | None, types: Types) -> bool:
    """Whether a shape depends on a Reshape to a computed shape: one that fails where the model's inputs do not fit.

    A graph has no other way to refuse its inputs, so what depends on such a node has to stay.
    """
    pending, seen = [shape], set[ir.Node]()
    while pending:
        value = pending.pop()
        node = None if value is None else value.producer()
        if value is None or node is None or node in seen or types.known.array(value) is not None:
            continue
        seen.add(node)
        if node.op_type == "Reshape" and types.known.array(node.inputs[1] if len(node.inputs) > 1 else None) is None:
            return True
        if node.op_type not in ("Shape", "Size"):
            pending.extend(node.inputs)
    return False


def extents_of(output: ir.Value, shape: ir.Value | None, types: Types) -> list[Extent] | None:
    """The sizes of ``output``, from its own shape and the vector it is made from; ``None`` without a rank."""
    stated = types.shape(output)
    listed = None if shape is None else Extents(types.known, types).of(shape)
    if listed is not None and (0 in listed or -1 in listed):
        listed = None  # these stand for other sizes
    if stated is None:
        return listed
    own: list[Extent] = [
        dim if isinstance(dim, int) else Axis(output, axis) if is_named(dim) else None
        for axis, dim in enumerate(stated)
    ]
    if listed is None or len(listed) != len(own):
        return own
    return [a if isinstance(a, int) or b is None else b for a, b in zip(own, listed, strict=True)]


def as_constant(data: ir.Value, sizes: list[Extent], types: Types) -> list[int] | None:
    """What a Reshape of ``data`` to these sizes may be given; ``None`` where they have to be computed.

    0 stands for the size that ``data`` has there, -1 for the one size that is left. Both at once would fail, or mean
    something else, where the copied axis is empty.
    """
    if 0 in sizes or not sizes:
        return None
    if sum(not isinstance(size, int) for size in sizes) == 1:
        return [size if isinstance(size, int) else -1 for size in sizes]
    copied = [size if isinstance(size, int) else 0 if is_axis(size, data, axis, types) else None
              for axis, size in enumerate(sizes)]  # fmt: skip
    return None if None in copied else [size for size in copied if size is not None]


def is_axis(size: Extent, data: ir.Value, axis: int, types: Types) -> bool:
    """Whether a size is certainly that of an axis of ``data``."""
    shape = types.shape(data)
    return shape is not None and axis < len(shape) and Extents(types.known, types).same(size, data, axis)
