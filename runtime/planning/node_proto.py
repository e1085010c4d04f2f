"""A step in ONNX's own words, as onnx's inference and its builders of function bodies take it."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx

from entrepot.ir.typing.plain import Type, to_proto
from entrepot.runtime.planning.plan import Step


def proto_of(step: Step, names: list[str]) -> onnx.NodeProto:
    """A step as a node whose inputs are called ``names`` and whose outputs ``o0``, ``o1``, ..."""
    outputs = ["" if value is None else f"o{n}" for n, value in enumerate(step.outputs)]
    node = onnx.helper.make_node(step.op_type, names, outputs, name=step.name, domain=step.domain)
    node.attribute.extend(_attribute(step, name, value) for name, value in step.attributes.items())
    node.attribute.extend(onnx.helper.make_attribute(name, graph) for name, graph in step.graphs.items())
    return node


def _attribute(step: Step, name: str, value: Any) -> onnx.AttributeProto:
    declared = None if step.schema is None else step.schema.attributes.get(name)
    if isinstance(value, np.ndarray):
        value = onnx.numpy_helper.from_array(value, name)
    elif isinstance(value, Type):
        value = to_proto(value)
    kind = None if declared is None else int(declared.type.value)  # type: ignore[attr-defined] # onnx's stub lacks it
    return onnx.helper.make_attribute(name, value, attr_type=kind)
