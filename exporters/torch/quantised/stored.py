"""Weights that are kept as integers, dequantised by the node that ONNX has for it.

torch spells it: ``(weight.to(float) - zero) * scale``, or multiplies a product with the integers by their scale.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import onnx_ir

_FLOAT = onnx_ir.DataType.FLOAT
_MOVES = ("Identity", "Reshape", "Squeeze", "Transpose", "Unsqueeze")
_BYTES = (onnx_ir.DataType.INT8, onnx_ir.DataType.UINT8)


@dataclass(frozen=True)
class _Steps:
    """Which axes of a weight have steps of their own: the first ones, all one by one, or a single one."""

    sizes: tuple[int, ...]
    axes: tuple[int, ...]

    @property
    def grouped(self) -> bool:
        """Whether the weight has to be a matrix of groups, since a node takes steps along one axis."""
        return len(self.axes) > 1


def dequantise_by_node(model: onnx_ir.Model) -> None:
    """Put DequantizeLinear in the place of the arithmetic, in every graph.

    Before: ``Cast(w) -> Sub(z) -> Mul(s)``, or ``MatMul(x, Cast(w)) -> Mul(s)``. After: ``DequantizeLinear(w, s, z)``,
    or ``MatMul(x, DequantizeLinear(w, s))``.
    """
    for node in list(onnx_ir.traversal.RecursiveGraphIterator(model.graph)):
        if node.op_type == "Mul" and not node.outputs[0].is_graph_output():
            left, right = node.inputs
            assert left is not None
            assert right is not None
            for value, scale in ((left, right), (right, left)):
                if _spelled(node, value, scale) or _after_product(node, value, scale):
                    break


def _spelled(node: onnx_ir.Node, value: onnx_ir.Value, scale: onnx_ir.Value) -> bool:
    producer, zero = value.producer(), None
    if producer is not None and producer.op_type == "Sub":
        zero = _before_cast(producer.inputs[1])
        producer = None if zero is None or producer.inputs[0] is None else producer.inputs[0].producer()
    weight = None if producer is None or not producer.outputs else _before_cast(producer.outputs[0])
    if weight is None or not is_kept(weight) or (zero is not None and zero.dtype != weight.dtype):
        return False
    steps = _steps(weight, scale)
    if steps is None or (zero is not None and _sizes(zero) != _sizes(scale)):
        return False
    node.outputs[0].replace_all_uses_with(_dequantised(node, weight, scale, zero, steps))
    return True


def _after_product(node: onnx_ir.Node, value: onnx_ir.Value, scale: onnx_ir.Value) -> bool:
    product = value.producer()
    if product is None or product.op_type != "MatMul" or len(value.uses()) != 1:
        return False
    cast, turned = _of_matrix(product.inputs[1])
    weight = None if cast is None else _before_cast(cast.outputs[0])
    if cast is None or weight is None or not is_kept(weight):
        return False
    sizes = _sizes(weight)
    if _sizes(scale) not in ((), (1,), (sizes[0 if turned else 1],)) or scale.dtype != _FLOAT:
        return False
    axes = (0 if turned else 1,) if math.prod(_sizes(scale)) != 1 else ()
    cast.outputs[0].replace_all_uses_with(_dequantised(cast, weight, scale, None, _Steps(sizes, axes)))
    node.outputs[0].replace_all_uses_with(value)
    return True


def _of_matrix(value: onnx_ir.Value | None) -> tuple[onnx_ir.Node | None, bool]:
    """The cast that a matrix comes from, for it alone, and whether rows became columns on the way."""
    turned, node = False, None if value is None else value.producer()
    while node is not None and len(node.outputs[0].uses()) == 1 and len(_sizes(node.outputs[0])) == 2:
        if node.op_type == "Cast":
            return node, turned
        if node.op_type not in ("Transpose", "Identity") or node.inputs[0] is None:
            break
        turned ^= node.op_type == "Transpose" and tuple(node.attributes.get_ints("perm", [1, 0])) == (1, 0)
        node = node.inputs[0].producer()
    return None, turned


def is_kept(value: onnx_ir.Value) -> bool:
    """Whether a value is a weight, perhaps in another arrangement."""
    node = value.producer()
    while node is not None and node.op_type in _MOVES and node.inputs[0] is not None:
        value, node = node.inputs[0], node.inputs[0].producer()
    return value.is_initializer()


def _before_cast(value: onnx_ir.Value | None) -> onnx_ir.Value | None:
    """What a value of floats was as bytes."""
    producer = None if value is None else value.producer()
    if producer is None or producer.op_type != "Cast" or producer.attributes.get_int("to", 0) != _FLOAT:
        return None
    before = producer.inputs[0]
    return before if before is not None and before.dtype in _BYTES else None


def _sizes(value: onnx_ir.Value) -> tuple[int, ...]:
    """Of a value whose shape is known; else a size that fits nothing."""
    sizes = tuple(value.shape) if value.shape is not None else (-1,)
    return tuple(size if isinstance(size, int) else -1 for size in sizes)


def _steps(weight: onnx_ir.Value, scale: onnx_ir.Value) -> _Steps | None:
    sizes, given = _sizes(weight), _sizes(scale)
    given = (1,) * (len(sizes) - len(given)) + given
    if scale.dtype != _FLOAT or len(given) != len(sizes) or not sizes:
        return None
    axes = tuple(axis for axis, size in enumerate(given) if size != 1)
    fits = all(given[axis] == sizes[axis] for axis in axes)
    return _Steps(sizes, axes) if fits and (len(axes) < 2 or axes == tuple(range(len(axes)))) else None


def _dequantised(
    at: onnx_ir.Node, weight: onnx_ir.Value, scale: onnx_ir.Value, zero: onnx_ir.Value | None, steps: _Steps
) -> onnx_ir.Value:
    """Nodes before ``at`` that give the numbers of a weight."""
    rows = math.prod(steps.sizes[axis] for axis in steps.axes)
    shape = [rows] if steps.axes else []
    source = _reshaped(at, weight, (rows, math.prod(steps.sizes) // max(rows, 1))) if steps.grouped else weight
    parts = [_reshaped(at, each, shape) for each in (scale, zero) if each is not None]
    axis = steps.axes[0] if steps.axes else 0
    node = onnx_ir.node("DequantizeLinear", [source, *parts], {"axis": axis} if steps.axes else {})
    _insert(at, node, source.shape)
    return _reshaped(at, node.outputs[0], steps.sizes) if steps.grouped else node.outputs[0]


def _reshaped(at: onnx_ir.Node, value: onnx_ir.Value, shape: Sequence[int]) -> onnx_ir.Value:
    if _sizes(value) == tuple(shape):
        return value
    sizes = onnx_ir.node("Constant", [], {"value": onnx_ir.tensor(np.array(shape, np.int64))})
    node = onnx_ir.node("Reshape", [value, sizes.outputs[0]])
    _insert(at, sizes, onnx_ir.Shape([len(shape)]), onnx_ir.DataType.INT64)
    _insert(at, node, onnx_ir.Shape(shape), value.dtype)
    return node.outputs[0]


def _insert(
    at: onnx_ir.Node,
    node: onnx_ir.Node,
    shape: onnx_ir.Shape | None,
    kind: onnx_ir.DataType | None = _FLOAT,
) -> None:
    assert at.graph is not None
    node.metadata_props.update(at.metadata_props)
    result = node.outputs[0]
    result.shape, result.type = shape, None if kind is None else onnx_ir.TensorType(kind)
    at.graph.insert_before(at, node)
