"""A program of TensorFlow Lite, run by TensorFlow's operators: eagerly, or while it is traced.

Integers that stand for real numbers are kept as they are where an operator only moves them. Elsewhere they are
dequantised, computed with and quantised again, which is what a runtime's own kernels for integers approximate.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from entrepot.exporters.tensorflow.lite import recurrent  # noqa: F401 - enters its rules
from entrepot.exporters.tensorflow.lite.model import Graph, Operation, Quantised, Tensor
from entrepot.exporters.tensorflow.lite.operators import RULES, UNCHANGED
from entrepot.ir.errors import UnsupportedOpError

_DRAWS = 6


class Program:
    """The functions of a file.

    Args:
        graphs: The functions, the main one first.
    """

    def __init__(self, graphs: Sequence[Graph]) -> None:
        self._graphs = graphs
        self._round: Callable[[Any], Any] = tf.round

    def check(self) -> None:
        """Refuse operators that have no counterpart.

        Raises:
            UnsupportedOpError: There is one; the message names it.
        """
        known = {*RULES, *_CONTROL}
        for graph in self._graphs:
            for operation in graph.operations:
                if operation.op not in known:
                    made = graph.tensors[operation.outputs[0]].name if operation.outputs else ""
                    raise UnsupportedOpError(f"TensorFlow Lite's {operation.op} has no counterpart", value=made or None)

    def unsteadiness(self, inputs: Sequence[Any]) -> list[float]:
        """How far each result may move because kernels for integers round to a step next to the nearest one.

        Found by moving every number by up to one step, at random.
        """
        before = self.run(inputs)
        most = [0.0] * len(before)
        for draw in range(_DRAWS):
            self._round = functools.partial(_beside, np.random.default_rng(draw))
            try:
                after = self.run(inputs)
            finally:
                self._round = tf.round
            most = [max(far, _change(one, two)) for far, one, two in zip(most, before, after, strict=True)]
        return most

    def run(self, inputs: Sequence[Any], which: int = 0) -> list[Any]:
        """The results of a function for these inputs."""
        graph = self._graphs[which]
        values: dict[int, Any] = dict(zip(graph.inputs, inputs, strict=True))
        for operation in graph.operations:
            with tf.name_scope(_scope(graph, operation)):
                results = self._applied(graph, operation, values)
            values |= dict(zip(operation.outputs, results, strict=False))
        return [_value(graph, values, at) for at in graph.outputs]

    def _applied(self, graph: Graph, operation: Operation, values: dict[int, Any]) -> Sequence[Any]:
        operands = [None if at < 0 else _value(graph, values, at) for at in operation.inputs]
        if operation.op in _CONTROL:
            return self._controlled(operation, operands)
        given = [None if at < 0 else graph.tensors[at] for at in operation.inputs]
        made = [graph.tensors[at] for at in operation.outputs]
        if not _moves(operation, given, made):
            operands = [
                value if tensor is None else dequantised(value, tensor)
                for value, tensor in zip(operands, given, strict=True)
            ]
            operands = _rounded_as_at_run_time(operation, given, operands)
        found = RULES[operation.op](operation, *operands)
        results = found if isinstance(found, tuple | list) else [found]
        return [self._as_stated(result, tensor) for result, tensor in zip(results, made, strict=False)]

    def _as_stated(self, value: Any, tensor: Tensor) -> Any:
        """A result in the type and meaning that the file states."""
        meaning, dtype = tensor.quantised, tf.as_dtype(tensor.dtype)
        if meaning is not None and tensor.dtype.kind in "iu" and value.dtype.is_floating:
            scales, zeros = _along(meaning, len(tensor.shape))
            bounds = np.iinfo(tensor.dtype)
            steps = self._round(value / tf.constant(scales)) + tf.constant(zeros)
            value = tf.clip_by_value(steps, float(bounds.min), float(bounds.max))
        return tf.cast(value, dtype)

    def _controlled(self, operation: Operation, operands: Sequence[Any]) -> Sequence[Any]:
        options = operation.options
        if operation.op == "IF":
            condition, *rest = operands
            return _several(tf.cond(
                tf.reshape(condition, []),
                lambda: self.run(rest, options.thenSubgraphIndex),
                lambda: self.run(rest, options.elseSubgraphIndex),
            ))  # fmt: skip
        return _several(tf.while_loop(
            lambda *state: tf.reshape(self.run(state, options.condSubgraphIndex)[0], []),
            lambda *state: self.run(state, options.bodySubgraphIndex),
            operands,
            shape_invariants=[tf.TensorShape([None] * len(each.shape)) for each in operands],
        ))  # fmt: skip


_CONTROL = frozenset({"IF", "WHILE"})


def _several(found: Any) -> Sequence[Any]:
    return found if isinstance(found, tuple | list) else [found]


def _scope(graph: Graph, operation: Operation) -> str:
    """A scope's name for an operation: that of its result, without what no scope may contain."""
    name = graph.tensors[operation.outputs[0]].name.partition(";")[0] if operation.outputs else operation.op
    words = "".join(letter if letter.isalnum() or letter in "_./-" else "_" for letter in name).strip("_./-")
    return words if words[:1].isalnum() else operation.op


