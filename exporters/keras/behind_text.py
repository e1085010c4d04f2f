"""A Keras model from behind its layers of text: their results are further inputs of it."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any

import keras
from keras import tree

from entrepot.exporters.building import Builder
from entrepot.exporters.cutting import REFUSALS, Beginning, free_name, may_be_cut, refuse_rest
from entrepot.exporters.exporter import Source
from entrepot.exporters.keras import upstream
from entrepot.exporters.keras.arrays import KERAS
from entrepot.exporters.keras.dtypes import element_of
from entrepot.exporters.keras.reading.order import order
from entrepot.exporters.keras.reading.reader import FAULTS, Reader
from entrepot.exporters.keras.source import KerasSource
from entrepot.exporters.options import Options
from entrepot.exporters.steady import check_rest
from entrepot.exporters.structure import flatten_named
from entrepot.ir.errors import ConversionError


class BehindText(KerasSource):
    """What a cut leaves of a source.

    Args:
        source: It.
        model: What is left, a functional model.
        arrays: Its sample.
        beginnings: Which of its inputs the cut made.
    """

    def __init__(self, source: KerasSource, model: Any, arrays: Sequence[Any], beginnings: Sequence[Beginning]) -> None:
        super().__init__(model, list(arrays))
        self.name, self.origin = source.name, source.origin
        self._beginnings = beginnings

    def behind_text(self, options: Options) -> Source:
        """It is."""
        return self

    def notes(self) -> Sequence[str]:
        """What stays in Python."""
        return [*super().notes(), *map(str, self._beginnings)]


def behind_text(source: KerasSource) -> Source:
    """A functional model, without those layers of text that have no counterpart, and what only they need.

    Raises:
        ConversionError: Nothing but text is left, or a mask goes along with it.
    """
    graph, result = source.graph, source.settled()
    assert graph is not None
    with upstream.unrecorded(source.model):
        names = upstream.input_names(graph)
        inputs = [_input(spec, name) for spec, name in zip(graph.inputs, names, strict=True)]
        outputs = _unrolled(graph, inputs)
        nodes = order(tree.flatten(outputs), dict.fromkeys(map(id, inputs)))
        refused = _refused(source.name, inputs, nodes)
        behind, results = _behind(nodes, tree.flatten(outputs), refused)
        if not results:
            return source
        if not behind:
            raise refuse_rest(source.noun)
        if any(upstream.get_keras_mask(spec) is not None for spec in results):
            raise ConversionError(
                "a mask goes along with the result of a layer of text, and cannot be an input of its own"
            )
        read = {id(spec) for node in behind for spec in upstream.parents_of(node)} | set(map(id, tree.flatten(outputs)))
        taken = [at for at, spec in enumerate(inputs) if id(spec) in read]
        beginnings = _beginnings(results, nodes, refused, {names[at] for at in taken})
        fresh = [_input(inputs[at], names[at]) for at in taken]
        fresh += [_input(spec, each.name) for spec, each in zip(results, beginnings, strict=True)]
        known = dict(zip(map(id, [*(inputs[at] for at in taken), *results]), fresh, strict=True))
        for node in behind:
            _called(node, known)
        rest = keras.Model(fresh, tree.map_structure(functools.partial(_filled, known), outputs), name=source.name)
        texts = keras.Model(inputs, results)
        arrays = flatten_named([("text", texts(list(source.call.tensors), training=False))], {}, KERAS).tensors
        made = BehindText(source, rest, [*(source.call.tensors[at] for at in taken), *arrays], beginnings)
        check_rest(made, result)
    return made


def _input(spec: Any, name: str) -> Any:
    return keras.Input(batch_shape=tuple(spec.shape), dtype=spec.dtype, name=name)


def _unrolled(graph: Any, values: Sequence[Any]) -> Any:
    """The results of a functional model, with the calls that models in it make in the place of calls of those."""
    known = dict(zip(map(id, graph.inputs), values, strict=True))
    for node in upstream.ordered_nodes(graph):
        _called(node, known)
    return tree.map_structure(functools.partial(_filled, known), upstream.output_structure(graph))


def _called(node: Any, known: dict[int, Any]) -> None:
    args, kwargs = (tree.map_structure(functools.partial(_filled, known), part) for part in upstream.arguments_of(node))
    inner = upstream.graph_of(node.operation)
    made = node.operation(*args, **kwargs) if inner is None else _unrolled(inner, tree.flatten(args[0]))
    specs = [part for part in tree.flatten(made) if isinstance(part, keras.KerasTensor)]
    known.update(zip(map(id, upstream.outputs_of(node)), specs, strict=True))


def _filled(known: Mapping[int, Any], item: Any) -> Any:
    return known.get(id(item), item)


def _refused(title: str, inputs: Sequence[Any], nodes: Sequence[Any]) -> list[Any]:
    """The calls that are about text and have no counterpart."""
    build, found = Builder(title), []
    reader = Reader(build)
    known = {id(spec): build.input(spec.name, element_of(spec.dtype), list(spec.shape)) for spec in inputs}
    for node in nodes:
        try:
            reader.apply(node, known)
        except (*REFUSALS, *FAULTS) as error:  # of those that are not about text, the capture of the rest will tell
            if isinstance(error, REFUSALS) and may_be_cut(error):
                found.append(node)
            for spec in upstream.outputs_of(node):
                known[id(spec)] = build.input(spec.name, element_of(spec.dtype), list(spec.shape))
    return found


def _behind(nodes: Sequence[Any], outputs: Sequence[Any], refused: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """The calls that results depend on behind those that are refused, and what they read of these, in order."""
    makers = {id(spec): node for node in nodes for spec in upstream.outputs_of(node)}
    stays, read, seen, waiting = set(map(id, refused)), set[int](), set[int](), list(outputs)
    while waiting:
        spec = waiting.pop()
        read.add(id(spec))
        node = makers.get(id(spec))
        if node is not None and id(node) not in stays and id(node) not in seen:
            seen.add(id(node))
            waiting += upstream.parents_of(node)
    results = [spec for node in refused for spec in upstream.outputs_of(node) if id(spec) in read]
    return [node for node in nodes if id(node) in seen], results


def _beginnings(
    results: Sequence[Any], nodes: Sequence[Any], refused: Sequence[Any], taken: set[str]
) -> list[Beginning]:
    found = []
    makers = {id(spec): node for node in nodes for spec in upstream.outputs_of(node)}
    for spec in results:
        node = makers[id(spec)]
        outputs = [id(each) for each in upstream.outputs_of(node)]
        which = f"_{outputs.index(id(spec))}" if len(outputs) > 1 else ""
        name = free_name(f"{node.operation.name}{which}", taken)
        taken.add(name)
        above = _above(node, makers)
        before = [_described(other) for other in refused if id(other) in above]
        what = f"result {which[1:]}" if which else "the result"
        found.append(Beginning(name, f"{what} of {_described(node)}", before))
    return found


def _above(node: Any, makers: Mapping[int, Any]) -> set[int]:
    """What a call depends on, by identity."""
    seen, waiting = set[int](), list(upstream.parents_of(node))
    while waiting:
        other = makers.get(id(waiting.pop()))
        if other is not None and id(other) not in seen:
            seen.add(id(other))
            waiting += upstream.parents_of(other)
    return seen


def _described(node: Any) -> str:
    return f"{type(node.operation).__name__} '{node.operation.name}'"
