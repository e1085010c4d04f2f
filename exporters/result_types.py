"""Types of results, as far as an operator's schema tells them from those of its operands."""

from __future__ import annotations

import functools

import onnx
import onnx_ir as ir

OPSET = 20
"""Of the nodes that are written here: the one that files are written at."""

_ML = 3


@functools.lru_cache(maxsize=1024)
def schema_of(domain: str, op_type: str) -> onnx.defs.OpSchema | None:
    """The operator's schema, if it is one of ONNX."""
    try:
        return onnx.defs.get_schema(op_type, OPSET if not domain else _ML, domain)
    except onnx.defs.SchemaError:
        return None


def operand_types(domain: str, op_type: str, count: int) -> list[str]:
    """What the schema calls the type of each operand; the last one repeats."""
    schema = schema_of(domain, op_type)
    names = ["T"] if schema is None else [each.type_str for each in schema.inputs] or ["T"]
    return [names[min(at, len(names) - 1)] for at in range(count)]


def result_type(node: ir.Node, index: int) -> ir.TypeProtocol | None:
    """The type of a result, where the schema says that it is an operand's, or a certain one."""
    schema = schema_of(node.domain, node.op_type)
    if "to" in node.attributes:
        return ir.TensorType(ir.DataType(node.attributes["to"].as_int()))
    if schema is None or not schema.outputs:
        return None
    name = schema.outputs[min(index, len(schema.outputs) - 1)].type_str
    for value, other in zip(node.inputs, operand_types(node.domain, node.op_type, len(node.inputs)), strict=True):
        if other == name and value is not None and value.type is not None:
            return value.type
    allowed = next((each.allowed_type_strs for each in schema.type_constraints if each.type_param_str == name), [name])
    if len(allowed) == 1 and allowed[0].startswith("tensor("):
        return ir.TensorType(_ELEMENTS[allowed[0][7:-1]])
    return None


_ELEMENTS = {
    "bool": ir.DataType.BOOL, "int32": ir.DataType.INT32, "int64": ir.DataType.INT64, "float": ir.DataType.FLOAT,
    "double": ir.DataType.DOUBLE, "string": ir.DataType.STRING, "uint8": ir.DataType.UINT8,
}  # fmt: skip
