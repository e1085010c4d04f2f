"""Which models can certainly be expressed at an older opset: an oracle written from the schemas, not our adapters.

``expressible.json`` has a row per version step and per introduction of an operator: whether a node can go below it
(``down``), on which condition of its attributes and constants (``down_if``), what it is otherwise (``down_else``), and
how low an operator goes that older opsets lack (``floor``; ``body``: as low as its schema's function body goes).
The verdict on a model is that on its worst node.
"""

from __future__ import annotations

import functools
import itertools
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import onnx
from onnx import TensorProto

from entrepot.ir.opset.schemas import canonical, histories, schema, since

VERDICTS = ("certain", "conditional", "impossible")
"""From best to worst."""

Verdict = str


@dataclass(frozen=True)
class Scope:
    """What is known around a node: the opsets in force, types, and which values are constants."""

    opsets: Mapping[str, int]
    types: Mapping[str, onnx.TypeProto]
    constants: frozenset[str]
    functions: frozenset[tuple[str, str]] = field(default_factory=frozenset)


def expressible(model: onnx.ModelProto, target: int) -> Verdict:
    """Whether a model can be lowered to ai.onnx ``target``; ``certain`` if it is not above it."""
    try:
        inferred = onnx.shape_inference.infer_shapes(model, data_prop=True)
    except (onnx.shape_inference.InferenceError, RuntimeError):
        inferred = model
    opsets = {canonical(item.domain): item.version for item in model.opset_import}
    functions = frozenset((function.domain, function.name) for function in model.functions)
    scope = Scope(opsets, {}, frozenset(), functions)
    bodies = [_graph(inferred.graph, scope, target)]
    for function in model.functions:
        own = {canonical(item.domain): item.version for item in function.opset_import}
        bodies.append(_nodes(function.node, replace(scope, opsets=own), target))
    return worst(bodies)


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """The worst of several verdicts; ``certain`` of none."""
    return max(verdicts, key=VERDICTS.index, default="certain")


def _graph(graph: onnx.GraphProto, around: Scope, target: int) -> Verdict:
    overridable = {value.name for value in graph.input}
    stored = {item.name for item in graph.initializer} - overridable
    typed = {item.name: onnx.helper.make_tensor_type_proto(item.data_type, item.dims) for item in graph.initializer}
    typed |= {value.name: value.type for value in [*graph.input, *graph.value_info, *graph.output]}
    return _nodes(
        graph.node, replace(around, types={**around.types, **typed}, constants=around.constants | stored), target
    )


def _nodes(nodes: Sequence[onnx.NodeProto], scope: Scope, target: int) -> Verdict:
    made = {node.output[0] for node in nodes if node.op_type == "Constant"}
    scope = replace(scope, constants=scope.constants | made)
    return worst(_node(node, scope, target) for node in nodes)


def _node(node: onnx.NodeProto, scope: Scope, target: int) -> Verdict:
    bodies = [item.g for item in node.attribute if item.type == onnx.AttributeProto.GRAPH]
    inner = worst(_graph(body, scope, target) for body in bodies)
    if (node.domain, node.op_type) in scope.functions or canonical(node.domain):
        return inner
    version = since("", node.op_type, scope.opsets.get("", 1))
    if not version:
        return "impossible"
    return worst([inner, *(_step(row, node, scope, target) for row in _way_down(node.op_type, version, target))])


def _way_down(op_type: str, version: int, target: int) -> list[dict[str, Any]]:
    versions = [item for item in histories()["", op_type] if item <= version]
    if not versions:
        return []
    pairs = [(None, versions[0]), *itertools.pairwise(versions)]
    return [_rows()[op_type, older, newer] for older, newer in pairs if newer > max(target, 1)]


@functools.cache
def _rows() -> dict[tuple[str, int | None, int], dict[str, Any]]:
    rows = json.loads(Path(__file__).with_name("expressible.json").read_text())
    return {(row["op"], row["from"], row["to"]): row for row in rows}


