"""Branches and loops, and the lists that map, scan and TensorArray are made of, judged by TensorFlow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import entrepot as ep


def _x(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


def mapped(x: tf.Tensor) -> tf.Tensor:
    return tf.map_fn(lambda row: tf.map_fn(lambda each: each * 2.0, row), x)


def scanned_backwards(x: tf.Tensor) -> tf.Tensor:
    return tf.scan(lambda total, row: total * 0.5 + row, x, reverse=True)


def written_one_by_one(x: tf.Tensor) -> tf.Tensor:
    rows = tf.TensorArray(tf.float32, size=0, dynamic_size=True)
    for i in tf.range(tf.shape(x)[0]):
        rows = rows.write(i, x[i] * 2.0)
    return rows.stack()


def written_backwards(x: tf.Tensor) -> tf.Tensor:
    rows = tf.TensorArray(tf.float32, size=tf.shape(x)[0])
    for i in tf.range(tf.shape(x)[0] - 1, -1, -1):
        rows = rows.write(i, x[i] + tf.cast(i, tf.float32))
    return rows.stack()


def recurrence(x: tf.Tensor) -> tf.Tensor:
    state, states = tf.zeros([tf.shape(x)[0], 2]), tf.TensorArray(tf.float32, size=3)
    for t in tf.range(3):
        state = tf.tanh(state + x[:, t : t + 1])
        states = states.write(t, state)
    return tf.transpose(states.stack(), [1, 0, 2])


def until_large(x: tf.Tensor) -> Any:
    return tf.while_loop(lambda i, v: tf.reduce_sum(tf.abs(v)) < 100.0, lambda i, v: (i + 1, v * 2.0 + 1.0), (0, x))


def leaves_early(x: tf.Tensor) -> tf.Tensor:
    total = tf.zeros_like(x[0])
    for row in x:
        if tf.reduce_sum(row) > 3.0:
            break
        total += row
    return total


def every_second(x: tf.Tensor) -> Any:
    one, two, i = x, x * 0.5, tf.constant(1)
    while i < 10:
        one, two = two, one + two
        i += 2
    return one, i


def grows(x: tf.Tensor) -> tf.Tensor:
    return tf.while_loop(
        lambda i, y: i < 3,
        lambda i, y: (i + 1, tf.concat([y, x[:1] * 2.0], 0)),
        (0, x),
        shape_invariants=(tf.TensorShape([]), tf.TensorShape([None, None])),
    )[1]


def branches(x: tf.Tensor) -> tf.Tensor:
    return tf.cond(tf.reduce_sum(x) > 0, lambda: x + 1.0, lambda: tf.cond(x[0, 0] > 0, lambda: x * 2.0, lambda: -x))


FUNCTIONS: list[Callable[..., Any]] = [
    mapped, scanned_backwards, written_one_by_one, written_backwards, recurrence, until_large, leaves_early,
    every_second, grows, branches,
]  # fmt: skip


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_it_computes_what_tensorflow_does_at_any_number_of_rows(function: Callable[..., Any]) -> None:
    shape = (4, 3, 2) if function is mapped else (4, 3)
    model = ep.export(tf.function(function), _x(*shape))
    assert model.report
    assert isinstance(model.inputs[0].shape[0], str)


def test_a_loop_that_sets_one_item_in_each_turn_has_a_scan_output_and_carries_nothing() -> None:
    model = ep.export(lambda x: tf.map_fn(lambda row: row * 2.0, x), _x(4, 3))
    (loop,) = [node for node in model.ir.graph if node.op_type == "Loop"]
    assert len(loop.inputs) == 1
    assert "ScatterND" not in {node.op_type for node in loop.attributes["body"].as_graph()}


@pytest.mark.parametrize("index", [-1, 0, 1, 2, 7])
def test_an_index_that_is_out_of_range_takes_the_last_branch(index: int) -> None:
    model = ep.export(
        lambda x, i: tf.switch_case(i, [lambda: x + 1.0, lambda: x * 2.0, lambda: -x]), (_x(2), np.int32(index))
    )
    assert model.report


def test_what_the_shape_decides_is_decided_when_it_is_exported() -> None:
    def network(x: tf.Tensor) -> tf.Tensor:
        return tf.cond(tf.shape(x)[1] > 2, lambda: x + 1.0, lambda: x * 2.0)

    model = ep.export(network, _x(2, 3), dynamic={"x": [0]})
    assert model.report
    assert [node.op_type for node in model.ir.graph] == ["Add"]


def test_functions_that_are_called_by_their_names_return_results_in_their_order() -> None:
    """Nodes whose operator is the name of a function; the loops in the loss of CTC have such bodies."""
    random = np.random.default_rng(0)
    labels, logits = random.integers(1, 5, (2, 3)).astype(np.int32), random.standard_normal((7, 2, 6)).astype("f4")
    sizes = np.int32([3, 2]), np.int32([7, 6])

    def loss(labels: tf.Tensor, logits: tf.Tensor, count: tf.Tensor, length: tf.Tensor) -> tf.Tensor:
        return tf.nn.ctc_loss(labels, logits, count, length, blank_index=0)

    model = ep.export(tf.function(loss), (labels, logits, *sizes), progress=False)
    assert model.report.ok
    assert [type(size) for size in model.inputs[1].shape] == [str, str, str]


def halved(x: tf.Tensor, most: int = 40) -> tf.Tensor:
    """A branch inside a branch for each row, as far as sizes are not known."""
    if most == 0 or x.shape[0] == 1:
        return x
    return tf.cond(tf.shape(x)[0] < 2, lambda: x, lambda: tf.concat([x[:1], halved(x[1:] * 0.5, most - 1)], 0))


def test_recursion_deeper_than_a_file_holds_keeps_its_axis_static() -> None:
    exported = ep.export(tf.function(halved), _x(3, 2), progress=False)
    assert exported.inputs[0].shape == (3, "x_dim1")
    assert "40 deep inside one another" in exported.metadata["entrepot.fixed_axes"]
    assert ep.load(exported.to_proto().SerializeToString()).inputs[0].shape == (3, "x_dim1")
