"""Constants and what generates values from shapes.

| Constant | change |
|---|---|
| 9 | all element types; before, floats only, and the rest were initializers |
| 11 | ``sparse_value`` |
| 12 | ``value_float``, ``value_ints``, ... |
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from entrepot.ir.opset.adapters.parts.positions import numbers_along
from entrepot.ir.opset.bodies import expand
from entrepot.ir.opset.builder import LARGEST_CONSTANT, OpBuilder
from entrepot.ir.opset.rules import Replacement, adapter, decomposition, extended, unchanged
from entrepot.ir.opset.values import constant as constant_value

unchanged("Constant", 12, 13, 19, 21, 23, 24, 25)
unchanged("ConstantOfShape", 9, 20, 21, 23, 24, 25)
unchanged("EyeLike", 9, 22)
extended("Constant", 1, 9)
extended("Constant", 9, 11)
extended("Constant", 11, 12)
extended("Range", 11, 27)


@adapter("Constant", 12, 11)
def constant_as_tensor(op: OpBuilder, node: ir.Node) -> Replacement:
    """A tensor instead of the short forms."""
    if node.attributes.keys() & {"value", "sparse_value"}:
        return None
    value = constant_value(node)
    if value is None:
        op.refuse("it refers to an attribute of the enclosing function, which only version 12 can do")
    op.drop(*list(node.attributes))
    return op.set(value=ir.tensor(value) if value.dtype != object else _strings(value))


def _strings(value: np.ndarray) -> ir.StringTensor:
    encoded = np.array([item if isinstance(item, bytes) else str(item).encode() for item in value.ravel()], object)
    return ir.StringTensor(encoded.reshape(value.shape), shape=ir.Shape(value.shape))


@adapter("Constant", 11, 9)
def constant_without_sparse(op: OpBuilder, node: ir.Node) -> Replacement:
    """A sparse value is written dense."""
    if "sparse_value" not in node.attributes:
        return None
    value = constant_value(node)
    if value is None:
        op.refuse("its sparse value is too large to be written dense")
    op.drop("sparse_value")
    return op.set(value=ir.tensor(value))


@adapter("Constant", 9, 1)
def constant_as_initializer(op: OpBuilder, node: ir.Node) -> Replacement:
    """Constant held floats only: other types become weights of the main graph."""
    tensor = node.attributes["value"].as_tensor()
    if tensor.dtype in (ir.DataType.FLOAT, ir.DataType.DOUBLE, ir.DataType.FLOAT16):
        return None
    return op.initializer(tensor)


@decomposition("ConstantOfShape", 9)
def constant_of_shape(op: OpBuilder, _node: ir.Node) -> Replacement:
    """A constant where the shape is known, else one element expanded to it."""
    value = op.attr("value")
    fill = np.zeros(1, np.float32) if value is None else value.numpy()
    shape = op.known(op.x())
    if shape is not None and np.prod(shape) <= LARGEST_CONSTANT:
        return op.const(np.full(shape.tolist(), fill.item(), fill.dtype))
    return op.Expand(op.const(fill.reshape(())), op.x())


@decomposition("EyeLike", 9)
def eye_like(op: OpBuilder, _node: ir.Node) -> Replacement:
    """A constant where the shape is fixed, else ones where the indices along both axes agree."""
    shape = op.shape(op.x())
    dtype = ir.DataType(op.attr("dtype", 0)) or op.need_dtype(op.x())
    if shape is None or None in shape or (shape[0] or 0) * (shape[1] or 0) > LARGEST_CONSTANT:
        rows, columns = (numbers_along(op, op.Shape(op.x()), axis, 2) for axis in range(2))
        return op.Cast(op.Equal(op.Add(rows, op.ints(op.attr("k", 0))), columns), to=int(dtype))
    return op.const(np.eye(shape[0] or 0, shape[1] or 0, op.attr("k", 0)), dtype=dtype)


@adapter("Range", 27, 11)
def range_of_narrow_floats(op: OpBuilder, node: ir.Node) -> Replacement:
    """Count float16 and bfloat16 in the stash type, as version 27 does."""
    dtype, stash = op.need_dtype(op.x()), op.attr("stash_type", 1)
    op.drop("stash_type")
    if dtype not in (ir.DataType.FLOAT16, ir.DataType.BFLOAT16):
        return None
    wide = op.Range(*(op.Cast(value, to=stash) for value in node.inputs))
    return op.Cast(wide, to=int(dtype))


def _counted(op: OpBuilder, node: ir.Node) -> Replacement:
    # the body of AffineGrid counts up to vectors of one, which a Loop would mistake for its state
    op.inputs(*(value if op.rank(value) == 0 else op.Reshape(value, op.ints()) for value in node.inputs))
    if op.dtype(op.x()) != ir.DataType.INT16:
        return expand(op, node)
    op.inputs(*(op.Cast(value, to=int(ir.DataType.INT32)) for value in node.inputs))  # no operator added int16 then
    results = expand(op, node)
    assert isinstance(results, list)
    return [None if value is None else op.Cast(value, to=int(ir.DataType.INT16)) for value in results]


@decomposition("Range", 11)
def range_as_loop(op: OpBuilder, node: ir.Node) -> Replacement:
    """A constant where the bounds are known, else the loop of the schema's body."""
    bounds = [op.known(value) for value in node.inputs]
    if any(bound is None for bound in bounds):
        return _counted(op, node)
    start, limit, delta = (bound.item() for bound in bounds if bound is not None)
    count = max(0, int(np.ceil((limit - start) / delta)))
    if count > LARGEST_CONSTANT:
        return expand(op, node)
    return op.const(start + np.arange(count) * delta, dtype=op.need_dtype(op.x()))
