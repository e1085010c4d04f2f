"""Part of a model as a separate model: the nodes between some values and others."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from typing import Any

import onnx_ir

from entrepot.ir.errors import InputError, ModelFormatError
from entrepot.ir.io.read import Source, load
from entrepot.ir.model import Model
from entrepot.ir.part import Part, assemble, values_of
from entrepot.ir.subgraphs import subgraphs
from entrepot.ir.validity import problem_without_weights

_TOLD = 10


def extract(
    model: Source, inputs: Sequence[str] | str | None = None, outputs: Sequence[str] | str | None = None
) -> Model:
    """The part of a model that computes some of its values from others, as a valid model.

    Nodes, weights and functions that the part does not need are left out; weights are shared, not copied. Names,
    metadata and opsets stay.

    Args:
        model: What ``load`` takes.
        inputs: Names of the values that become inputs, in this order: inputs of the model, weights, or what any node of
            the main graph computes. By default those inputs of the model that the part needs.
        outputs: Names of the values that become outputs; by default the outputs of the model.

    Returns:
        A new model, accepted by onnx's checker. An input that the part does not need stays an input.

    Raises:
        InputError: There is no such value, or the outputs need more than the inputs; the message names what is missing.
        ConversionError: The type or rank of a cut value is known neither from the file nor by inference.
        ModelFormatError: The part is not valid, because the model is not.
    """
    source = load(model)
    values = values_of(source.ir.graph)
    ends = [_find(name, values, source.ir.graph) for name in _names(outputs, source.ir.graph.outputs, "outputs")]
    found = Part()
    cuts: list[onnx_ir.Value] = []
    if inputs is None:
        found.follow(ends, source.ir.graph, set())
        cuts = [value for value in source.ir.graph.inputs if value in found.inputs]
    else:
        cuts = [_find(name, values, source.ir.graph) for name in _names(inputs, [], "inputs")]
        found.follow(ends, source.ir.graph, set(cuts))
        _refuse_missing(found.inputs, ends)
    part = Model(assemble(source.ir, cuts, ends, found), path=source.path)
    problem = problem_without_weights(part)
    if problem:
        raise ModelFormatError(f"the part is not a valid model: {problem}", hint="ep.load and check the whole model")
    return part


def unused_inputs(part: Model) -> tuple[str, ...]:
    """Inputs of a model that nothing in it reads."""
    graph = part.ir.graph
    return tuple(value.name or "" for value in graph.inputs if not value.uses() and not value.is_graph_output())


def _names(given: Sequence[str] | str | None, default: Sequence[onnx_ir.Value], what: str) -> list[str]:
    if given is None:
        return [value.name or "" for value in default]
    names: Any = [given] if isinstance(given, str) else given
    if not isinstance(names, Sequence) or not all(isinstance(name, str) for name in names):
        raise InputError(f"{what} are {given!r}", hint='give names of values: ["a", "b"]')
    if not names and what == "outputs":
        raise InputError("a model without outputs computes nothing", hint="name a value to compute")
    twice = next((name for at, name in enumerate(names) if name in names[:at]), None)
    if twice is not None:
        raise InputError(f"'{twice}' is given twice among the {what}")
    return list(names)


def _find(name: str, values: Mapping[str, onnx_ir.Value], graph: onnx_ir.Graph) -> onnx_ir.Value:
    if name in values:
        return values[name]
    for node in graph:
        for inner in (inner for body in subgraphs(node) for inner in body.all_nodes()):
            if any(output.name == name for output in inner.outputs):
                holder = f"{node.op_type} node '{node.name or node.outputs[0].name}'"
                hint = "cut the model at a value of its main graph"
                raise InputError(f"it is inside the body of {holder}, which stays whole", value=name, hint=hint)
    close = difflib.get_close_matches(name, values, n=3) or _containing(name, values)
    hint = f"did you mean {_listed(close[:3])}?" if close else "entrepot info --nodes lists the outputs of every node"
    raise InputError("the model has no such value", value=name, hint=hint)


def _containing(name: str, values: Mapping[str, onnx_ir.Value]) -> list[str]:
    return [other for other in values if name.lower() in other.lower()] if len(name) > 2 else []


def _refuse_missing(missing: Mapping[onnx_ir.Value, None], ends: Sequence[onnx_ir.Value]) -> None:
    if missing:
        wanted = _listed([value.name or "" for value in ends])
        names = _listed([value.name or "" for value in missing])
        raise InputError(f"to compute {wanted} the part also needs {names}", hint="add that to the inputs")


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _TOLD} more" if len(names) > _TOLD else ""
    return ", ".join(f"'{name}'" for name in names[:_TOLD]) + more
