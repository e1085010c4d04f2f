"""A backend test put inside something: a branch of an If, the body of a Loop, a model-local function.

What can be converted at the top of a model can be converted there too, and computes the same thing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import onnx
from onnx import TensorProto, helper

from tests.judges.verdict import Sample

Place = Callable[[Sample], "onnx.ModelProto | None"]


def inside(sample: Sample, place: str) -> Sample | None:
    """The sample inside a ``branch``, ``loop`` or ``function``; ``None`` where that place cannot hold it."""
    if "" not in {item.domain for item in sample.model.opset_import} or sample.model.functions:
        return None
    model = PLACES[place](sample)
    if model is None:
        return None
    expected = [np.asarray(value)[None] for value in sample.expected] if place == "loop" else sample.expected
    return replace(sample, name=f"{sample.name}#{place}", model=model, expected=expected)


def _branch(sample: Sample) -> onnx.ModelProto | None:
    """Both branches of an If are the test; its inputs are captured from outside."""
    then, other = _body(sample, "then/"), _body(sample, "else/")
    if then is None or other is None:
        return None
    model = _emptied(sample.model)
    model.graph.initializer.append(helper.make_tensor("here", TensorProto.BOOL, [], [True]))
    outputs = [value.name for value in sample.model.graph.output]
    model.graph.node.append(helper.make_node("If", ["here"], outputs, "if", then_branch=then, else_branch=other))
    return model


def _loop(sample: Sample) -> onnx.ModelProto | None:
    """A Loop with one iteration, which adds an axis of size one to its outputs."""
    body = _body(sample, "body/")
    if body is None:
        return None
    body.input.append(helper.make_tensor_value_info("turn", TensorProto.INT64, []))
    body.input.append(helper.make_tensor_value_info("on", TensorProto.BOOL, []))
    body.node.append(helper.make_node("Identity", ["on"], ["still on"]))
    body.output.insert(0, helper.make_tensor_value_info("still on", TensorProto.BOOL, []))
    model = _emptied(sample.model)
    model.graph.initializer.append(helper.make_tensor("turns", TensorProto.INT64, [], [1]))
    model.graph.initializer.append(helper.make_tensor("start", TensorProto.BOOL, [], [True]))
    for value in model.graph.output:
        if value.type.tensor_type.HasField("shape"):
            value.type.tensor_type.shape.dim.insert(0, onnx.TensorShapeProto.Dimension(dim_value=1))
    outputs = [value.name for value in model.graph.output]
    model.graph.node.append(helper.make_node("Loop", ["turns", "start"], outputs, "loop", body=body))
    return model


def _function(sample: Sample) -> onnx.ModelProto | None:
    """The test is a function of its inputs; its weights are constants inside."""
    graph = sample.model.graph
    versions = {item.domain: item.version for item in sample.model.opset_import}
    if versions[""] < INTEGER_CONSTANTS or graph.sparse_initializer:
        return None
    given = [value.name for value in graph.input]
    outputs = [value.name for value in graph.output]
    constants = [
        helper.make_node("Constant", [], [item.name], value=item)
        for item in graph.initializer
        if item.name not in given
    ]
    imports = list(sample.model.opset_import)
    model = _emptied(sample.model)
    model.graph.initializer.extend(item for item in graph.initializer if item.name in given)
    model.functions.append(helper.make_function("local", "Test", given, outputs, [*constants, *graph.node], imports))
    model.opset_import.append(helper.make_opsetid("local", 1))
    model.ir_version = max(model.ir_version, 8)
    model.graph.node.append(helper.make_node("Test", given, outputs, "call", domain="local"))
    return model


INTEGER_CONSTANTS = 9
"""The opset from which a Constant holds any element type."""

PLACES: dict[str, Place] = {"branch": _branch, "loop": _loop, "function": _function}


def _emptied(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model without anything between its inputs and its outputs."""
    new = onnx.ModelProto()
    new.CopyFrom(model)
    for field in ("node", "initializer", "sparse_initializer", "value_info"):
        new.graph.ClearField(field)
    return new


def _body(sample: Sample, prefix: str) -> onnx.GraphProto | None:
    """The graph as a body that captures the inputs; ``None`` where outputs are no tensors or weights can be fed."""
    graph = sample.model.graph
    given = {value.name for value in graph.input}
    tensors = all(value.type.HasField("tensor_type") for value in graph.output)
    passed_through = given & {value.name for value in graph.output}
    if not tensors or passed_through or given & {item.name for item in graph.initializer}:
        return None
    body = onnx.GraphProto()
    body.CopyFrom(graph)
    body.ClearField("input")
    body.name = prefix.strip("/")
    _rename(body, prefix, given)
    return body


def _rename(graph: onnx.GraphProto, prefix: str, kept: set[str]) -> None:
    """Put a prefix before every name but the captured ones; a body may not reuse a name from outside."""

    def new(name: str) -> str:
        return name if not name or name in kept else prefix + name

    for node in graph.node:
        node.input[:] = map(new, node.input)
        node.output[:] = map(new, node.output)
        node.name = new(node.name)
        for attribute in node.attribute:
            for inner in ([attribute.g] if attribute.HasField("g") else []) + list(attribute.graphs):
                _rename(inner, prefix, kept)
    for field in (graph.initializer, graph.value_info, graph.input, graph.output):
        for item in field:
            item.name = new(item.name)
    for sparse in graph.sparse_initializer:
        sparse.values.name = new(sparse.values.name)
