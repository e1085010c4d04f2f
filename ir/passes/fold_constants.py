from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import onnx_ir as ir

from entrepot.ir.errors import EntrepotError
from entrepot.ir.extract import extract
from entrepot.ir.inference import scope_types
from entrepot.ir.model import Model
from entrepot.ir.opset.values import INITIALIZERS_ARE_INPUTS
from entrepot.ir.passes.graphs import is_pure
from entrepot.ir.subgraphs import subgraphs
from entrepot.ir.typing.plain import nbytes
from entrepot.ir.typing.query import Types

Evaluate: TypeAlias = Callable[[Model], Mapping[str, Any]]
"""Runs a model without inputs: its outputs by name, or nothing if it cannot be run."""

_SMALL = 1024
"""Elements: smaller integer vectors are shapes and axes, not weights."""

_ANYWAY = 1 << 14
"""Bytes; larger results are written only if what they are computed from is as large."""

_KEPT = frozenset({"DequantizeLinear", "QuantizeLinear", "DynamicQuantizeLinear"})
"""What is stored quantised stays quantised."""

_WHOLE = (ir.DataType.INT32, ir.DataType.INT64, ir.DataType.BOOL)


class FoldConstants(ir.passes.InPlacePass):
    """Replace whatever does not depend on the inputs by its value.

    Before: ``x -> Shape -> Gather(0) -> Concat -> Reshape`` with a static ``x``. After: ``Reshape(x, [2, 3])``.
    Weights keep their names, so nothing is computed from them; nor is a value written that is much larger than what it
    is computed from. Constants of the main graph become initializers. A graph output keeps its node.

    Args:
        evaluate: Computes the values, as the runtime would.
        weights: Names of initializers that are weights, however small.
    """

    def __init__(self, evaluate: Evaluate, weights: Collection[str] = ()) -> None:
        super().__init__()
        self._evaluate = evaluate
        self._weights = weights

    def call(self, model: ir.Model) -> ir.passes.PassResult:
        """Change the model in place."""
        if model.ir_version <= INITIALIZERS_ARE_INPUTS:
            return ir.passes.PassResult(model, modified=False)
        extents = _extents(model.graph, scope_types(model)[model.graph])
        _put(model.graph, extents, [node for node in model.graph if node.outputs[0] in extents])
        constant = _constant_nodes(model.graph, scope_types(model)[model.graph], self._weights)
        values = self._computed(model, _ends(model.graph, constant))
        _put(model.graph, values, constant)
        return ir.passes.PassResult(model, modified=bool(extents or values))

    def _computed(self, model: ir.Model, ends: Iterable[ir.Value]) -> dict[ir.Value, ir.TensorProtocol]:
        found: dict[ir.Value, ir.TensorProtocol] = {}
        waiting = []
        for value in ends:
            tensor = ir.convenience.get_const_tensor(value)
            if tensor is None:
                waiting.append(value)
            else:
                found[value] = tensor
        together = self._run(model, waiting)
        return found | (together or {key: one for value in waiting for key, one in self._run(model, [value]).items()})

    def _run(self, model: ir.Model, values: Sequence[ir.Value]) -> dict[ir.Value, ir.TensorProtocol]:
        """The values, or nothing if they cannot all be computed."""
        if not values:
            return {}
        try:
            part = extract(Model(model), [], [value.name or "" for value in values])
        except EntrepotError:
            return {}  # what cannot be taken out is left to whoever runs the model
        results = self._evaluate(part)
        return {value: ir.tensor(results[name], name=name) for value in values if (name := value.name or "") in results}


def _extents(graph: ir.Graph, types: Types) -> dict[ir.Value, ir.TensorProtocol]:
    """What Shape and Size return for values whose shape is static, and choices among the static sizes of others."""
    made = [node.outputs[0] for node in graph if _is_extent(node)]
    arrays = {value: types.known.array(value) for value in made if value.uses() and not value.is_graph_output()}
    return {value: ir.tensor(array) for value, array in arrays.items() if array is not None}


def _is_extent(node: ir.Node) -> bool:
    if node.domain or node.op_type not in {"Shape", "Size", "Gather", "Slice"}:
        return False
    source = None if node.inputs[0] is None else node.inputs[0].producer()
    return node.op_type in {"Shape", "Size"} or (source is not None and source.op_type == "Shape" and not source.domain)


def _constant_nodes(graph: ir.Graph, types: Types, weights: Collection[str]) -> list[ir.Node]:
    """Nodes of the graph, in order, whose results are the same in every run and may replace them."""
    values = {value for value in graph.initializers.values() if value.name not in weights and _is_shape_like(value)}
    nodes = []
    for node in graph:
        if _is_constant(node, values) and is_pure(node, types.opsets) and _is_worth_it(node, types):
            nodes.append(node)
            values.update(node.outputs)
    return nodes


def _is_constant(node: ir.Node, values: set[ir.Value]) -> bool:
    if any(output.is_graph_output() for output in node.outputs) or any(True for _ in subgraphs(node)):
        return False
    return all(value is None or value in values for value in node.inputs) and node.op_type not in _KEPT


def _is_shape_like(value: ir.Value) -> bool:
    """Whether an initializer cannot be fed and is not a weight: integers, or a single number."""
    tensor = value.const_value
    if tensor is None or value.is_graph_input():
        return False
    return tensor.size == 1 or (tensor.dtype in _WHOLE and tensor.size <= _SMALL)


def _is_worth_it(node: ir.Node, types: Types) -> bool:
    if node.op_type == "Constant":
        return ir.convenience.get_const_tensor(node.outputs[0]) is not None
    given = sum(_nbytes(value, types) for value in node.inputs if value is not None)
    made = sum(_nbytes(value, types) for value in node.outputs if value.name)
    return made <= max(given, _ANYWAY)


def _nbytes(value: ir.Value, types: Types) -> float:
    """Infinite if unknown, or if the value is not a tensor."""
    spec = types.spec(value)
    return nbytes(spec.type.dtype, spec.shape) if isinstance(spec.type, ir.TensorType) else float("inf")


def _ends(graph: ir.Graph, constant: Sequence[ir.Node]) -> list[ir.Value]:
    """What other nodes read from the constant ones."""
    inner = set(constant)
    return [
        output for node in constant for output in node.outputs if any(user.node not in inner for user in output.uses())
    ]


def _put(graph: ir.Graph, values: Mapping[ir.Value, ir.TensorProtocol], nodes: Sequence[ir.Node]) -> None:
    """Turn values into initializers under their names, and remove those of ``nodes`` that nothing reads then."""
    for value, tensor in values.items():
        constant = ir.Value(
            name=value.name, type=ir.TensorType(tensor.dtype), shape=ir.Shape(tensor.shape.numpy()), const_value=tensor,
            doc_string=value.doc_string, metadata_props=dict(value.metadata_props),
        )  # fmt: skip
        value.replace_all_uses_with(constant)
        value.name = ""
        graph.register_initializer(constant)
    for node in reversed(nodes):
        if not any(output.uses() for output in node.outputs):
            graph.remove(node, safe=True)
