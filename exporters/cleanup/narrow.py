"""Quantised weights of four bits, which frameworks keep in eight, in four."""

from __future__ import annotations

import onnx_ir

_FIRST_OPSET = 21
"""With types of four bits, and DequantizeLinear for them; below it they stay bytes, which say the same."""

_NARROW = {
    onnx_ir.DataType.INT8: (onnx_ir.DataType.INT4, -8, 7),
    onnx_ir.DataType.UINT8: (onnx_ir.DataType.UINT4, 0, 15),
}


def narrow_weights(model: onnx_ir.Model) -> None:
    """Store weights in half the space where each step, and each zero point, is a number of four bits.

    Before: ``DequantizeLinear(w of int8, scale, zero of int8)``. After: the same of int4.
    """
    if model.graph.opset_imports.get("", 0) < _FIRST_OPSET:
        return
    for node in list(onnx_ir.traversal.RecursiveGraphIterator(model.graph)):
        if node.op_type != "DequantizeLinear" or node.domain:
            continue
        values = [node.inputs[at] for at in (0, 2) if at < len(node.inputs) and node.inputs[at] is not None]
        kept = [value for value in values if value is not None]
        if all(_fits(value) for value in kept):
            for value in kept:
                _narrow(value)


def _fits(value: onnx_ir.Value) -> bool:
    if not value.is_initializer() or value.const_value is None or value.dtype not in _NARROW:
        return False
    if value.is_graph_output() or any(node.op_type != "DequantizeLinear" for node, _ in value.uses()):
        return False
    _, least, most = _NARROW[value.dtype]
    steps = value.const_value.numpy()
    return bool(steps.size and steps.min() >= least and steps.max() <= most)


def _narrow(value: onnx_ir.Value) -> None:
    assert value.const_value is not None
    assert value.dtype is not None
    if value.dtype not in _NARROW:
        return  # the zero point of two nodes
    kind = _NARROW[value.dtype][0]
    steps = value.const_value.numpy().astype(kind.numpy())
    value.const_value = onnx_ir.Tensor(steps, dtype=kind, name=value.name)
    value.type = onnx_ir.TensorType(kind)
