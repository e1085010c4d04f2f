"""Running a model of opset 1 to 6, node by node, each held against the schema of its version."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from tests.judges.early import activation, arithmetic, delegated, movement, normalization, reduction
from tests.judges.early.use import MEANINGS, BreachError, CannotJudgeError, Use

__all__ = ["NEWEST", "BreachError", "CannotJudgeError", "run"]

NEWEST = 6
assert {activation, arithmetic, delegated, movement, normalization, reduction}  # they fill the table

Option = onnx.defs.OpSchema.FormalParameterOption
Values = dict[str, Any]


def run(model: onnx.ModelProto, feeds: Mapping[str, Any]) -> list[Any]:
    """The outputs of a model.

    Raises:
        BreachError: It does what its opset does not allow.
        CannotJudgeError: It holds something that this evaluator does not know.
    """
    opsets = {item.domain or "ai.onnx": item.version for item in model.opset_import}
    opset = opsets.pop("ai.onnx")
    if opset > NEWEST or opsets or model.functions:
        raise CannotJudgeError(f"opset {opset}, further domains {sorted(opsets)}, {len(model.functions)} functions")
    values: Values = {item.name: numpy_helper.to_array(item) for item in model.graph.initializer}
    declared = {item.name for item in model.graph.input}
    if model.ir_version < 4 and not values.keys() <= declared:
        raise BreachError(f"IR 3 wants every initializer among the inputs: {sorted(values.keys() - declared)}")
    values.update({name: np.asarray(value) for name, value in feeds.items()})
    return _graph(model.graph, values, opset)


def _graph(graph: onnx.GraphProto, values: Values, opset: int) -> list[Any]:
    for node in graph.node:
        results = _node(node, values, opset)
        for name, result in zip(node.output, results, strict=False):
            if name and result is not None:
                values[name] = np.asarray(result)
    return [_read(values, item.name) for item in graph.output]


def _read(values: Values, name: str) -> Any:
    if name not in values:
        raise BreachError(f"'{name}' is read but never computed")
    return values[name]


def _node(node: onnx.NodeProto, values: Values, opset: int) -> tuple[Any, ...]:
    try:
        schema = onnx.defs.get_schema(node.op_type, opset, node.domain)
    except onnx.defs.SchemaError as error:
        raise CannotJudgeError(f"no schema of {node.op_type} at opset {opset}") from error
    meaning = MEANINGS.get((node.op_type, schema.since_version))
    if meaning is None:
        raise CannotJudgeError(f"{node.op_type}-{schema.since_version} is not known")
    if len(node.output) > schema.max_output:
        raise BreachError(f"{node.op_type}-{schema.since_version} has no {len(node.output)} outputs")
    inputs = [_read(values, name) if name else None for name in node.input]
    use = Use(node, schema.since_version, _attributes(node, schema), functools.partial(_body, values, opset))
    bound: dict[str, str] = {}
    _check(use, schema, inputs, bound, outputs=False)
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # the mean of nothing
            results = meaning(use, *inputs)
    except (ValueError, IndexError) as error:
        raise BreachError(f"{node.op_type}-{schema.since_version}: shapes do not fit ({error})") from error
    results = tuple(results) if isinstance(results, tuple | list) else (results,)
    _check(use, schema, results, bound, outputs=True)
    return results


def _body(values: Values, opset: int, graph: onnx.GraphProto, given: list[Any]) -> list[Any]:
    """Run a body, which sees everything around it."""
    inner = values | {item.name: numpy_helper.to_array(item) for item in graph.initializer}
    inner.update({item.name: value for item, value in zip(graph.input, given, strict=True)})
    return _graph(graph, inner, opset)


def _attributes(node: onnx.NodeProto, schema: onnx.defs.OpSchema) -> dict[str, Any]:
    named = {item.name: item for item in node.attribute}
    unknown = named.keys() - schema.attributes.keys()
    if unknown:
        raise BreachError(f"{node.op_type}-{schema.since_version} has no attribute {sorted(unknown)}")
    values: dict[str, Any] = {}
    for name, formal in schema.attributes.items():
        if name in named:
            if int(named[name].type) != int(formal.type.value):
                raise BreachError(f"{node.op_type}-{schema.since_version}: attribute {name} is of another type")
            values[name] = _plain(helper.get_attribute_value(named[name]))
        elif formal.required:
            raise BreachError(f"{node.op_type}-{schema.since_version} requires attribute {name}")
        elif formal.default_value.name:
            values[name] = _plain(helper.get_attribute_value(formal.default_value))
    return values


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.decode()
    return [_plain(item) for item in value] if isinstance(value, list) else value


def _check(use: Use, schema: onnx.defs.OpSchema, values: Any, bound: dict[str, str], *, outputs: bool) -> None:
    """Hold values against the schema's parameters: those that must be there, and element types that agree."""
    formal = list(schema.outputs if outputs else schema.inputs)
    if formal and formal[-1].option == Option.Variadic:
        formal += [formal[-1]] * (len(values) - len(formal))
    use.needs(len(values) <= len(formal), f"{len(values)} values where there are {len(formal)}")
    allowed = {item.type_param_str: item.allowed_type_strs for item in schema.type_constraints}
    for index, parameter in enumerate(formal):
        value = values[index] if index < len(values) else None
        if value is None:
            use.needs(outputs or parameter.option != Option.Single, f"input {parameter.name} is missing")
            continue
        kind = _spell(np.asarray(value))
        use.needs(kind in allowed.get(parameter.type_str, [parameter.type_str]), f"{parameter.name} is {kind}")
        if parameter.is_homogeneous:
            same = bound.setdefault(parameter.type_str, kind)
            use.needs(same == kind, f"{parameter.name} is {kind}, others are {same}")


def _spell(value: np.ndarray[Any, Any]) -> str:
    if value.dtype.kind in "OUS":
        return "tensor(string)"
    name = onnx.TensorProto.DataType.Name(helper.np_dtype_to_tensor_dtype(value.dtype)).lower()
    return f"tensor({name})"