def _step(row: dict[str, Any], node: onnx.NodeProto, scope: Scope, target: int) -> Verdict:
    if row["from"] is None:
        return _introduction(row, node, scope, target)
    if row["down"] == "no":
        return "impossible"
    verdict = _types(node, scope, row["from"])
    if row.get("down_if") and not all(_CONDITIONS[name](want, node, scope) for name, want in row["down_if"].items()):
        verdict = worst([verdict, "conditional" if row.get("down_else") == "cond" else "impossible"])
    return verdict


def _introduction(row: dict[str, Any], node: onnx.NodeProto, scope: Scope, target: int) -> Verdict:
    if row["down"] != "yes":
        return "conditional" if row["down"] == "conditionally" else "impossible"
    if not _castable(node, scope, target):
        return "impossible"
    if target >= row.get("floor", OLDEST_RUNTIME if not row.get("body") else row["to"]):
        return "certain"
    return _body(node, scope, target) if row.get("body") else "conditional"


OLDEST_RUNTIME = 7
"""For some operators the table only says that they can go down: to the oldest opset that runtimes load."""


def _body(node: onnx.NodeProto, scope: Scope, target: int) -> Verdict:
    """What the schema's function body is, with the types that the node is given."""
    known: Any = schema("", node.op_type, scope.opsets[""])
    function: Any = onnx.FunctionProto()
    types = [scope.types.get(name, onnx.TypeProto()) for name in node.input]
    if known.has_function:
        version = min(known.function_opset_versions)
        function.ParseFromString(known.get_function_with_opset_version(version))
    elif known.has_context_dependent_function and all(kind.WhichOneof("value") for kind in types):
        version = min(known.context_dependent_function_opset_versions)
        content = [kind.SerializeToString() for kind in types]
        function.ParseFromString(
            known.get_context_dependent_function_with_opset_version(version, node.SerializeToString(), content)
        )
    if not function.node:
        return "conditional"
    return _nodes(function.node, _inside(function, node, scope), target)


def _inside(function: onnx.FunctionProto, node: onnx.NodeProto, scope: Scope) -> Scope:
    given = dict(zip(function.input, node.input, strict=False))
    types = {formal: scope.types[name] for formal, name in given.items() if name in scope.types}
    inputs = [onnx.ValueInfoProto(name=name, type=kind) for name, kind in types.items()]
    graph = onnx.helper.make_graph(list(function.node), "body", inputs, [])
    opsets = {item.domain: item.version for item in function.opset_import}
    imports = [onnx.helper.make_opsetid(domain, version) for domain, version in opsets.items()]
    try:
        inferred = onnx.shape_inference.infer_shapes(onnx.helper.make_model(graph, opset_imports=imports)).graph
        types |= {value.name: value.type for value in inferred.value_info}
    except (onnx.shape_inference.InferenceError, RuntimeError):
        pass  # reference attributes stop inference: the types of inner values stay unknown
    constants = frozenset(formal for formal, name in given.items() if name in scope.constants)
    return replace(scope, opsets=opsets, types=types, constants=constants)


def _types(node: onnx.NodeProto, scope: Scope, version: int) -> Verdict:
    """Whether the older version knows the node's element types; if not, a Cast around it may do."""
    known = schema("", node.op_type, version)
    for formals, names in ((known.inputs, node.input), (known.outputs, node.output)):
        for index, name in enumerate(names):
            formal = _formal(formals, index)
            spelled = _spelled(scope.types.get(name))
            if formal is not None and spelled and spelled not in formal.types:
                return "conditional" if _castable(node, scope, version) else "impossible"
    return "certain"


def _formal(formals: Sequence[Any], index: int) -> Any:
    """The parameter at a position; an older version may have fewer, and a variadic one goes on."""
    if index < len(formals):
        return formals[index]
    variadic = onnx.defs.OpSchema.FormalParameterOption.Variadic
    return formals[-1] if formals and formals[-1].option == variadic else None


