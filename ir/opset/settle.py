"""The last check of a converted node: does the target's schema accept it, element types included?"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, NamedTuple

import onnx
import onnx_ir as ir

from entrepot.ir.opset.builder import EXACTLY_WIDER, OpBuilder
from entrepot.ir.opset.enumerations import check_values
from entrepot.ir.opset.schemas import schema, since
from entrepot.ir.subgraphs import subgraphs

_Option = onnx.defs.OpSchema.FormalParameterOption


def settle(op: OpBuilder, node: ir.Node, *, descending: bool) -> Sequence[ir.Value | None] | None:
    """Check a node against the schema in force at ``op.version``.

    Going down, an element type that the older operator lacks is computed in a wider one that holds it exactly.

    Returns:
        The node's outputs wrapped in Casts, or ``None`` when it can stay as it is.

    Raises:
        ConversionError: The node is not valid there.
    """
    version = since(node.domain, node.op_type, op.version)
    _check_form(op, node, _form(node.domain, node.op_type, version))
    check_values(op, node)
    if not descending:
        return None
    known = schema(node.domain, node.op_type, version)
    foreign = _foreign_types(op, node, known)
    return _in_wider_types(op, node, known, foreign) if foreign else None


def _check_form(op: OpBuilder, node: ir.Node, form: _Form) -> None:
    given = node.attributes.data.keys()
    named = form.required <= given <= form.attributes
    fits = len(node.inputs) <= form.inputs and len(node.outputs) <= form.outputs
    if named and fits and not form.deprecated:
        return
    where = f"{node.op_type} of opset {op.version}"
    if form.deprecated:
        op.refuse(f"{where} is deprecated")
    for name in sorted(given - form.attributes):
        op.refuse(f"{where} has no attribute '{name}'")
    for name in sorted(form.required - given):
        op.refuse(f"{where} requires attribute '{name}'")
    if any(value is not None for value in node.inputs[form.inputs :]):
        op.refuse(f"{where} has no input {form.inputs}")
    if any(op.used(index) for index in range(form.outputs, len(node.outputs))):
        op.refuse(f"{where} has no output {form.outputs}")


class _Form(NamedTuple):
    """What a schema demands of a node: its own properties are slow to read."""

    deprecated: bool
    attributes: frozenset[str]
    required: frozenset[str]
    inputs: int
    outputs: int


@functools.cache
def _form(domain: str, op_type: str, version: int) -> _Form:
    known = schema(domain, op_type, version)
    required = frozenset(name for name, attribute in known.attributes.items() if attribute.required)
    return _Form(known.deprecated, frozenset(known.attributes), required, known.max_input, known.max_output)


def _foreign_types(op: OpBuilder, node: ir.Node, known: onnx.defs.OpSchema) -> dict[str, ir.DataType]:
    """Type variables (or parameter types) whose element type the schema does not list."""
    found: dict[str, ir.DataType] = {}
    bound: dict[str, ir.TypeProtocol] = {}
    mixed = _mixed(node.domain, node.op_type, known.since_version)
    for value, variable in _typed_values(node, known):
        allowed = _allowed(node.domain, node.op_type, known.since_version)[variable]
        kind = op.around.types.type(value)
        if kind is None:
            _need_no_type(op, node, value, allowed)
            continue
        if variable not in mixed and bound.setdefault(variable, kind) != kind:
            both = " and ".join(sorted((_spell(kind), _spell(bound[variable]))))
            op.refuse(f"{node.op_type} of opset {op.version} does not mix {both}")
        if _spell(kind) not in allowed:
            if not isinstance(kind, ir.TensorType):
                op.refuse(f"{node.op_type} of opset {op.version} does not take {_spell(kind)}")
            found[variable] = kind.dtype
    return found


def _need_no_type(op: OpBuilder, node: ir.Node, value: ir.Value, allowed: frozenset[str]) -> None:
    """An unknown element type is fine where the operator takes all the common ones."""
    if not allowed >= _ALL:
        where = f"{node.op_type} of opset {op.version} takes only some"
        op.refuse(f"the element type of '{value.name}' is unknown, and {where}", hint="possible with value_info")


def _in_wider_types(
    op: OpBuilder, node: ir.Node, known: onnx.defs.OpSchema, foreign: dict[str, ir.DataType]
) -> Sequence[ir.Value | None]:
    first = next(iter(foreign.values())).name.lower()
    if node.op_type in ("Cast", "Constant", "CastLike"):
        op.refuse(f"opset {op.version} has no element type {first}")
    if any(True for _ in subgraphs(node)):
        op.refuse(f"{node.op_type} of opset {op.version} does not take element type {first}")
    wider = {name: _wider(op, node, known, name, dtype) for name, dtype in foreign.items()}
    variables = _variables(known, len(node.inputs), inputs=True)
    inputs = [
        op.standard.Cast(value, to=int(wider[name])) if value is not None and name in wider else value
        for value, name in zip(node.inputs, variables, strict=False)
    ]
    results = op.again(*inputs, **_made_wider(op, wider.keys() - set(variables), wider))
    results = [results] if isinstance(results, ir.Value) else list(results)
    back = _variables(known, len(node.outputs), inputs=False)
    return [
        op.standard.Cast(value, to=int(foreign[name])) if name in foreign else value
        for value, name in zip(results, back, strict=False)
    ]


def _made_wider(op: OpBuilder, made: AbstractSet[str], wider: Mapping[str, ir.DataType]) -> dict[str, Any]:
    """Attributes that let the node make, rather than take, the wider types."""
    if not made:
        return {}
    dtype, value = wider[min(made)], op.node.attributes.get("value")
    if "dtype" in op.node.attributes:
        return {"dtype": int(dtype)}
    if value is None or value.type != ir.AttributeType.TENSOR:
        op.refuse(f"{op.node.op_type} of opset {op.version} does not make its element type")
    return {"value": ir.tensor(value.as_tensor().numpy().astype(dtype.numpy()), dtype=dtype)}


def _wider(op: OpBuilder, node: ir.Node, known: onnx.defs.OpSchema, variable: str, dtype: ir.DataType) -> ir.DataType:
    allowed = _allowed(node.domain, node.op_type, known.since_version)[variable]
    casts = _allowed("", "Cast", since("", "Cast", op.version))
    for name in EXACTLY_WIDER.get(dtype.name, ()):
        wider = ir.DataType[name]
        if _spell(ir.TensorType(wider)) in allowed:
            if _spell(ir.TensorType(dtype)) not in casts["T1"]:
                break
            return wider
    where = f"{node.op_type} of opset {op.version}"
    raise op.refusal(f"{where} does not take element type {dtype.name.lower()}, and no type there holds it exactly")


def _typed_values(node: ir.Node, known: onnx.defs.OpSchema) -> Iterator[tuple[ir.Value, str]]:
    for values, inputs in ((node.inputs, True), (node.outputs, False)):
        for value, variable in zip(values, _variables(known, len(values), inputs=inputs), strict=False):
            if value is not None and value.name:
                yield value, variable


def _variables(known: onnx.defs.OpSchema, count: int, *, inputs: bool) -> list[str]:
    """The type variable of each of ``count`` inputs or outputs; a variadic one repeats."""
    formal = list(known.inputs if inputs else known.outputs)
    names = [parameter.type_str for parameter in formal]
    if formal and formal[-1].option == _Option.Variadic:
        names += [names[-1]] * (count - len(names))
    return names[:count]


@functools.cache
def _mixed(domain: str, op_type: str, version: int) -> frozenset[str]:
    """Type variables of variadic parameters whose values may differ in type from one another."""
    known = schema(domain, op_type, version)
    return frozenset(item.type_str for item in (*known.inputs, *known.outputs) if not item.is_homogeneous)


@functools.cache
def _allowed(domain: str, op_type: str, version: int) -> dict[str, frozenset[str]]:
    known = schema(domain, op_type, version)
    allowed = {item.type_param_str: frozenset(item.allowed_type_strs) for item in known.type_constraints}
    for parameter in (*known.inputs, *known.outputs):
        allowed.setdefault(parameter.type_str, frozenset(parameter.types))
    return allowed


_ALL = frozenset(f"tensor({name})" for name in ("float", "double", "float16", "int32", "int64", "bool", "string"))


def _spell(kind: ir.TypeProtocol | None) -> str:
    """A type as schemas write it: ``tensor(float)``, ``seq(tensor(int64))``."""
    if isinstance(kind, ir.TensorType):
        return f"tensor({_names().get(kind.dtype, kind.dtype.name.lower())})"
    if isinstance(kind, ir.SequenceType):
        return f"seq({_spell(kind.elem_type)})"
    if isinstance(kind, ir.OptionalType):
        return f"optional({_spell(kind.elem_type)})"
    return str(kind)


@functools.cache
def _names() -> dict[ir.DataType, str]:
    return {ir.DataType.FLOAT: "float", ir.DataType.DOUBLE: "double"}