def _value(graph: Graph, values: dict[int, Any], at: int) -> Any:
    if at not in values:
        tensor = graph.tensors[at]
        empty = [size or 0 for size in tensor.shape]  # what has no bytes in the file: a shape of a scalar, for example
        values[at] = tf.constant(np.zeros(empty, tensor.dtype) if tensor.value is None else tensor.value)
    return values[at]


def _moves(operation: Operation, given: Sequence[Tensor | None], made: Sequence[Tensor]) -> bool:
    """Whether an operation moves integers that mean the same before and afterwards."""
    meanings = [each.quantised for each in (*given, *made) if each is not None and each.quantised is not None]
    unsigned = all(each.dtype.kind in "iu" for each in made)
    if operation.op == "ONE_HOT":  # whose kernel copies the integers that it is given, whatever they mean
        return True
    return (
        operation.op in UNCHANGED and bool(meanings) and unsigned and all(meanings[0].same(each) for each in meanings)
    )


def dequantised(value: Any, tensor: Tensor) -> Any:
    """The real numbers that the integers of a tensor stand for."""
    meaning = tensor.quantised
    if meaning is None or tensor.dtype.kind not in "iu":
        return value
    scales, zeros = _along(meaning, len(tensor.shape))
    return (tf.cast(value, tf.float32) - tf.constant(zeros)) * tf.constant(scales)


def _along(meaning: Quantised, rank: int) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Scales and zeros in a shape that goes with a tensor's."""
    shape = [1] * rank
    if len(meaning.scales) > 1:
        shape[meaning.axis] = len(meaning.scales)
    else:
        shape = []
    return meaning.scales.reshape(shape), meaning.zeros.astype(np.float32).reshape(shape)


def _rounded_as_at_run_time(operation: Operation, given: Sequence[Tensor | None], operands: list[Any]) -> list[Any]:
    """Operands, of which the first is rounded as kernels with integer weights and real inputs do it."""
    if operation.op not in ("FULLY_CONNECTED", "CONV_2D", "DEPTHWISE_CONV_2D") or len(given) < 2:
        return operands
    data, weights = given[:2]
    if data is None or weights is None or data.dtype.kind != "f" or weights.dtype != np.int8:
        return operands
    x = operands[0]
    axes = list(range(1, len(x.shape))) if operation.op != "FULLY_CONNECTED" else [-1]
    if getattr(operation.options, "asymmetricQuantizeInputs", operation.op != "FULLY_CONNECTED"):
        return [_in_steps(x, axes), *operands[1:]]
    largest = tf.reduce_max(tf.abs(x), axes, keepdims=True)
    scale = tf.where(largest > 0, largest, 1.0) / 127.0
    return [tf.clip_by_value(_half_away(x / scale), -127.0, 127.0) * scale, *operands[1:]]


def _in_steps(x: Any, axes: Sequence[int]) -> Any:
    """Rounded to 256 steps from the smallest to the largest."""
    low = tf.minimum(tf.reduce_min(x, axes, keepdims=True), 0.0)
    high = tf.maximum(tf.reduce_max(x, axes, keepdims=True), 0.0)
    scale = tf.where(high > low, high - low, 255.0) / 255.0
    zero = tf.clip_by_value(_half_away(-128.0 - low / scale), -128.0, 127.0)
    return (tf.clip_by_value(_half_away(zero + x / scale), -128.0, 127.0) - zero) * scale


def _half_away(x: Any) -> Any:
    return tf.sign(x) * tf.floor(tf.abs(x) + 0.5)


def _beside(generator: np.random.Generator, steps: Any) -> Any:
    """A number rounded to one of three steps."""
    return tf.round(steps) + generator.integers(-1, 2, steps.shape).astype(np.float32)


def _change(before: Any, after: Any) -> float:
    if before.dtype == tf.bool or 0 in before.shape:
        return 0.0
    return float(np.nanmax(np.abs(after.numpy().astype(np.float64) - before.numpy().astype(np.float64))))
