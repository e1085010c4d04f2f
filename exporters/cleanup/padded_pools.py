"""Zeros around the input of a maximum pooling, kept apart from it.

Pooling takes what it pads with for smaller than every number. onnxruntime (1.31) lets it do the padding all the same,
with any constant padding by zeros before it: windows of negative numbers then lack the zero at their edge.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import onnx_ir

from entrepot.ir.opset.names import Names
from entrepot.ir.passes.graphs import has_references, typed_graphs, write_constant
from entrepot.ir.typing.query import Types

_PADS, _VALUE, _AXES = 1, 2, 3
_NOT_NEGATIVE = frozenset({"Relu", "Sigmoid", "HardSigmoid", "Softmax", "Softplus", "Exp", "Abs", "Sqrt"})
_MOVES = frozenset({"Identity", "Transpose", "Reshape", "Squeeze", "Unsqueeze", "Slice", "DepthToSpace", "MaxPool"})
_COMBINES = {"Max": any, "Min": all, "Add": all, "Mul": all, "Concat": all}


def keep_padding_apart(model: onnx_ir.Model, weights: Collection[str]) -> None:
    """Pad with one axis more where the padding must not be taken over by the pooling that follows.

    Before: ``MaxPool(Pad(x, [0, 0, 1, 1] * 2))``. After: ``MaxPool(Squeeze(Pad(Unsqueeze(x, [0]), [0, 0, 0, 1, 1] *
    2), [0]))``, of which the two new nodes move nothing. Left as it is where ``x`` has no negative numbers.
    """
    names = Names(model)
    for graph, types in typed_graphs(model):
        if types.opsets.get("", 0) < 13:
            continue
        for node in [node for node in graph if node.op_type == "MaxPool" and not node.domain]:
            pad = node.inputs[0].producer() if node.inputs[0] is not None else None
            if pad is not None and pad.graph is node.graph and _may_be_absorbed(pad, types, weights):
                _pad_with_an_axis_more(pad, types, names)


def _may_be_absorbed(pad: onnx_ir.Node, types: Types, weights: Collection[str]) -> bool:
    if pad.op_type != "Pad" or pad.domain or has_references(pad):
        return False
    if pad.attributes.get_string("mode", "constant") != "constant" or len(pad.outputs[0].uses()) > 1:
        return False
    value = pad.inputs[_VALUE] if len(pad.inputs) > _VALUE else None
    known = np.zeros(()) if value is None else _known(value, types, weights)
    if known is None or known.any() or _known(pad.inputs[_PADS], types, weights) is None:
        return False
    return not _has_no_negatives(pad.inputs[0], types, weights)


def _has_no_negatives(value: onnx_ir.Value | None, types: Types, weights: Collection[str], depth: int = 6) -> bool:
    """Whether that follows from how a value is computed, looking back a few operators."""
    if value is None or value.name in weights or not depth:
        return False
    if (known := types.known.array(value)) is not None:
        return bool((known >= 0).all())
    node = value.producer()
    if node is None or node.domain or node.op_type in _NOT_NEGATIVE:
        return node is not None and not node.domain
    found = [_has_no_negatives(each, types, weights, depth - 1) for each in node.inputs]
    if node.op_type == "Clip":
        return any(found[:2]) and all(found[2:])
    if node.op_type in _MOVES:
        return found[0]
    return node.op_type in _COMBINES and _COMBINES[node.op_type](found)


def _pad_with_an_axis_more(pad: onnx_ir.Node, types: Types, names: Names) -> None:
    padded, x, graph = pad.outputs[0], pad.inputs[0], pad.graph
    pads = types.known.array(pad.inputs[_PADS])
    assert x is not None
    assert graph is not None
    assert pads is not None
    axis = write_constant(pad, np.array([0]), "front", names)
    wide = onnx_ir.node("Unsqueeze", [x, axis])
    narrow = onnx_ir.node("Squeeze", [padded, axis])
    result = narrow.outputs[0]
    wide.name = wide.outputs[0].name = names.fresh(f"{padded.name}_in")
    graph.insert_before(pad, wide)
    pad.replace_input_with(0, wide.outputs[0])
    if len(pad.inputs) > _AXES and (axes := pad.inputs[_AXES]) is not None:
        known = types.known.array(axes)
        assert known is not None
        pad.replace_input_with(_AXES, write_constant(pad, np.where(known < 0, known, known + 1), "axes", names))
    else:
        first, last = np.split(pads, 2)
        pad.replace_input_with(_PADS, write_constant(pad, np.array([0, *first, 0, *last]), "pads", names))
    graph.insert_after(pad, narrow)
    padded.replace_all_uses_with(result)
    narrow.replace_input_with(0, padded)
    result.type, result.shape = padded.type, padded.shape
    padded.shape = None
    narrow.name = result.name = names.fresh(f"{padded.name}_out")


def _known(value: onnx_ir.Value | None, types: Types, weights: Collection[str]) -> np.ndarray | None:
    return None if value is None or value.name in weights else types.known.array(value)
