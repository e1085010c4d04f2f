"""The function body that a schema defines for an operator, at the hub's opset."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import onnx
import onnx_ir as ir

from entrepot.ir.model import Model
from entrepot.ir.opset import OPSET
from entrepot.runtime import types
from entrepot.runtime.plan import Step
from entrepot.runtime.types import Type


def body_of(step: Step) -> ir.Function | ir.Graph | None:
    """The body in ONNX operators at the hub's opset, attributes filled in; ``None`` when the schema has none.

    Raises:
        ConversionError: The body is written for an older opset and cannot be brought to the hub's.
    """
    schema = step.schema
    if schema is None:
        return None
    proto = _context_dependent(schema, step) or _fixed(schema)
    if proto is None:
        return None
    _fill_in(proto.node, _attributes(schema, step))
    return _at_hub(proto)


def _fixed(schema: Any) -> onnx.FunctionProto | None:
    version = max((v for v in schema.function_opset_versions if v <= OPSET), default=None)
    data = None if version is None else schema.get_function_with_opset_version(version)
    return onnx.FunctionProto.FromString(data) if isinstance(data, bytes) else data


def _context_dependent(schema: Any, step: Step) -> onnx.FunctionProto | None:
    version = max((v for v in schema.context_dependent_function_opset_versions if v <= OPSET), default=None)
    if version is None:
        return None
    names = ["" if value is None else f"i{n}" for n, value in enumerate(step.inputs)]
    node = types.proto_of(step, names).SerializeToString()
    known = [types.to_proto(Type() if v is None else v.type or Type()).SerializeToString() for v in step.inputs]
    try:
        data = schema.get_context_dependent_function_with_opset_version(version, node, known)
    except RuntimeError:  # the builder declines: unknown types, or an attribute that it has no body for
        return None
    return onnx.FunctionProto.FromString(data) if data else None


def _attributes(schema: onnx.defs.OpSchema, step: Step) -> dict[str, onnx.AttributeProto]:
    """What a reference in the body stands for: the node's attributes, then the schema's defaults."""
    found = {name: attr.default_value for name, attr in schema.attributes.items() if attr.default_value.name}
    return found | {attribute.name: attribute for attribute in types.proto_of(step, []).attribute}


def _fill_in(nodes: Iterable[onnx.NodeProto], given: dict[str, onnx.AttributeProto]) -> None:
    for node in nodes:
        kept = [_resolved(attribute, given) for attribute in node.attribute]
        del node.attribute[:]
        node.attribute.extend(attribute for attribute in kept if attribute is not None)


def _resolved(attribute: onnx.AttributeProto, given: dict[str, onnx.AttributeProto]) -> onnx.AttributeProto | None:
    _fill_in(attribute.g.node, given)
    if not attribute.ref_attr_name:
        return attribute
    if attribute.ref_attr_name not in given:
        return None  # an absent attribute stays absent where it is passed on
    value = onnx.AttributeProto()
    value.CopyFrom(given[attribute.ref_attr_name])
    value.name = attribute.name
    return value


def _at_hub(proto: onnx.FunctionProto) -> ir.Function | ir.Graph:
    """Bodies are written for the opset they first appeared in; convert those whose operators changed since."""
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


def _changed(nodes: Iterable[onnx.NodeProto], imports: dict[str, int]) -> bool:
    return any(
        _since(node, imports.get("", OPSET)) != _since(node, OPSET)
        or any(_changed(attribute.g.node, imports) for attribute in node.attribute)
        for node in nodes
        if node.domain == ""
    )


def _since(node: onnx.NodeProto, opset: int) -> int:
    return onnx.defs.get_schema(node.op_type, opset, node.domain).since_version
