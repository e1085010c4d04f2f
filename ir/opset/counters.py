"""Loops whose bodies take the number of the turn as a vector of one, which onnxruntime allows and tf2onnx writes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import onnx_ir as ir

from entrepot.ir.copying import copy_graphs
from entrepot.ir.model import Model
from entrepot.ir.opset.names import Names
from entrepot.ir.opset.scopes import scopes


def with_plain_counters(model: Model) -> Model:
    """The same model with counters as the standard has them, without axes; itself if it has no others."""
    if model.parsed is not None or next(_vector_counters(model.ir), None) is None:  # a parsed file has no bodies
        return model
    graphs = copy_graphs(model.ir)
    names = Names(graphs)
    for body in list(_vector_counters(graphs)):
        _unsqueeze(body, names)
    return Model(graphs, path=model.path)


def _vector_counters(model: ir.Model) -> Iterator[ir.Graph]:
    for scope in scopes(model):
        for node in scope.all_nodes():
            if node.op_type == "Loop" and not node.domain and "body" in node.attributes:
                body = node.attributes["body"].as_graph()
                if body.inputs and body.inputs[0].shape is not None and body.inputs[0].shape.rank() == 1:
                    yield body


def _unsqueeze(body: ir.Graph, names: Names) -> None:
    given = body.inputs[0]
    counter = ir.Value(name=names.fresh(f"{given.name}/number"), type=given.type, shape=ir.Shape([]))
    axes = ir.node("Constant", [], {"value": ir.tensor(np.array([0]))}, name=names.fresh(f"{given.name}/axes"))
    vector = ir.node("Unsqueeze", [counter, axes.outputs[0]], name=names.fresh(f"{given.name}/vector"))
    axes.outputs[0].name = names.fresh(f"{given.name}/axes")
    vector.outputs[0].type, vector.outputs[0].shape = given.type, given.shape
    body.inputs[0] = counter
    ir.convenience.replace_all_uses_with(given, vector.outputs[0], replace_graph_outputs=True)
    vector.outputs[0].name = given.name
    first = next(iter(body), None)
    if first is None:
        body.extend([axes, vector])
    else:
        body.insert_before(first, [axes, vector])
