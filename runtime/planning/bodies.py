"""A step whose operator has no kernel, spelled out by its schema's function body."""

from __future__ import annotations

import onnx_ir as ir

from entrepot.ir.opset.function_body import at_hub, default_attributes, fill_in, function_body
from entrepot.ir.typing.plain import Type, to_proto
from entrepot.runtime.planning.node_proto import proto_of
from entrepot.runtime.planning.plan import Step


def body_of(step: Step) -> ir.Function | ir.Graph | None:
    """The body in ONNX operators at the hub's opset, attributes filled in; ``None`` when the schema has none.

    Raises:
        ConversionError: The body is written for an older opset and cannot be brought to the hub's.
    """
    schema = step.schema
    if schema is None:
        return None
    node = proto_of(step, ["" if value is None else f"i{n}" for n, value in enumerate(step.inputs)])
    types = (to_proto(Type() if value is None else value.type or Type()) for value in step.inputs)
    found = function_body(schema, max, node, types)
    if found is None:
        return None
    _, proto = found
    fill_in(proto.node, default_attributes(schema) | {attribute.name: attribute for attribute in node.attribute})
    return at_hub(proto)
