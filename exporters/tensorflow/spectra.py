"""Fourier transforms of no length, at which TensorFlow (2.21) ends the process: what would come to that is refused."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from entrepot.exporters.exporter import Refusal

_KINDS = frozenset(f"{way}RFFT{axes}" for way in ("", "I") for axes in ("", "2D", "3D"))


def has_transforms(kinds: Collection[str]) -> bool:
    """Whether operators of such names were run."""
    return not _KINDS.isdisjoint(kinds)


def refuse_empty_transforms(function: Callable[..., Any], arrays: Sequence[Any], failures: Any) -> None:
    """Trace a function at the sizes of some arrays, and look at the lengths of its transforms.

    Args:
        function: It takes as many tensors as there are arrays.
        arrays: What it is about to be called with.
        failures: What a trace may raise; then a call says better why.

    Raises:
        Refusal: A transform would have no length.
    """
    specs = [tf.TensorSpec(np.shape(array), tf.as_dtype(array.dtype)) for array in arrays]
    before = tf.config.functions_run_eagerly()
    tf.config.run_functions_eagerly(True)  # those that are called have traces of their own, of any size, else
    try:
        concrete = tf.function(function, autograph=False).get_concrete_function(*specs)
    except failures:
        return
    finally:
        tf.config.run_functions_eagerly(before)
    for nodes in _bodies(concrete):
        known = {node.name: tf.make_ndarray(node.attr["value"].tensor) for node in nodes if node.op == "Const"}
        lengths = (known.get(node.input[1].partition(":")[0]) for node in nodes if node.op in _KINDS)
        if any(length is not None and not length.all() for length in lengths):
            raise Refusal(ValueError("a Fourier transform of no length"))


def _bodies(concrete: Any) -> list[Any]:
    definition = concrete.graph.as_graph_def()
    return [definition.node, *(function.node_def for function in definition.library.function)]
