"""What rules that let a node change places with a transposition are made of; see ``SinkTransposes``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from entrepot.ir.opset.names import Names
from entrepot.ir.passes.graphs import bypass, has_references, is_fixed, replace, write_constant
from entrepot.ir.typing.query import Types

Perm = tuple[int, ...]


class Sinking:
    """One node behind transpositions.

    Args:
        node: The node.
        types: What is known of values.
        names: Those in use.
    """

    def __init__(self, node: ir.Node, types: Types, names: Names) -> None:
        self.node, self.types, self.names = node, types, names

    def redo(self, inputs: Sequence[ir.Value | None], perm: Perm, **changed: int) -> None:
        """The node on other inputs, and a transposition of its result."""
        node, output = self.node, self.node.outputs[0]
        again = ir.node(
            node.op_type, list(inputs), {**node.attributes, **{k: ir.AttrInt64(k, v) for k, v in changed.items()}}
        )
        again.metadata_props.update(node.metadata_props)
        again.name = self.names.fresh(f"{node.name or node.op_type}_before")
        result = again.outputs[0]
        result.name = self.names.fresh(f"{output.name}_before")
        result.type = ir.TensorType(kind) if (kind := self.types.dtype(output)) is not None else None
        shape = self.shape(output)
        if shape is not None and len(shape) == len(perm):
            result.shape = ir.Shape([shape[perm.index(axis)] for axis in range(len(perm))])  # type: ignore[misc]
        assert node.graph is not None
        node.graph.insert_before(node, again)
        self.turn(result, perm)

    def turn(self, result: ir.Value, perm: Perm) -> None:
        """The transposition of a value in place of the node."""
        if perm != tuple(range(len(perm))) or not bypass(self.node, result):
            replace(self.node, ir.node("Transpose", [result], {"perm": list(perm)}))

    def untransposed(self, value: ir.Value, perm: Perm) -> ir.Value:
        """What becomes the value when it is transposed."""
        if perm_of(value) == perm:
            return source_of(value)
        shape, rank = self.shape(value) or (), len(perm)
        back = [perm.index(axis) for axis in range(rank)]
        array = self.types.known.array(value)
        if array is not None:
            if array.size == 1:
                return value
            if array.ndim == 1 and is_fixed(value):
                return self.along(value, back.index(rank - 1), rank)
            wide = array.reshape([1] * (rank - array.ndim) + list(array.shape))
            return self.array(np.ascontiguousarray(wide.transpose(back)), str(value.name))
        if self.is_thin(value, perm):
            sizes = [-1 if not isinstance(shape[axis], int) else shape[axis] for axis in back]
            return self.before("Reshape", [value, self.constant(sizes, "shape")], [shape[axis] for axis in back], value)
        return self.before("Transpose", [value], [shape[axis] for axis in back], value, perm=back)

    def along(self, weight: ir.Value, axis: int, rank: int) -> ir.Value:
        """A weight of one axis, along a certain one of several."""
        form = [1] * rank
        form[axis] = (self.shape(weight) or [])[0]  # type: ignore[call-overload]
        return self.before("Reshape", [weight, self.constant(form, "form")], form, weight)

    def before(
        self, op_type: str, inputs: Sequence[ir.Value], shape: Sequence[object], like: ir.Value, **attributes: Any
    ) -> ir.Value:
        """What a further node computes, of the type of a value."""
        made = ir.node(op_type, list(inputs), dict(attributes))
        made.name = made.outputs[0].name = self.names.fresh(f"{like.name}_moved")
        made.metadata_props.update(self.node.metadata_props)
        made.outputs[0].type, made.outputs[0].shape = like.type, ir.Shape(shape)  # type: ignore[arg-type]
        assert self.node.graph is not None
        self.node.graph.insert_before(self.node, made)
        return made.outputs[0]

    def is_thin(self, value: ir.Value, perm: Perm) -> bool:
        """Whether a value of all axes has its elements in the same order, transposed or not."""
        shape = self.shape(value)
        return shape is not None and keeps_order(shape, [perm.index(axis) for axis in range(len(perm))])

    def shape(self, value: ir.Value | None) -> list[object] | None:
        """The sizes of a value's axes, where so much is known."""
        shape = self.types.shape(value)
        return None if shape is None else list(shape)

    def is_constant(self, value: ir.Value) -> bool:
        """Whether a value is known, and small."""
        return self.types.known.array(value) is not None

    def integers(self, at: int) -> list[int] | None:
        """The numbers that an input of the node is known to hold."""
        value = self.node.inputs[at] if len(self.node.inputs) > at else None
        array = None if value is None else self.types.known.array(value)
        return None if array is None else [int(item) for item in array.reshape(-1)]

    def constant(self, numbers: Sequence[object], what: str) -> ir.Value:
        """Integers before the node."""
        return write_constant(self.node, np.array(numbers, np.int64), what, self.names)

    def number(self, number: float, *, like: ir.Value) -> ir.Value:
        """A number of the type of a value, before the node."""
        kind = self.types.dtype(like)
        assert kind is not None
        return write_constant(self.node, np.array(number, kind.numpy()), "number", self.names)

    def skip(self, user: ir.Node) -> bool:
        """Let the node return what one that reads it returns, and remove that; whether that was possible."""
        return bypass(user, self.node.outputs[0])

    def array(self, array: np.ndarray, name: str) -> ir.Value:
        """A constant before the node."""
        return write_constant(self.node, array, f"of_{name}".replace("/", "_"), self.names)


def perm_of(value: ir.Value | None) -> Perm | None:
    """How a value was transposed, if it was."""
    node = None if value is None else value.producer()
    if node is None or node.op_type != "Transpose" or node.domain or has_references(node):
        return None
    return tuple(node.attributes.get_ints("perm", ())) or None


def keeps_order(shape: Sequence[object], perm: Sequence[int]) -> bool:
    """Whether only axes of size 1 move, so that a Reshape does the same."""
    if len(shape) != len(perm) or 0 in shape:
        return False
    wide = [axis for axis in perm if shape[axis] != 1]
    return wide == sorted(wide) and sum(not isinstance(shape[axis], int) for axis in wide) <= 1


def source_of(value: ir.Value | None) -> ir.Value:
    """What was transposed."""
    assert value is not None
    node = value.producer()
    assert node is not None
    source = node.inputs[0]
    assert source is not None
    return source


def ranked(axes: Sequence[int]) -> Perm:
    """The order of axes among themselves."""
    return tuple(sorted(axes).index(axis) for axis in axes)
