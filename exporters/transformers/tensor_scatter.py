"""Writing into caches with the operator that runtimes do in place, from the opset on that has it."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from entrepot.ir.model import Model
from entrepot.ir.passes.drop_unused import DropUnused
from entrepot.runtime.generation.manifest import State

SINCE = 24
"""The opset that brought TensorScatter."""


def with_tensor_scatter(model: Model, states: Sequence[State], past_length: str) -> Model:
    """The decoder with TensorScatter where a state is written to.

    Before: ``present = ScatterND(past, places, new)``. After: ``present = TensorScatter(past, new, starts)``.
    """
    whole = model.ir.clone()
    inputs = {value.name: value for value in whole.graph.inputs}
    pasts = [inputs[state.past] for state in states]
    found = [node for past in pasts for node in past.consumers() if _writes(node, past)]
    if found and model.opset >= SINCE:
        starts = _starts(whole.graph, inputs[past_length], pasts[0])
        for node in found:
            _change(node, starts)
        DropUnused()(whole)
    return Model(whole, report=model.report)


def _writes(node: ir.Node, past: ir.Value) -> bool:
    return node.op_type == "ScatterND" and not node.domain and node.inputs[0] is past


def _starts(graph: ir.Graph, past_length: ir.Value, past: ir.Value) -> ir.Value:
    """Where each row is written to: all rows at the same place."""
    rows = ir.node("Shape", [past], {"start": 0, "end": 1})
    starts = ir.node("Expand", [past_length, rows.outputs[0]])
    rows.outputs[0].name, starts.outputs[0].name = "rows_of_past", "starts"
    starts.outputs[0].dtype = ir.DataType.INT64
    graph.insert_before(graph.node(0), [rows, starts])
    return starts.outputs[0]


def _change(node: ir.Node, starts: ir.Value) -> None:
    node.op_type, node.version = "TensorScatter", None
    node.replace_input_with(1, node.inputs[2])
    node.replace_input_with(2, starts)
    node.attributes.clear()
    node.attributes["axis"] = ir.AttrInt64("axis", -2)
