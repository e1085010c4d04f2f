"""A function of TensorFlow from behind its operations on text: their results are further arguments of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import tensorflow as tf

from entrepot.exporters.axes.probe import Prober
from entrepot.exporters.building import Builder
from entrepot.exporters.cutting import Beginning, free_name, refuse_rest
from entrepot.exporters.options import Options
from entrepot.exporters.sample import Sample
from entrepot.exporters.steady import check_rest
from entrepot.exporters.structure import flatten_named, unflatten
from entrepot.exporters.tensorflow.arrays import TENSORFLOW, tensor_of
from entrepot.exporters.tensorflow.graphs.body import SAME, Ref, Step
from entrepot.exporters.tensorflow.graphs.cutting import Cut, cut_graph
from entrepot.exporters.tensorflow.graphs.expanding import WRITES, Flat, Library, expanded
from entrepot.exporters.tensorflow.graphs.inference import inferred, part_of
from entrepot.exporters.tensorflow.graphs.walk import Walk, place
from entrepot.exporters.tensorflow.sources.callable import CallableSource, Opened
from entrepot.exporters.tensorflow.sources.tracing import Tracing
from entrepot.exporters.tensorflow.translation import opened_graph
from entrepot.exporters.tensorflow.upstream import output_name, variable_names
from entrepot.ir.errors import ConversionError


class BehindText(CallableSource):
    """What a cut leaves of a source.

    Args:
        opened: Takes flat tensors.
        named: Its sample, by names.
        beginnings: Which of those the cut made.
    """

    def __init__(self, opened: Opened, named: Sequence[tuple[str, Any]], beginnings: Sequence[Beginning]) -> None:
        super().__init__(opened, Sample(tuple(array for _, array in named), {}))
        self.call = flatten_named(named, {}, TENSORFLOW)
        self._beginnings = beginnings

    def behind_text(self, options: Options) -> CallableSource:
        """It is."""
        return self

    def notes(self) -> Sequence[str]:
        """What stays in Python."""
        return [*super().notes(), *map(str, self._beginnings)]


def behind_text(source: CallableSource, options: Options) -> CallableSource:
    """The source, without those operations on text that have no counterpart, and what only they need.

    Args:
        source: It.
        options: What the caller asked for; axes have the names that the caller knows in what is left only.

    Raises:
        ConversionError: Nothing but text is left, or state that calls change lies in between.
    """
    result = source.settled()
    prober = Prober(source, source.call.tensors, result)
    wanted = replace(options, dynamic="auto" if options.dynamic else False, dynamic_shapes=None)
    tracing = Tracing(source, prober.sample, prober.result)
    function, groups, _ = tracing.traced(source.groups(prober, wanted)[0])
    build = Builder(source.name)
    begun = opened_graph(
        function, build, source.call.names, tracing.dims(groups), source.name, source.opened.names or {}
    )
    flat = expanded(begun.body, begun.library)
    places = {ref: place(*each) for ref, *each in zip(flat.arguments, begun.values, begun.types, strict=True)}
    graph = inferred(flat, places, begun.library)
    cut = cut_graph(flat, graph, begun.values, build, Walk(begun.library))
    _check(flat, cut, source.noun)
    if not cut.results:
        return source
    parts = _Parts(flat, begun.library, graph, begun.outer)
    texts = parts.function(cut.results, ())
    arrays = [TENSORFLOW.leaf(each, "") for each in texts([tensor_of(array) for array in source.call.tensors])]
    taken = [at for at, ref in enumerate(flat.arguments[: len(source.call.names)]) if ref in cut.arguments]
    named = [(source.call.names[at], source.call.tensors[at]) for at in taken]
    beginnings = _beginnings(flat, cut, {name for name, _ in named})
    named += zip((each.name for each in beginnings), arrays, strict=True)
    rest = parts.function(flat.results, cut.results)
    count = len(source.call.names)

    def behind(*tensors: Any) -> Any:
        given: list[Any] = [None] * count
        for at, tensor in zip(taken, tensors, strict=False):
            given[at] = tensor
        return unflatten(result.tree, rest(given, tensors[len(taken) :]))

    opened = replace(
        source.opened, function=behind, traceable=None, names=variable_names(function, source.opened.names or {}),
        has_python=False, takes=None, keeps=(source.opened, function), unsteadiness=None,
    )  # fmt: skip
    made = BehindText(opened, named, beginnings)
    check_rest(made, result)
    return made


def _check(flat: Flat, cut: Cut, noun: str) -> None:
    if cut.results and all(step.op in SAME or step.op == "Const" for step in flat.steps if step.name in cut.rest):
        raise refuse_rest(noun)
    written = next((step for step in flat.steps if step.op in WRITES), None)
    if cut.refused and written is not None:
        raise ConversionError(
            f"'{written.name}' changes a variable, and what follows operations on text cannot be told from it",
            hint="keep it in Python, and export what follows it by itself",
        )


def _beginnings(flat: Flat, cut: Cut, taken: set[str]) -> list[Beginning]:
    found = []
    by_name = {step.name: step for step in flat.steps}
    for name, at in cut.results:
        step = by_name[name]
        output = output_name(step.op, step.attributes, at)
        scope, own = step.path.rpartition("/")[2], name.rpartition("/")[2]
        word = scope if scope and own.startswith(step.op) else own
        word = free_name(f"{word}_{output}" if output else word, taken)
        taken.add(word)
        which = f"output '{output}'" if output else "the result"
        before = [_described(other) for other in _before(step, by_name, cut)]
        found.append(Beginning(word, f"{which} of {_described(step)}", before))
    return found


def _described(step: Step) -> str:
    own = step.name.rpartition("/")[2]
    return f"{step.op} '{step.path}/{own}'" if step.path else f"{step.op} '{own}'"


def _before(step: Step, by_name: dict[str, Step], cut: Cut) -> list[Step]:
    """What a step depends on of those that stay in Python, first ones first."""
    seen, waiting = set[str](), [name for name, _ in step.inputs]
    while waiting:
        name = waiting.pop()
        if name in by_name and name not in seen:
            seen.add(name)
            waiting += [other for other, _ in by_name[name].inputs]
    return [each for each in by_name.values() if each.name in seen and each.name in cut.refused]


@dataclass(frozen=True)
class _Parts:
    """Parts of a graph that TensorFlow runs.

    Attributes:
        flat: The graph.
        library: Its functions.
        graph: It with shapes.
        outer: What its last arguments are.
    """

    flat: Flat
    library: Library
    graph: tf.Graph
    outer: Sequence[Any]

    def function(self, wanted: Sequence[Ref], given: Sequence[Ref]) -> Any:
        """What computes results from arguments, and from other results.

        Args:
            wanted: Its results.
            given: Results of steps that it takes instead of computing them, after a list of arguments.
        """
        definition, arguments = part_of(self.flat, self.graph, self.library, wanted, given)
        wrapped = tf.compat.v1.wrap_function(lambda: tf.graph_util.import_graph_def(definition, name=""), [])
        places = {ref: f"given_{at}:0" for at, ref in enumerate(given)}
        places |= {ref: f"argument_{at}:0" for ref, at in arguments.items()}
        own = [ref for ref in wanted if ref not in places]
        tensor = wrapped.graph.get_tensor_by_name
        results = [tensor(f"{name}:{at}") for name, at in own]
        concrete = wrapped.prune([tensor(at) for at in places.values()], results)
        first = len(self.flat.arguments) - len(self.outer)

        def run(values: Sequence[Any], others: Sequence[Any] = ()) -> list[Any]:
            known = dict(zip(given, others, strict=True))
            known |= {ref: values[at] if at < first else self.outer[at - first] for ref, at in arguments.items()}
            found = dict(zip(own, concrete(*(known[ref] for ref in places)), strict=True))
            return [found[ref] if ref in found else known[ref] for ref in wanted]

        return run
