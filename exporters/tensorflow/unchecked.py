"""Calls at which TensorFlow (2.21) ends the process or returns what lies in memory: they are refused beforehand.

These are Fourier transforms of no length, rows of ragged tensors that do not end where the values do, integers
without elements that oneDNN's kernel brings back to numbers, and maxima of windows that are too wide by one.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from entrepot.exporters.exporter import Refusal
from entrepot.exporters.tensorflow.arrays import tensor_of
from entrepot.exporters.tensorflow.upstream import DENSE_POOL, has_no_room

_TRANSFORMS = frozenset(f"{way}RFFT{axes}" for way in ("", "I") for axes in ("", "2D", "3D"))
_ROWS = "RaggedTensorToTensor"
_NUMBERS = "Dequantize"
_KINDS = _TRANSFORMS | {_ROWS, _NUMBERS, DENSE_POOL}


def has_unchecked(kinds: Collection[str]) -> bool:
    """Whether operators that such calls consist of were run, by their names."""
    return not _KINDS.isdisjoint(kinds)


def refuse_unchecked(function: Callable[..., Any], arrays: Sequence[Any], failures: Any) -> None:
    """Trace a function at the sizes of some arrays, and look at its transforms, rows and integers.

    Args:
        function: It takes as many tensors as there are arrays.
        arrays: What it is about to be called with.
        failures: What a trace may raise; then a call says better why.

    Raises:
        Refusal: TensorFlow would not survive the call.
    """
    specs = [tf.TensorSpec(np.shape(array), tf.as_dtype(array.dtype)) for array in arrays]
    before = tf.config.functions_run_eagerly()
    tf.config.run_functions_eagerly(True)  # those that are called have traces of their own, of any size, else
    try:
        concrete = tf.compat.v1.wrap_function(function, specs)
    except failures as error:
        if has_no_room(error):
            raise Refusal(error) from error
        return
    finally:
        tf.config.run_functions_eagerly(before)
    _refuse_transforms(concrete)
    for operation in concrete.graph.get_operations():
        if operation.type == _NUMBERS and 0 in (operation.inputs[0].shape.dims or ()):
            raise Refusal(ValueError("integers without elements, to be brought back to numbers"))
        if operation.type == _ROWS:
            _refuse_rows(concrete, operation, [tensor_of(array) for array in arrays], failures)


def _refuse_transforms(concrete: Any) -> None:
    for nodes in _bodies(concrete):
        known = {node.name: tf.make_ndarray(node.attr["value"].tensor) for node in nodes if node.op == "Const"}
        lengths = (known.get(node.input[1].partition(":")[0]) for node in nodes if node.op in _TRANSFORMS)
        if any(length is not None and not length.all() for length in lengths):
            raise Refusal(ValueError("a Fourier transform of no length"))


def _refuse_rows(concrete: Any, operation: Any, tensors: Sequence[Any], failures: Any) -> None:
    _, values, _, *rows = operation.inputs
    wanted = concrete.prune(concrete.inputs[: len(tensors)], [values, *rows])
    try:
        given = [each.numpy() for each in wanted(*tensors)]
    except failures:
        return
    if any(_broken(given)):
        raise Refusal(ValueError(f"the rows of a ragged tensor do not end at its {len(given[0])} values"))


def _broken(given: Sequence[np.ndarray]) -> Iterator[bool]:
    """Of splits, from the outermost level to the innermost, whether each does not end where the next one begins."""
    values, *rows = given
    if rows[0].ndim == 0:  # the number of rows, and the row of each value: TensorFlow checks that
        return
    counts = [*(len(each) - 1 for each in rows[1:]), len(values)]
    for splits, count in zip(rows, counts, strict=True):
        yield splits.size == 0 or splits[0] != 0 or splits[-1] != count or bool((np.diff(splits) < 0).any())


def _bodies(concrete: Any) -> list[Any]:
    definition = concrete.graph.as_graph_def()
    return [definition.node, *(function.node_def for function in definition.library.function)]
