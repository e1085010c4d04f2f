"""Whether the bodies of a control-flow node fit it: how many values go in and come out, and of which types."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import zip_longest

import onnx_ir

Attributes = Mapping[str, onnx_ir.Attr]


def body_problem(op_type: str, version: int, inputs: int, outputs: int, attributes: Attributes) -> str | None:
    """What is wrong with the bodies of a node of ai.onnx, or ``None``.

    Args:
        op_type: The operator.
        version: The opset in force.
        inputs: Inputs of the node, those left out included.
        outputs: Its outputs.
        attributes: Its attributes, read.
    """
    rule = _RULES.get(op_type)
    bodies = {name: graph for name, attribute in attributes.items() if (graph := _graph(attribute)) is not None}
    return rule(version, inputs, outputs, bodies, attributes) if rule is not None and bodies else None


def _graph(attribute: onnx_ir.Attr) -> onnx_ir.Graph | None:
    wanted = attribute.type is onnx_ir.AttributeType.GRAPH and not attribute.is_ref()
    return attribute.as_graph() if wanted else None


def _arity(name: str, body: onnx_ir.Graph, inputs: int, outputs: int) -> str | None:
    for what, found, expected in (("inputs", body.inputs, inputs), ("outputs", body.outputs, outputs)):
        if len(found) != expected:
            return f"its {name} has {len(found)} {what}, but the node needs {expected}"
    return None


def _if(version: int, inputs: int, outputs: int, bodies: Mapping[str, onnx_ir.Graph], _: Attributes) -> str | None:
    problems = [_arity(name, body, 0, outputs) for name, body in bodies.items()]
    if any(problems):
        return next(filter(None, problems))
    for values in zip(*(body.outputs for body in bodies.values()), strict=True):
        if len(kinds := {str(value.type) for value in values if _is_known(value.type)}) > 1:
            names = " and ".join(f"'{value.name}'" for value in values)
            return f"its branches return {names} of different types: {' and '.join(sorted(kinds))}"
    return None


def _is_known(kind: onnx_ir.TypeProtocol | None) -> bool:
    """Whether it is a tensor of a known element type: an optional value may come out as what it holds."""
    return isinstance(kind, onnx_ir.TensorType) and kind.dtype != onnx_ir.DataType.UNDEFINED


def _loop(version: int, inputs: int, outputs: int, bodies: Mapping[str, onnx_ir.Graph], _: Attributes) -> str | None:
    body = next(iter(bodies.values()))
    carried = max(inputs - 2, 0)
    if outputs < carried:
        return f"{outputs} outputs, but it carries {carried} values"
    problem = _arity("body", body, 2 + carried, 1 + outputs)
    if problem is None:
        return _not_of(body.outputs[0], onnx_ir.DataType.BOOL, "the condition") or _changed(body, 2, 1, carried)
    return problem


def _scan(
    version: int, inputs: int, outputs: int, bodies: Mapping[str, onnx_ir.Graph], attributes: Attributes
) -> str | None:
    given = inputs - 1 if version < 9 else inputs  # before, the lengths of the sequences came first
    scanned = attributes["num_scan_inputs"].as_int() if _is_given(attributes, "num_scan_inputs") else 1
    if not 1 <= scanned <= given:
        return f"num_scan_inputs is {scanned}, but it has {given} inputs"
    carried = given - scanned
    if outputs < carried:
        return f"{outputs} outputs, but it carries {carried} values"
    body = next(iter(bodies.values()))
    return (
        _arity("body", body, given, outputs)
        or _lengths(attributes, scanned, outputs - carried)
        or _changed(body, 0, 0, carried)
    )


def _lengths(attributes: Attributes, scanned: int, made: int) -> str | None:
    for kind, expected in (("input", scanned), ("output", made)):
        for name in (f"scan_{kind}_axes", f"scan_{kind}_directions"):
            given = list(attributes[name].as_ints()) if _is_given(attributes, name) else []
            if given and len(given) != expected:
                return f"attribute '{name}' has {len(given)} entries, but there are {expected} scan {kind}s"
            if name.endswith("directions") and not set(given) <= {0, 1}:
                return f"attribute '{name}' is {given}, but a direction is 0 or 1"
    return None


def _is_given(attributes: Attributes, name: str) -> bool:
    return name in attributes and not attributes[name].is_ref()


def _sequence_map(
    version: int, inputs: int, outputs: int, bodies: Mapping[str, onnx_ir.Graph], _: Attributes
) -> str | None:
    return _arity("body", next(iter(bodies.values())), inputs, outputs)


def _changed(body: onnx_ir.Graph, first_input: int, first_output: int, count: int) -> str | None:
    """Whether a carried value comes out of another type than it goes in."""
    inputs: Sequence[onnx_ir.Value] = body.inputs[first_input : first_input + count]
    outputs: Sequence[onnx_ir.Value] = body.outputs[first_output : first_output + count]
    for entry, result in zip_longest(inputs, outputs):
        if _is_known(entry.type) and _is_known(result.type) and entry.type != result.type:
            return f"its body takes '{entry.name}' as {entry.type} and returns it as {result.type}"
    return None


def _not_of(value: onnx_ir.Value, dtype: onnx_ir.DataType, what: str) -> str | None:
    kind = value.type
    return None if kind is None or not _is_known(kind) or kind.dtype == dtype else f"{what} of its body is {kind}"


_RULES: Mapping[str, Callable[..., str | None]] = {
    "If": _if,
    "Loop": _loop,
    "Scan": _scan,
    "SequenceMap": _sequence_map,
}
