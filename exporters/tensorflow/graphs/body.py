"""A graph or a function of TensorFlow in one form: steps that refer to the results of others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, TypeAlias

from entrepot.exporters.tensorflow.upstream import operator_definition, output_offsets

Ref: TypeAlias = tuple[str, int]
"""A result: the name of its step, and which of its outputs."""

SAME = frozenset(
    {"Identity", "IdentityN", "StopGradient", "PreventGradient", "Snapshot", "CheckNumerics", "CheckNumericsV2"}
)
"""Operators that return what they are given, whatever it is."""


@dataclass(frozen=True)
class Step:
    """A node.

    Attributes:
        name: Its name.
        op: Its operator.
        inputs: What it reads.
        controls: Steps that come before it although it reads none of their results.
        attributes: As in its ``NodeDef``, ``AttrValue`` by name.
        path: The scopes of the model that it is in.
    """

    name: str
    op: str
    inputs: tuple[Ref, ...]
    controls: tuple[str, ...]
    attributes: Mapping[str, Any]
    path: str = ""


@dataclass(frozen=True)
class Body:
    """A function.

    Attributes:
        name: Its name.
        arguments: What stands for each argument.
        steps: Its nodes, each after those that it depends on.
        results: What it returns.
    """

    name: str
    arguments: Sequence[Ref]
    steps: Sequence[Step]
    results: Sequence[Ref]


def of_graph(name: str, nodes: Iterable[Any], arguments: Sequence[Ref], results: Sequence[Ref]) -> Body:
    """A ``GraphDef``, whose nodes refer to outputs by number; ``arguments`` are placeholders in it."""
    taken = {argument for argument, _ in arguments}
    steps = [_step(node, _numbered) for node in nodes if node.name not in taken]
    return Body(name, arguments, ordered(steps), results)


def of_function(definition: Any, others: Mapping[str, Any] = MappingProxyType({})) -> Body:
    """A ``FunctionDef``, whose nodes refer to outputs by name.

    Args:
        definition: It.
        others: The functions that it may call, by the names that such nodes have for an operator.
    """
    arguments = [(argument.name, 0) for argument in definition.signature.input_arg]
    offsets: dict[str, Mapping[str, int]] = {name: {"": 0} for name, _ in arguments}
    for node in definition.node_def:
        known = others[node.op].signature if node.op in others else operator_definition(node.op)
        offsets[node.name] = {} if known is None else output_offsets(known, node.attr)

    def named(text: str) -> Ref:
        node, _, rest = text.partition(":")
        output, _, index = rest.partition(":")
        return node, offsets[node].get(output, 0) + int(index or 0)

    steps = [_step(node, named) for node in definition.node_def]
    results = [named(definition.ret[output.name]) for output in definition.signature.output_arg]
    return Body(definition.signature.name, arguments, ordered(steps), results)


def _numbered(text: str) -> Ref:
    node, _, index = text.partition(":")
    return node, int(index or 0)


def _step(node: Any, read: Any) -> Step:
    inputs = tuple(read(text) for text in node.input if not text.startswith("^"))
    controls = tuple(text[1:] for text in node.input if text.startswith("^"))
    return Step(node.name, node.op, inputs, controls, node.attr, node.name.rpartition("/")[0])


def ordered(steps: Sequence[Step]) -> list[Step]:
    """The steps in their own order, except that each comes after what it depends on."""
    by_name = {step.name: step for step in steps}
    done: set[str] = set()
    result: list[Step] = []
    for first in steps:
        stack = [(first, False)]
        while stack:
            step, ready = stack.pop()
            if ready:
                result.append(step)
            elif step.name not in done:
                done.add(step.name)
                stack.append((step, True))
                stack += [(by_name[name], False) for name in reversed(_before(step)) if name in by_name]
    return result


def _before(step: Step) -> list[str]:
    return [*(name for name, _ in step.inputs), *step.controls]


def renamed(step: Step, prefix: str, path: str, refs: Sequence[Ref]) -> Step:
    """The step as part of another graph."""
    scopes = "/".join(part for part in (path, step.path) if part)
    return replace(step, name=f"{prefix}{step.name}", path=scopes, inputs=tuple(refs), controls=())
