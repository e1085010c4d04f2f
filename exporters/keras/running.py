"""A network of many layers as one function, since Keras spends a millisecond of Python on each call of a layer."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import keras

from entrepot.exporters.keras import upstream

_MANY = 100
"""Calls of layers from which on a trace takes less than it spares."""

Call = Callable[[Sequence[Any]], Any]


def compiled(graph: Any, call: Call, arrays: Sequence[Any]) -> Call:
    """What computes the same as ``call``, bit by bit: traced once, with open axes open, as it is in ``predict``.

    Args:
        graph: The functional model, which draws no numbers and keeps no state.
        call: Calls it on a flat list.
        arrays: What it is called with, for the types.
    """
    if keras.backend.backend() != "tensorflow" or _length(graph) < _MANY:
        return call
    import tensorflow as tf

    given = zip(graph.inputs, arrays, strict=True)
    specs = [tf.TensorSpec(spec.shape, tf.as_dtype(array.dtype)) for spec, array in given]
    traced = tf.function(lambda *tensors: call(tensors), autograph=False, input_signature=specs)

    def run(given: Sequence[Any]) -> Any:
        with _unoptimised():
            return traced(*given)

    return run


def careful(call: Call, failures: Any) -> Call:
    """The same, but sizes at which TensorFlow would end the process are refused."""
    if keras.backend.backend() != "tensorflow":
        return call
    from entrepot.exporters.tensorflow.unchecked import has_unchecked, refuse_unchecked
    from entrepot.exporters.tensorflow.upstream import counting_calls

    seen: dict[str, int] = {}

    def run(given: Sequence[Any]) -> Any:
        if has_unchecked(seen):
            refuse_unchecked(lambda *tensors: call(tensors), given, failures)
        counting: Any = contextlib.nullcontext({}) if seen else counting_calls()
        with counting as count:
            result = call(given)
        seen.update(count)
        return result

    return run


@contextlib.contextmanager
def _unoptimised() -> Iterator[None]:
    """TensorFlow rewrites no graph inside, which takes a second, and would round results otherwise than calls do."""
    import tensorflow as tf

    before = tf.config.optimizer.get_experimental_options()
    tf.config.optimizer.set_experimental_options({"disable_meta_optimizer": True})
    try:
        yield
    finally:
        tf.config.optimizer.set_experimental_options(before)


def _length(graph: Any) -> int:
    graphs = filter(None, map(upstream.graph_of, upstream.nested_layers(graph)))
    return sum(len(upstream.ordered_nodes(each)) for each in graphs)
