"""Products with weights that alone are quantised, kept exact on onnxruntime.

It (1.31) takes ``MatMul(x, DequantizeLinear(w))`` for a wish to quantise ``x`` as well, which costs half a percent,
unless its session is told otherwise. It does not recognise a weight that has another axis on its way.
"""

from __future__ import annotations

import numpy as np
import onnx_ir

from entrepot.exporters.torch.quantised.stored import is_kept
from entrepot.ir.passes.drop_idle import DropIdle
from entrepot.ir.passes.fold_constants import FoldConstants
from entrepot.runtime.planning.constants import evaluate


def keep_exact(model: onnx_ir.Model) -> None:
    """Give every such weight one more axis, and take it off after it is dequantised.

    Before: ``DequantizeLinear(w) -> MatMul``. After: ``DequantizeLinear(w of rank 3) -> Squeeze -> MatMul``.
    """
    nodes = list(onnx_ir.traversal.RecursiveGraphIterator(model.graph))
    if not any(node.op_type == "DequantizeLinear" for node in nodes):
        return
    weights = list(model.graph.initializers)
    for step in (FoldConstants(evaluate, weights), DropIdle(weights)):  # what lies between a weight and its product
        step(model)
    found = [
        node for node in onnx_ir.traversal.RecursiveGraphIterator(model.graph) if node.op_type in ("MatMul", "Gemm")
    ]
    for source in dict.fromkeys(source for node in found if (source := _quantised_weight(node)) is not None):
        _turn(source)
        _detour(model, source)


def _quantised_weight(node: onnx_ir.Node) -> onnx_ir.Node | None:
    """What dequantises the right operand of a product, if nothing dequantises the left one."""
    left, right = node.inputs[0], node.inputs[1]
    producer = None if right is None else right.producer()
    while producer is not None and producer.op_type == "Transpose" and producer.inputs[0] is not None:
        producer = producer.inputs[0].producer()
    if producer is None or producer.op_type != "DequantizeLinear" or _is_dequantised(left):
        return None
    weight = producer.inputs[0]
    known = weight is not None and is_kept(weight)
    return producer if known and weight is not None and weight.shape is not None and weight.shape.rank() == 2 else None


def _is_dequantised(value: onnx_ir.Value | None) -> bool:
    producer = None if value is None else value.producer()
    return producer is not None and producer.op_type == "DequantizeLinear"


def _turn(source: onnx_ir.Node) -> None:
    """Let the weight be transposed, which is done where it is stored, if all that reads it is a Transpose."""
    (weight, scale), result, graph = source.inputs[:2], source.outputs[0], source.graph
    readers = [use.node for use in result.uses()]
    by_axis = scale is not None and scale.shape is not None and scale.shape.rank() < 2
    if len(readers) != 1 or readers[0].op_type != "Transpose" or not by_axis or graph is None:
        return
    (old,) = readers
    order = old.attributes.get_ints("perm", (1, 0))
    turned = onnx_ir.Node("", "Transpose", [weight], old.attributes.values())
    turned.metadata_props.update(old.metadata_props)
    source.replace_input_with(0, turned.outputs[0])
    if "axis" in source.attributes:
        axis = source.attributes.get_int("axis", 1)
        source.attributes["axis"] = onnx_ir.AttrInt64("axis", list(order).index(axis % 2))
    turned.outputs[0].name = f"{result.name}_turned"
    turned.outputs[0].shape, turned.outputs[0].type = old.outputs[0].shape, None if weight is None else weight.type
    result.shape = old.outputs[0].shape
    old.outputs[0].replace_all_uses_with(result, replace_graph_outputs=True)
    graph.insert_before(source, turned)
    graph.remove(old, safe=True)


def _detour(model: onnx_ir.Model, source: onnx_ir.Node) -> None:
    weight, result, graph = source.inputs[0], source.outputs[0], source.graph
    assert isinstance(graph, onnx_ir.Graph)
    assert weight is not None
    if "axis" in source.attributes:
        axis = source.attributes.get_int("axis", 1)
        source.attributes["axis"] = onnx_ir.AttrInt64("axis", axis % 2 + 1)
    zero = onnx_ir.val(
        f"{weight.name}_axis", const_value=onnx_ir.tensor(np.zeros(1, np.int64), name=f"{weight.name}_axis")
    )
    if zero.name not in model.graph.initializers:
        model.graph.initializers[str(zero.name)] = zero
    axes = model.graph.initializers[str(zero.name)]
    higher = onnx_ir.Node("", "Unsqueeze", [weight, axes])
    lower = onnx_ir.Node("", "Squeeze", [None, axes])
    for node in (higher, lower):
        node.metadata_props.update(source.metadata_props)
    result.replace_all_uses_with(lower.outputs[0])
    source.replace_input_with(0, higher.outputs[0])
    lower.replace_input_with(0, result)
    lower.outputs[0].shape, lower.outputs[0].type, result.shape = result.shape, result.type, None
    graph.insert_before(source, higher)
    graph.insert_after(source, lower)
