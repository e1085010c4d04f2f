"""Which IR version a model needs, and what a change of it asks of the graph."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import onnx.helper
import onnx_ir as ir

from entrepot.ir.errors import ConversionError, describe_node
from entrepot.ir.io.sparse import SparseTensor
from entrepot.ir.opset.builder import add_initializer
from entrepot.ir.opset.names import Names
from entrepot.ir.opset.schemas import canonical
from entrepot.ir.opset.values import INITIALIZERS_ARE_INPUTS
from entrepot.ir.subgraphs import with_subgraphs

_TYPES = {
    "FLOAT8E4M3FN": 9,
    "FLOAT8E4M3FNUZ": 9,
    "FLOAT8E5M2": 9,
    "FLOAT8E5M2FNUZ": 9,
    "INT4": 10,
    "UINT4": 10,
    "FLOAT4E2M1": 11,
    "FLOAT8E8M0": 12,
    "INT2": 13,
    "UINT2": 13,
}
"""Element types and the IR version that introduced them."""


def natural(opsets: Mapping[str, int]) -> int:
    """The IR version that was released with the newest of these opsets."""
    return max((_released_with(canonical(domain), version) for domain, version in opsets.items()), default=3)


def needed(model: ir.Model) -> int:
    """The oldest IR version whose format can hold what the model uses, whatever its opset."""
    version = 8 if model.functions else 3
    if version < 5 and any(isinstance(v.const_value, SparseTensor) for v in model.graph.initializers.values()):
        version = 5
    if any(function.overload for function in model.functions.values()):
        version = 10
    if model.device_configurations:
        version = 11
    return max([version, *map(born, _dtypes(model))])


def born(dtype: ir.DataType) -> int:
    """The IR version that introduced an element type; 3 for those older than that."""
    return _TYPES.get(dtype.name, 3)


def restamp(model: ir.Model, names: Names, *, lowered: bool) -> None:
    """Set the IR version that goes with the model's opsets, and keep its initializers legal there.

    Args:
        model: A model at its new opsets.
        names: Gives names to weights that have to move.
        lowered: Whether an opset went down; only then may the IR version.
    """
    present = 0 if lowered else model.ir_version
    model.ir_version = max(natural(model.opset_imports), needed(model), present)
    if model.ir_version <= INITIALIZERS_ARE_INPUTS:
        for subgraph in model.graph.subgraphs():
            _hoist(subgraph, model.graph, names)
        inputs = {value.name for value in model.graph.inputs}
        model.graph.inputs.extend(v for name, v in model.graph.initializers.items() if name not in inputs)


def _hoist(subgraph: ir.Graph, main: ir.Graph, names: Names) -> None:
    """Move weights out of a body: the node determines the body's inputs, so weights cannot be inputs as well."""
    for name, value in list(subgraph.initializers.items()):
        if value.is_graph_input() or value.const_value is None:
            continue
        moved = add_initializer(main, names.fresh(name), value.const_value)
        value.replace_all_uses_with(moved, replace_graph_outputs=True)
        subgraph.initializers.pop(name)


def _released_with(domain: str, version: int) -> int:
    column = {"": 2, "ai.onnx.ml": 3}.get(domain)
    if column is None:
        return 3
    return next((int(row[1]) for row in onnx.helper.VERSION_TABLE if int(row[column]) >= version), 3)


def _dtypes(model: ir.Model) -> Iterator[ir.DataType]:
    """The element types of everything that states one."""
    for graph in with_subgraphs(model.graph, *(function.graph for function in model.functions.values())):
        yield from _stated(graph)


def _stated(graph: ir.Graph) -> Iterator[ir.DataType]:
    for value in (*graph.inputs, *graph.initializers.values()):
        if value.dtype is not None:
            yield value.dtype
        elif value.const_value is not None:
            yield value.const_value.dtype
    for node in graph:
        yield from (output.dtype for output in node.outputs if output.dtype is not None)
        yield from cast_to(node)


def cast_to(node: ir.Node) -> tuple[ir.DataType, ...]:
    """The element type that a node names by its number, if it does.

    Raises:
        ConversionError: There is no such type.
    """
    number = node.attributes["to"].value if node.op_type == "Cast" and not node.domain else None
    if not isinstance(number, int):
        return ()
    try:
        return (ir.DataType(number),)
    except ValueError:
        raise ConversionError(f"there is no element type {number}", node=describe_node(node)) from None
