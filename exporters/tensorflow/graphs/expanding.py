"""Calls of functions put in the place of the call, however deep they are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import tensorflow as tf

from entrepot.exporters.tensorflow.graphs.body import Body, Ref, Step, of_function, renamed
from entrepot.exporters.tensorflow.graphs.old_flow import functional, has_old_flow
from entrepot.ir.errors import UnsupportedOpError

CALLS = frozenset({"PartitionedCall", "StatefulPartitionedCall"})
WRITES = frozenset({
    "AssignVariableOp", "AssignAddVariableOp", "AssignSubVariableOp", "ResourceStridedSliceAssign",
    *(f"ResourceScatter{name}" for name in ("Update", "Add", "Sub", "Mul", "Div", "Min", "Max")),
    *(f"ResourceScatterNd{name}" for name in ("Update", "Add", "Sub", "Min", "Max")),
})  # fmt: skip
"""Operators without results that others read."""


class Library:
    """The functions of a graph, by name.

    Args:
        definitions: ``FunctionDef``s.
    """

    def __init__(self, definitions: Iterable[Any]) -> None:
        self.definitions: dict[str, Any] = {each.signature.name: each for each in definitions}
        self._bodies: dict[str, Body] = {}

    def body(self, name: str) -> Body:
        """A function.

        Raises:
            UnsupportedOpError: The graph does not have it.
        """
        if name not in self.definitions:
            raise UnsupportedOpError(f"the graph calls a function that is not in it: '{name}'")
        if name not in self._bodies:
            types = [tf.as_dtype(each.type) for each in self.definitions[name].signature.input_arg]
            self._bodies[name] = self.functional(of_function(self.definitions[name], self.definitions), types)
        return self._bodies[name]

    def functional(self, body: Body, types: Sequence[tf.DType]) -> Body:
        """A body without the control flow of TensorFlow 1; what becomes of it are functions here."""
        if not has_old_flow(body):
            return body
        found, functions = functional(body, types, self.called_by(body.steps))
        self.definitions |= {each.signature.name: each for each in functions}
        return found

    def called_by(self, steps: Iterable[Step]) -> list[Any]:
        """The definitions of all functions that steps name in their attributes, directly or not."""
        found: dict[str, Any] = {}
        waiting = [name for step in steps for name in _named(step.attributes)]
        while waiting:
            name = waiting.pop()
            if name in self.definitions and name not in found:
                found[name] = self.definitions[name]
                waiting += [inner for node in found[name].node_def for inner in (node.op, *_named(node.attr))]
        return list(found.values())

    def callee(self, step: Step) -> str | None:
        """The function that a step calls, if it does nothing else."""
        if step.op in CALLS:
            return str(step.attributes["f"].func.name)
        return step.op if step.op in self.definitions else None


def _named(attributes: Mapping[str, Any]) -> list[str]:
    functions = [value.func for value in attributes.values() if value.HasField("func")]
    functions += [func for value in attributes.values() for func in value.list.func]
    return [func.name for func in functions]


@dataclass(frozen=True)
class Flat:
    """A graph without calls.

    Attributes:
        arguments: What stands for its arguments.
        steps: In an order in which they can be run.
        results: What it returns.
    """

    arguments: Sequence[Ref]
    steps: Sequence[Step]
    results: Sequence[Ref]


def expanded(body: Body, library: Library) -> Flat:
    """A body with every call in it replaced by what is called, and without what nothing depends on.

    Raises:
        UnsupportedOpError: A function calls itself.
    """
    expansion = _Expansion(library)
    known = {argument: argument for argument in body.arguments}
    results = expansion.expand(body, known, "", "", ())
    return Flat(body.arguments, _needed(expansion.steps, results), results)


class _Expansion:
    def __init__(self, library: Library) -> None:
        self._library = library
        self.steps: list[Step] = []

    def expand(self, body: Body, known: dict[Ref, Ref], prefix: str, path: str, callers: tuple[str, ...]) -> list[Ref]:
        """Add the steps of a body; returns what its results are among all steps."""
        for step in body.steps:
            inputs = [known.get(ref, (f"{prefix}{ref[0]}", ref[1])) for ref in step.inputs]
            name = self._library.callee(step)
            if name is None:
                self.steps.append(renamed(step, prefix, path, inputs))
                continue
            if name in callers:
                raise UnsupportedOpError(f"function '{name}' calls itself", node=f"node '{prefix}{step.name}'")
            callee = self._library.body(name)
            inner = "/".join(part for part in (path, step.path) if part)
            given = dict(zip(callee.arguments, inputs, strict=True))
            results = self.expand(callee, given, f"{prefix}{step.name}/", inner, (*callers, name))
            known |= {(step.name, at): result for at, result in enumerate(results)}
        return [known.get(ref, (f"{prefix}{ref[0]}", ref[1])) for ref in body.results]


def _needed(steps: Sequence[Step], results: Sequence[Ref]) -> list[Step]:
    """The steps that results depend on, and those that write what others may read."""
    wanted = {name for name, _ in results}
    kept = []
    for step in reversed(steps):
        if step.name in wanted or step.op in WRITES:
            kept.append(step)
            wanted |= {name for name, _ in step.inputs}
    return kept[::-1]
