"""Users' operators among those of onnx: whatever asks for a schema finds theirs, in checks, inference and sessions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir

from entrepot.ir.errors import EntrepotError, InputError
from entrepot.ir.operators import Definition, Shaped, Size, defined

_Schema = onnx.defs.OpSchema
_ELEMENTS = """
float double float16 bfloat16 int8 int16 int32 int64 uint8 uint16 uint32 uint64 bool string
"""
_TYPES = [f"tensor({name})" for name in _ELEMENTS.split()]
_Kind = _Schema.AttrType
_KINDS: dict[type, Any] = {int: _Kind.INT, bool: _Kind.INT, float: _Kind.FLOAT, str: _Kind.STRING}
_LISTS: dict[type, Any] = {int: _Kind.INTS, float: _Kind.FLOATS, str: _Kind.STRINGS}


def register(definition: Definition) -> None:
    """Make onnx know an operator.

    Raises:
        InputError: An attribute is of a kind that ONNX does not have.
    """
    schema = _schema(definition)
    deregister(definition)
    onnx.defs.register_schema(schema)


def deregister(definition: Definition) -> None:
    """Make onnx forget it."""
    domain, op_type, since = definition.key
    if onnx.defs.has(op_type, since, domain) and onnx.defs.get_schema(op_type, since, domain).since_version == since:
        onnx.defs.deregister_schema(op_type, since, domain)


def _schema(definition: Definition) -> onnx.defs.OpSchema:
    option = _Schema.FormalParameterOption
    inputs = [
        _Schema.FormalParameter(name, f"T_{name}", param_option=option.Optional if optional else option.Single)
        for name, optional in definition.inputs.items()
    ]
    outputs = [_Schema.FormalParameter(f"y{at}", f"R_{at}") for at in range(definition.outputs)]
    variables = [formal.type_str for formal in (*inputs, *outputs)]
    schema = _Schema(
        definition.key.op_type,
        definition.key.domain,
        definition.key.since,
        doc=definition.function.__doc__ or "",
        inputs=inputs,
        outputs=outputs,
        type_constraints=[(variable, _TYPES, "") for variable in variables],
        attributes=[_attribute(definition, name) for name in definition.attributes],
    )
    schema.set_type_and_shape_inference_function(_inference(definition))
    return schema


def _attribute(definition: Definition, name: str) -> Any:
    required = name in definition.required
    return _Schema.Attribute(name, _kind(definition, name), required=required)


def _kind(definition: Definition, name: str) -> Any:
    """The kind of an attribute, by its default, or by its annotation where it has none."""
    example = definition.attributes[name]
    several = isinstance(example, list | tuple)
    kind = type(example[0]) if several and example else type(example)
    table = _LISTS if several else _KINDS
    if kind not in table:
        raise InputError(
            f"the attribute '{name}' of {definition} is neither a number nor a text, nor a list of some",
            hint="give it a default that is, or annotate it: alpha: float",
        )
    return table[kind]


def _inference(definition: Definition) -> Callable[[Any], None]:
    def infer(context: Any) -> None:
        now = defined(definition.key) or definition  # schemas are remembered longer than definitions
        given = [context.get_input_type(at) for at in range(context.get_num_inputs())]
        attributes = dict(now.attributes)
        for name in attributes:
            if (stated := context.get_attribute(name)) is not None:
                attributes[name] = onnx.helper.get_attribute_value(stated)
        for at, known in enumerate(result_types(now, [_of_proto(each) for each in given], attributes)):
            context.set_output_type(at, _to_proto(known))

    return infer


def result_types(definition: Definition, given: list[Shaped | None], attributes: dict[str, Any]) -> tuple[Shaped, ...]:
    """What is known of results before anything runs; nothing if the shape function cannot say."""
    if not any(given):
        return ()
    try:
        return definition.shapes(given, attributes)
    except EntrepotError:
        raise
    except (ArithmeticError, AssertionError, AttributeError, LookupError, RuntimeError, TypeError, ValueError):
        return ()  # it asks for more than a file tells


def _of_proto(kind: onnx.TypeProto | None) -> Shaped | None:
    if kind is None or not kind.tensor_type.elem_type or not kind.tensor_type.HasField("shape"):
        return None
    dims = [dim.dim_value if dim.HasField("dim_value") else Size(dim.dim_param) for dim in kind.tensor_type.shape.dim]
    return Shaped(tuple(dims), ir.DataType(kind.tensor_type.elem_type).numpy())


def _to_proto(known: Shaped) -> onnx.TypeProto:
    dims = [dim.name or None if isinstance(dim, Size) else int(dim) for dim in known.shape]
    return onnx.helper.make_tensor_type_proto(int(ir.DataType.from_numpy(np.dtype(known.dtype))), dims)
