"""Which operations on text have no counterpart, and where a graph can begin behind them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import tensorflow as tf

from entrepot.exporters.building import Builder
from entrepot.exporters.cutting import REFUSALS, may_be_cut
from entrepot.exporters.tensorflow.dtypes import numpy_type, onnx_type
from entrepot.exporters.tensorflow.graphs.body import Ref, Step
from entrepot.exporters.tensorflow.graphs.expanding import Flat
from entrepot.exporters.tensorflow.graphs.walk import Walk
from entrepot.exporters.tensorflow.node import dims_of


@dataclass(frozen=True)
class Cut:
    """Where a graph is cut in two.

    Attributes:
        refused: The steps that stay in Python, by name: those without a counterpart, and what reads their tables and
            lists.
        results: What is read of them by others, in order.
        rest: The steps behind them that the results of the graph depend on, by name.
        arguments: The arguments that those read.
    """

    refused: Collection[str]
    results: Sequence[Ref]
    rest: Collection[str]
    arguments: Collection[Ref]


def cut_graph(flat: Flat, graph: tf.Graph, values: Sequence[Any], build: Builder, walk: Walk) -> Cut:
    """Try every step.

    Args:
        flat: The graph.
        graph: It, with shapes.
        values: Its arguments.
        build: Where what can be written is written.
        walk: Translates steps.
    """
    trial = _Trial(graph, build, walk)
    known = dict(zip(flat.arguments, values, strict=True))
    for step in flat.steps:
        found = trial.results_of(step, [known[ref] for ref in step.inputs])
        known.update({(step.name, at): value for at, value in enumerate(found)})
    return _divided(flat, trial.refused)


def _divided(flat: Flat, refused: Collection[str]) -> Cut:
    by_name = {step.name: step for step in flat.steps}
    read, seen, waiting = set[Ref](), set[str](), list(flat.results)
    while waiting:
        ref = waiting.pop()
        read.add(ref)
        if ref[0] in by_name and ref[0] not in refused and ref[0] not in seen:
            seen.add(ref[0])
            waiting += by_name[ref[0]].inputs
    order = {name: at for at, name in enumerate(by_name)}
    results = sorted((ref for ref in read if ref[0] in refused), key=lambda ref: (order[ref[0]], ref[1]))
    return Cut(refused, results, seen, [ref for ref in flat.arguments if ref in read])


class _Hidden:
    """A result that is no tensor, so that it can be no input.

    Attributes:
        is_refused: Whether what makes it stays in Python; else nothing is known of it.
    """

    def __init__(self, *, is_refused: bool) -> None:
        self.is_refused = is_refused


class _Trial:
    def __init__(self, graph: tf.Graph, build: Builder, walk: Walk) -> None:
        self._graph, self._build, self._walk = graph, build, walk
        self.refused: dict[str, Step] = {}

    def results_of(self, step: Step, inputs: Sequence[Any]) -> Sequence[Any]:
        hidden = [value for value in inputs if isinstance(value, _Hidden)]
        if hidden:
            return self._stand_ins(step, is_refused=any(each.is_refused for each in hidden))
        try:
            return self._walk.results_of(step, self._graph, inputs, self._build)
        except REFUSALS as error:  # of those that are not about text, the capture of what is left will tell
            return self._stand_ins(step, is_refused=may_be_cut(error))

    def _stand_ins(self, step: Step, *, is_refused: bool) -> list[Any]:
        if is_refused:
            self.refused[step.name] = step
        outputs = self._graph.get_operation_by_name(step.name).outputs
        return [self._stand_in(tensor, is_refused=is_refused) for tensor in outputs]

    def _stand_in(self, tensor: tf.Tensor, *, is_refused: bool) -> Any:
        if tensor.dtype in (tf.resource, tf.variant):
            return _Hidden(is_refused=is_refused)
        dims = dims_of(tensor)
        pairs = (2,) if tensor.dtype.is_complex else ()
        dtype = onnx_type(numpy_type(tf.dtypes.as_dtype(tensor.dtype.real_dtype)))
        return self._build.input("stand_in", dtype, None if dims is None else (*dims, *pairs))
