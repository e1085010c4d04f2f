from __future__ import annotations

from collections.abc import Callable

import onnx_ir as ir

from entrepot.ir.inference import scope_types
from entrepot.ir.opset.schema_types import cast_target
from entrepot.ir.opset.types import Types
from entrepot.ir.passes.graphs import graphs


class DropIdle(ir.passes.InPlacePass):
    """Bypass nodes that pass their input on unchanged.

    Before: ``x -> Identity -> y -> Relu``. After: ``x -> Relu``.
    Identity, Dropout outside training, a Cast to the type it has already, a Transpose that moves nothing, and a
    Concat, Sum, Mean, Max or Min of one value. A graph output keeps its name: the node before computes it instead, or
    the node stays. Subgraphs and functions are covered.
    """

    def call(self, model: ir.Model) -> ir.passes.PassResult:
        """Change the model in place."""
        types = {}
        for scope, answers in scope_types(model).items():
            root = scope.graph if isinstance(scope, ir.Function) else scope
            types.update(dict.fromkeys((root, *root.subgraphs()), answers))
        dropped = [_drop(node) for graph, _ in graphs(model) for node in list(graph) if _is_idle(node, types[graph])]
        return ir.passes.PassResult(model, modified=any(dropped))


def _is_idle(node: ir.Node, types: Types) -> bool:
    test = _IDLE.get(node.op_type)
    if node.domain or test is None or not node.inputs or node.inputs[0] is None or not node.outputs[0].name:
        return False
    if any(attribute.is_ref() for attribute in node.attributes.values()):
        return False
    return not any(output.uses() or output.is_graph_output() for output in node.outputs[1:]) and test(node, types)


def _is_idle_dropout(node: ir.Node, types: Types) -> bool:
    if types.opsets.get("", 0) < 7:  # old versions trained unless told otherwise
        return node.attributes.get_int("is_test", 0) == 1
    mode = node.inputs[2] if len(node.inputs) > 2 else None
    known = types.known.array(mode)
    return mode is None or (known is not None and not known.any())


def _is_idle_cast(node: ir.Node, types: Types) -> bool:
    target = cast_target(node.attributes["to"])
    return target is not None and types.type(node.inputs[0]) == target


def _moves_nothing(node: ir.Node, types: Types) -> bool:
    perm = node.attributes.get_ints("perm")
    if perm is None:
        shape = types.shape(node.inputs[0])
        return shape is not None and len(shape) < 2
    return list(perm) == list(range(len(perm)))


_IDLE: dict[str, Callable[[ir.Node, Types], bool]] = {
    "Identity": lambda _node, _types: True,
    "Dropout": _is_idle_dropout,
    "Cast": _is_idle_cast,
    "Transpose": _moves_nothing,
    **dict.fromkeys(("Concat", "Sum", "Mean", "Max", "Min"), lambda node, _types: len(node.inputs) == 1),
}


def _drop(node: ir.Node) -> bool:
    value, output, graph = node.inputs[0], node.outputs[0], node.graph
    assert value is not None
    assert graph is not None
    if output.is_graph_output():
        if not _may_be_renamed(value, graph):
            return False
        value.name, output.name = output.name, ""
        value.type = output.type or value.type
        value.shape = value.shape if output.shape is None else output.shape  # that of a scalar is false
        value.metadata_props.update(output.metadata_props)
    output.replace_all_uses_with(value, replace_graph_outputs=True)
    graph.remove(node, safe=True)
    return True


def _may_be_renamed(value: ir.Value, graph: ir.Graph | ir.Function) -> bool:
    """Whether a node of this graph computes it, and it is not an output yet."""
    return value.producer() is not None and value.graph is graph and not value.is_graph_output()
