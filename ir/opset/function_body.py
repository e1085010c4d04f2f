"""The function body that a schema defines for an operator: which one, with its attributes filled in, at the hub."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import onnx
import onnx_ir as ir

from entrepot.ir.model import Model
from entrepot.ir.opset import OPSET


def function_body(
    schema: Any,  # an OpSchema, of whose members onnx's stubs leave some out
    choose: Callable[[Iterable[int]], int],
    node: onnx.NodeProto,
    types: Iterable[onnx.TypeProto],
) -> tuple[int, onnx.FunctionProto] | None:
    """The body and the ai.onnx version it is written for; ``None`` if the schema has none for this use.

    Args:
        schema: The operator's definition.
        choose: Which version, of those up to the hub's: ``min`` for one whose operators exist early, as adapters need
            them; ``max`` for one that needs the least conversion to the hub.
        node: The use: a body may depend on its attributes and on which inputs are there.
        types: The types of its inputs, which are looked at only where a body depends on them.
    """
    if fixed := _up_to_hub(schema.function_opset_versions):
        version = choose(fixed)
        proto = _parsed(schema.get_function_with_opset_version(version))
    elif depending := _up_to_hub(schema.context_dependent_function_opset_versions):
        version = choose(depending)
        proto = _built(schema, version, node, types)
    else:
        return None
    if not proto.node:
        return None
    imports = {item.domain: item.version for item in proto.opset_import}
    return imports.get("", version), proto


def _up_to_hub(versions: Iterable[int]) -> list[int]:
    return [version for version in versions if version <= OPSET]


def _built(schema: Any, version: int, node: onnx.NodeProto, types: Iterable[onnx.TypeProto]) -> onnx.FunctionProto:
    known = [item.SerializeToString() for item in types]
    try:
        data = schema.get_context_dependent_function_with_opset_version(version, node.SerializeToString(), known)
    except RuntimeError:  # the builder declines: unknown types, or an attribute that it has no body for
        return onnx.FunctionProto()
    return _parsed(data)


def _parsed(data: bytes | onnx.FunctionProto) -> onnx.FunctionProto:
    return onnx.FunctionProto.FromString(data) if isinstance(data, bytes) else data


def default_attributes(schema: onnx.defs.OpSchema) -> dict[str, onnx.AttributeProto]:
    """What the attributes are that a node does not carry."""
    return {name: attr.default_value for name, attr in schema.attributes.items() if attr.default_value.name}


def fill_in(nodes: Iterable[onnx.NodeProto], given: Mapping[str, onnx.AttributeProto]) -> None:
    """Replace what refers to attributes of the operator by these attributes."""
    for node in nodes:
        kept = [_resolved(attribute, given) for attribute in node.attribute]
        del node.attribute[:]
        node.attribute.extend(attribute for attribute in kept if attribute is not None)


def _resolved(attribute: onnx.AttributeProto, given: Mapping[str, onnx.AttributeProto]) -> onnx.AttributeProto | None:
    fill_in(attribute.g.node, given)
    if not attribute.ref_attr_name:
        return attribute
    if attribute.ref_attr_name not in given:
        return None  # an absent attribute stays absent where it is passed on
    value = onnx.AttributeProto()
    value.CopyFrom(given[attribute.ref_attr_name])
    value.name = attribute.name
    return value


def at_hub(proto: onnx.FunctionProto) -> ir.Function | ir.Graph:
    """Bodies are written for the opset they first appeared in; convert those whose operators changed since.

    Raises:
        ConversionError: It cannot be brought to the hub's opset.
    """
    imports = {opset.domain: opset.version for opset in proto.opset_import}
    if not _changed(proto.node, imports):
        return ir.serde.deserialize_function(proto)
    graph = onnx.helper.make_graph(
        list(proto.node),
        proto.name,
        [onnx.helper.make_value_info(name, onnx.TypeProto()) for name in proto.input],
        [onnx.helper.make_value_info(name, onnx.TypeProto()) for name in proto.output],
    )
    model = onnx.helper.make_model(graph, opset_imports=list(proto.opset_import))
    return Model(ir.serde.deserialize_model(model)).at_hub().ir.graph


def _changed(nodes: Iterable[onnx.NodeProto], imports: Mapping[str, int]) -> bool:
    return any(
        _since(node, imports.get("", OPSET)) != _since(node, OPSET)
        or any(_changed(attribute.g.node, imports) for attribute in node.attribute)
        for node in nodes
        if node.domain == ""
    )


def _since(node: onnx.NodeProto, opset: int) -> int:
    return onnx.defs.get_schema(node.op_type, opset, node.domain).since_version
