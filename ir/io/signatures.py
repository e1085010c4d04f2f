"""Whether a node fits the schema of its operator: counts of inputs and outputs, names and types of attributes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import onnx.defs
import onnx_ir

_NEWEST = {"": onnx.defs.onnx_opset_version(), "ai.onnx.ml": 5, "ai.onnx.preview.training": 1}


@dataclass(frozen=True)
class Signature:
    """What a schema demands, as plain Python values: a schema's own properties are slow to read.

    From ``listed_inputs`` on, inputs are one list of any length.
    """

    inputs: tuple[int, int]
    outputs: tuple[int, int]
    required_inputs: tuple[int, ...]
    listed_inputs: int
    attributes: Mapping[str, onnx_ir.AttributeType]
    required_attributes: tuple[str, ...]

    def problem(self, inputs: Sequence[str], outputs: int, attributes: Mapping[str, onnx_ir.Attr]) -> str | None:
        """What is wrong with a node that has these inputs, this many outputs and these attributes, or ``None``."""
        low, high = self.inputs
        if not low <= len(inputs) <= high:
            return f"{len(inputs)} inputs, but the operator takes {_range(low, high)}"
        low, high = self.outputs
        if not low <= outputs <= high:
            return f"{outputs} outputs, but the operator has {_range(low, high)}"
        for index in self.required_inputs:
            if index >= len(inputs) or not inputs[index]:
                return f"input {index} is required and missing"
        if "" in inputs[self.listed_inputs :]:
            return f"input {inputs.index('', self.listed_inputs)} is left out, of a list that has no gaps"
        return self._attribute_problem(attributes) if attributes or self.required_attributes else None

    def _attribute_problem(self, attributes: Mapping[str, onnx_ir.Attr]) -> str | None:
        for name, attribute in attributes.items():
            expected = self.attributes.get(name)
            if expected is None and not name.startswith("__"):  # how runtimes mark their private annotations
                return f"the operator has no attribute '{name}'; it has {sorted(self.attributes) or 'none'}"
            if expected is not None and attribute.type is not expected:
                return f"attribute '{name}' is {attribute.type.name}, but must be {expected.name}"
        missing = [name for name in self.required_attributes if name not in attributes]
        return f"attribute '{missing[0]}' is required and missing" if missing else None


class Signatures:
    """Signatures by operator and opset, each read from its schema once."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str, int], Signature | None] = {}

    def find(self, domain: str, op_type: str, version: int) -> Signature | None:
        """The signature, or ``None`` for an operator (or an opset) that onnx does not know."""
        key = (domain, op_type, version)
        if key not in self._known:
            self._known[key] = _signature(domain, op_type, version)
        return self._known[key]


def _signature(domain: str, op_type: str, version: int) -> Signature | None:
    if version > _NEWEST.get(domain, 0):
        return None
    try:
        schema = onnx.defs.get_schema(op_type, version, domain)
    except onnx.defs.SchemaError:
        return None
    single = onnx.defs.OpSchema.FormalParameterOption.Single
    variadic = onnx.defs.OpSchema.FormalParameterOption.Variadic
    return Signature(
        inputs=(schema.min_input, schema.max_input),
        outputs=(schema.min_output, schema.max_output),
        required_inputs=tuple(index for index, formal in enumerate(schema.inputs) if formal.option == single),
        listed_inputs=next((at for at, formal in enumerate(schema.inputs) if formal.option == variadic), 2**31),
        attributes={
            name: onnx_ir.AttributeType[attribute.type.name]  # type: ignore[attr-defined] # onnx's stubs do not say that it is an enum
            for name, attribute in schema.attributes.items()
        },
        required_attributes=tuple(name for name, attribute in schema.attributes.items() if attribute.required),
    )


def _range(low: int, high: int) -> str:
    if low == high:
        return str(low)
    return f"at least {low}" if high >= 2**31 - 1 else f"{low} to {high}"