def _castable(node: onnx.NodeProto, scope: Scope, version: int) -> bool:
    """Whether an older opset has a Cast for every element type at the node."""
    casts = schema("", "Cast", min(max(version, 6), scope.opsets[""]))
    spelled = [_spelled(scope.types.get(name)) for name in [*node.input, *node.output]]
    tensors = [kind for kind in spelled if kind.startswith("tensor(")]
    return all(kind in casts.inputs[0].types or kind == "tensor(string)" for kind in tensors)


def _spelled(kind: onnx.TypeProto | None) -> str:
    if kind is None or not kind.WhichOneof("value"):
        return ""
    if kind.HasField("sequence_type"):
        return f"seq({_spelled(kind.sequence_type.elem_type)})"
    if kind.HasField("optional_type"):
        return f"optional({_spelled(kind.optional_type.elem_type)})"
    code = kind.tensor_type.elem_type
    return f"tensor({TensorProto.DataType.Name(code).lower()})" if code else ""


def _attribute(node: onnx.NodeProto, name: str) -> Any:
    for item in node.attribute:
        if item.name == name:
            value = onnx.helper.get_attribute_value(item)
            return value.decode() if isinstance(value, bytes) else value
    return None


def _shape(node: onnx.NodeProto, index: int, scope: Scope) -> list[int | None] | None:
    kind = scope.types.get(node.input[index]) if index < len(node.input) else None
    if kind is None or not kind.tensor_type.HasField("shape"):
        return None
    return [dim.dim_value if dim.HasField("dim_value") else None for dim in kind.tensor_type.shape.dim]


def _attrs(want: dict[str, list[Any]], node: onnx.NodeProto, _scope: Scope) -> bool:
    return all(_attribute(node, name) is None or _attribute(node, name) in values for name, values in want.items())


def _attrs_are(want: dict[str, list[Any]], node: onnx.NodeProto, _scope: Scope) -> bool:
    return all(_attribute(node, name) in values for name, values in want.items())


def _attrs_not(want: dict[str, list[Any]], node: onnx.NodeProto, _scope: Scope) -> bool:
    return all(_attribute(node, name) not in values for name, values in want.items())


def _attrs_ones(want: list[str], node: onnx.NodeProto, _scope: Scope) -> bool:
    return all(set(_attribute(node, name) or [1]) == {1} for name in want)


def _const_inputs(want: list[int], node: onnx.NodeProto, scope: Scope) -> bool:
    names = [node.input[index] for index in want if index < len(node.input)]
    return all(not name or name in scope.constants for name in names)


def _absent_outputs(want: list[int], node: onnx.NodeProto, _scope: Scope) -> bool:
    return all(index >= len(node.output) or not node.output[index] for index in want)


def _max_rank(want: dict[str, int], node: onnx.NodeProto, scope: Scope) -> bool:
    shapes = {index: _shape(node, int(index), scope) for index in want}
    return all(shape is not None and len(shape) <= want[index] for index, shape in shapes.items())


def _int_or(want: dict[str, list[Any]], node: onnx.NodeProto, scope: Scope) -> bool:
    return "int" in _spelled(scope.types.get(node.input[0])) or _attrs_are(want, node, scope)


def _even_split(_want: bool, node: onnx.NodeProto, scope: Scope) -> bool:
    if len(node.input) > 1 and node.input[1]:
        return True
    shape = _shape(node, 0, scope)
    size = shape[_attribute(node, "axis") or 0] if shape else None
    return size is not None and size % len(node.output) == 0


_CONDITIONS = {
    "attrs": _attrs,
    "attrs_are": _attrs_are,
    "attrs_not": _attrs_not,
    "attrs_ones": _attrs_ones,
    "const_inputs": _const_inputs,
    "absent_outputs": _absent_outputs,
    "max_rank": _max_rank,
    "int_or": _int_or,
    "even_split": _even_split,
}
