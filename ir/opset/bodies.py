"""An adapter that spells an operator out by its schema's own function body."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import onnx
import onnx_ir as ir

from entrepot.ir.opset.builder import OpBuilder
from entrepot.ir.opset.function_body import default_attributes, function_body
from entrepot.ir.opset.rules import Replacement, decomposition
from entrepot.ir.opset.schemas import schema
from entrepot.ir.subgraphs import subgraphs
from entrepot.ir.upstream import Cloner


def expanded(op_type: str, born: int) -> None:
    """Declare that before it existed, an operator is spelled out by its schema's function body."""
    decomposition(op_type, born)(expand)


def expand(op: OpBuilder, node: ir.Node, *, mend: Callable[[onnx.FunctionProto], None] | None = None) -> Replacement:
    """Write the function body at the opset it is given for; constant parts are folded, unused ones omitted.

    Args:
        op: The place.
        node: The node.
        mend: Corrects errors in the body that onnx provides.

    Raises:
        ConversionError: The schema has no body for this use of the operator.
    """
    known = schema(node.domain, node.op_type, op.since)
    types = map(op.around.types.proto, node.inputs)
    found = function_body(known, min, ir.serde.serialize_node(node), types)
    if found is None:
        op.refuse("its schema has no function body for this use", hint="possible if the element types are known")
    version, proto = found
    if mend is not None:
        mend(proto)
    names = _leave_out_what_is_not_made(proto)
    outer = _captured(node)
    if outer.keys() & set(proto.input):
        op.refuse(f"its body reads '{min(outer.keys() & set(proto.input))}', a name that its schema's body uses too")
    proto.input.extend(outer)
    function = ir.serde.deserialize_function(proto)
    formals = function.inputs[: len(function.inputs) - len(outer)]
    values: dict[ir.Value, ir.Value | None] = {formal: op.input(index) for index, formal in enumerate(formals)}
    values.update(zip(function.inputs[len(formals) :], outer.values(), strict=True))
    cloner = Cloner(
        attr_map=_attributes(node, known),
        value_map=values,
        metadata_props=dict(node.metadata_props),
        resolve_ref_attrs=True,
        allow_outer_scope_values=True,
    )
    for inner in function:
        copy = cloner.clone_node(inner)
        _rename(op, copy, version)
        op.emitted.append(copy)
    made = {output.name: values[output] for output in function.outputs}
    results = [made.get(name) for name in names[: len(node.outputs)]]
    _fold(op, version, results)
    return results


def _leave_out_what_is_not_made(proto: onnx.FunctionProto) -> list[str]:
    """Drop outputs that the body has no node for (optional ones of this use); return all their names."""
    names = list(proto.output)
    made = {name for node in proto.node for name in node.output} | set(proto.input)
    del proto.output[:]
    proto.output.extend(name for name in names if name in made)
    return names


def _captured(node: ir.Node) -> dict[str, ir.Value]:
    """What the bodies inside the node read from the scopes around it, by name."""
    graphs = [graph for body in subgraphs(node) for graph in (body, *_inner(body))]
    own = {value for graph in graphs for value in (*graph.inputs, *graph.initializers.values())}
    own |= {value for graph in graphs for inner in graph for value in inner.outputs}
    read = {value for graph in graphs for inner in graph for value in inner.inputs}
    read |= {value for graph in graphs for value in graph.outputs}
    return {value.name or "": value for value in read - own if value is not None}


def _inner(body: ir.Graph) -> Iterable[ir.Graph]:
    return (graph for node in body.all_nodes() for graph in subgraphs(node))


def _attributes(node: ir.Node, known: onnx.defs.OpSchema) -> dict[str, ir.Attr]:
    defaults = default_attributes(known)
    return {name: ir.serde.deserialize_attribute(proto) for name, proto in defaults.items()} | dict(node.attributes)


def _rename(op: OpBuilder, node: ir.Node, version: int) -> None:
    node.version = version if not node.domain else None
    op.around.touched.append(node)
    node.name = op.fresh_name(node.op_type)
    _rename_values(op, node.outputs)
    for graph in subgraphs(node):
        _rename_values(op, graph.inputs)
        for inner in graph:
            _rename(op, inner, version)


def _rename_values(op: OpBuilder, values: Iterable[ir.Value]) -> None:
    for value in values:
        if value.name:
            value.name = op.fresh_name(value.name)


def _fold(op: OpBuilder, version: int, results: list[ir.Value | None]) -> None:
    """Replace what is known by constants and drop what nobody reads any more."""
    written, op.emitted[:] = list(op.emitted), []
    here, op.version = op.version, version
    waiting = written[::-1]
    while waiting:
        node = waiting.pop()
        branch = _chosen_branch(op, node, results)
        if branch is not None:
            waiting.extend(reversed(branch))
            continue
        op.emitted.append(node)
        if len(node.outputs) == 1 and node.op_type != "Constant" and node.outputs[0] not in results:
            array = op.known(node.outputs[0])
            if array is not None:
                node.outputs[0].replace_all_uses_with(op.const(array, dtype=op.dtype(node.outputs[0])))
    op.version = here
    for node in reversed(list(op.emitted)):
        if not any(output.uses() or output in results for output in node.outputs):
            let_go(node)
            op.emitted.remove(node)


def _chosen_branch(op: OpBuilder, node: ir.Node, results: list[ir.Value | None]) -> list[ir.Node] | None:
    """The nodes of the branch that a known condition chooses, taken out of the If; they now produce its outputs."""
    condition = op.known(node.inputs[0]) if node.op_type == "If" and not node.domain else None
    if condition is None:
        return None
    branch = node.attributes["then_branch" if condition.item() else "else_branch"].as_graph()
    chosen, made = list(branch), list(branch.outputs)
    branch.outputs.clear()
    branch.remove(chosen)
    for old, new in zip(node.outputs, made, strict=True):
        old.replace_all_uses_with(new)
        results[:] = [new if result is old else result for result in results]
    let_go(node)
    return chosen


def let_go(node: ir.Node) -> None:
    """Detach a node that is removed, and all inside it, from its inputs."""
    for index in range(len(node.inputs)):
        node.replace_input_with(index, None)
    for graph in subgraphs(node):
        for inner in graph:
            let_go(inner)
