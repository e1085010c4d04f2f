"""The nodes and weights that some values of a graph need, copied into a model of their own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import onnx_ir
from onnx_ir.passes import common

from entrepot.ir.errors import ConversionError, ModelFormatError
from entrepot.ir.inference import scope_types
from entrepot.ir.io.graphs import QUANTIZATION
from entrepot.ir.opset.names import Names
from entrepot.ir.subgraphs import subgraphs
from entrepot.ir.typing.spec import Spec


def values_of(graph: onnx_ir.Graph) -> dict[str, onnx_ir.Value]:
    """The values of a graph by name; those of bodies are not among them."""
    made = (output for node in graph for output in node.outputs)
    return {value.name: value for value in (*graph.inputs, *graph.initializers.values(), *made) if value.name}


@dataclass
class Part:
    """What some values need, down to where the model is cut.

    Attributes:
        nodes: Those of the graph itself; their bodies come with them.
        inputs: Inputs of the graph that are reached, in that order.
        weights: Initializers that are reached.
    """

    nodes: set[onnx_ir.Node] = field(default_factory=set)
    inputs: dict[onnx_ir.Value, None] = field(default_factory=dict)
    weights: set[onnx_ir.Value] = field(default_factory=set)

    def follow(self, ends: Sequence[onnx_ir.Value], graph: onnx_ir.Graph, cuts: set[onnx_ir.Value]) -> None:
        """Walk back from ``ends``."""
        pending, seen = list(ends), set(cuts)
        while pending:
            value = pending.pop()
            if value in seen:
                continue
            seen.add(value)
            node = value.producer()
            if node is not None:
                if node not in self.nodes:
                    self.nodes.add(node)
                    pending.extend(_read_by(node, graph))
            elif value.is_initializer():
                self.weights.add(value)
            else:
                self.inputs[value] = None


def _read_by(node: onnx_ir.Node, graph: onnx_ir.Graph) -> Iterator[onnx_ir.Value]:
    """What a node reads of its graph, by itself or in its bodies."""
    yield from (value for value in node.inputs if value is not None)
    for body in subgraphs(node):
        for inner in body.all_nodes():
            yield from (value for value in inner.inputs if value is not None and value.graph is graph)


def assemble(
    model: onnx_ir.Model, cuts: Sequence[onnx_ir.Value], ends: Sequence[onnx_ir.Value], found: Part
) -> onnx_ir.Model:
    """A model of copied nodes and shared weights.

    Args:
        model: The whole; not changed.
        cuts: Its values that become inputs.
        ends: Its values that become outputs.
        found: What these need.

    Raises:
        ConversionError: A type or rank is not known.
        ModelFormatError: The graph is not sorted.
    """
    graph = model.graph
    types = scope_types(model)[graph]
    specs = {value: _known(value, types.spec(value)) for value in (*cuts, *ends)}
    defaults = [value for value in graph.inputs if value in found.weights and value not in specs]
    view = onnx_ir.GraphView(
        [*cuts, *defaults], ends, nodes=[node for node in graph if node in found.nodes],
        initializers=[value for value in graph.initializers.values() if value in found.weights],
        doc_string=graph.doc_string, opset_imports=graph.opset_imports, name=graph.name,
        metadata_props=graph.metadata_props,
    )  # fmt: skip
    part = _like(model, _cloned(view))
    for value, old in zip(part.graph.inputs, cuts, strict=False):
        _become_input(part, value)
        value.type, value.shape = specs[old]
    for value, old in zip(part.graph.outputs, ends, strict=True):
        value.type, value.shape = specs[old]
    _tidy(part)
    return part


def _known(value: onnx_ir.Value, spec: Spec) -> Spec:
    """Type and shape of a value at the cut, where the format requires them."""
    missing = "type" if spec.type is None else "rank" if _lacks_rank(spec) else ""
    if missing:
        node = value.producer()
        raise ConversionError(
            f"its {missing} is neither in the file nor can it be inferred",
            value=value.name,
            node=None if node is None else f"{node.op_type} node '{node.name or ''}'",
            hint="cut the model at another value, or add what is missing to the file's value_info",
        )
    return spec


def _lacks_rank(spec: Spec) -> bool:
    return isinstance(spec.type, onnx_ir.TensorType | onnx_ir.SparseTensorType) and spec.shape is None


def _cloned(view: onnx_ir.GraphView) -> onnx_ir.Graph:
    try:
        return view.clone()
    except RuntimeError as error:  # raised by onnx_ir if a node comes before one that it reads
        raise ModelFormatError("the nodes of the graph are not in the order of their use", graph=view.name) from error


def _like(model: onnx_ir.Model, graph: onnx_ir.Graph) -> onnx_ir.Model:
    return onnx_ir.Model(
        graph,
        ir_version=model.ir_version,
        producer_name=model.producer_name,
        producer_version=model.producer_version,
        domain=model.domain,
        model_version=model.model_version,
        doc_string=model.doc_string,
        functions=[function.clone() for function in model.functions.values()],
        metadata_props=dict(model.metadata_props),
        device_configurations=model.device_configurations,
    )


def _become_input(part: onnx_ir.Model, value: onnx_ir.Value) -> None:
    """Make a value an input. The node that computes it may stay for another output; its own copy gets a new name."""
    value.const_value = None
    part.graph.initializers.pop(value.name or "", None)
    made = (output for node in part.graph for output in node.outputs if output.name == value.name)
    for twin in made:
        twin.replace_all_uses_with(value, replace_graph_outputs=True)
        twin.name = Names(part).fresh(f"{value.name}_unused")


def _tidy(part: onnx_ir.Model) -> None:
    common.RemoveUnusedFunctionsPass()(part)  # type: ignore[no-untyped-call]
    common.RemoveUnusedOpsetsPass(process_functions=False)(part)
    values = values_of(part.graph)
    for value in values.values():
        named = value.meta.get(QUANTIZATION, {})
        if not set(named.values()) <= set(values):
            del value.meta[QUANTIZATION]  # the scale it refers to is no part of this model
