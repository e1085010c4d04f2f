"""Branches, loops and arrays of TensorFlow 1, as frozen graphs have them: Switch and Merge, Enter and Exit."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

import entrepot as ep

X = np.linspace(-1, 2, 15, dtype=np.float32).reshape(3, 5)


def _branch(x):
    return tf.cond(tf.reduce_sum(x) > 0, lambda: x * 2, lambda: x - 1)


def _branches_in_a_row(x):
    one, two = tf.cond(tf.reduce_sum(x) > 0, lambda: (x * 2, x + 1), lambda: (x - 1, x))
    return one + tf.cond(tf.reduce_max(two) > 1, lambda: two * 3, lambda: two)


def _constants(x):
    return x + tf.cond(tf.shape(x)[0] > 2, lambda: tf.constant([1.0, 2.0]), lambda: tf.constant([3.0]))[:1]


def _branch_in_branch(x):
    def inner():
        return tf.cond(tf.reduce_max(x) > 1, lambda: x * 3, lambda: x + 4)

    return tf.cond(tf.reduce_sum(x) > 0, inner, lambda: x - 1)


def _loop(x):
    return tf.while_loop(lambda at, _: at < 3, lambda at, y: (at + 1, y * 1.5 + x), (0, x))[1]


def _loop_in_loop(x):
    def turn(at, y):
        return at + 1, tf.while_loop(lambda inner, _: inner < at, lambda inner, z: (inner + 1, z + x), (0, y))[1]

    return tf.while_loop(lambda at, _: at < 3, turn, (0, x))[1]


def _branch_in_loop(x):
    def turn(at, y):
        return at + 1, tf.cond(tf.reduce_sum(y) > 0, lambda: y * 2, lambda: y + 1)

    return tf.while_loop(lambda at, _: at < 3, turn, (0, x))[1]


def _loop_in_branch(x):
    return tf.cond(tf.reduce_sum(x) > 0, lambda: _loop(x), lambda: x - 1)


def _recurrence(x):
    """Rows are read from one array, states are written to another."""
    rows = tf.TensorArray(tf.float32, size=tf.shape(x)[0]).unstack(x)
    states = tf.TensorArray(tf.float32, size=tf.shape(x)[0])

    def turn(at, state, states):
        return at + 1, state * 0.5 + rows.read(at), states.write(at, state)

    _, last, states = tf.while_loop(lambda at, *_: at < tf.shape(x)[0], turn, (0, tf.zeros([5]), states))
    return tf.concat([states.stack(), last[None]], 0)


@pytest.fixture
def old_flow():
    tf.compat.v1.disable_control_flow_v2()
    yield
    tf.compat.v1.enable_control_flow_v2()


@pytest.mark.usefixtures("old_flow")
@pytest.mark.parametrize(
    ("function", "operators"),
    [
        (_branch, {"If"}),
        (_branches_in_a_row, {"If"}),
        (_constants, {"If"}),
        (_branch_in_branch, {"If"}),
        (_loop, {"Loop"}),
        (_loop_in_loop, {"Loop"}),
        (_branch_in_loop, {"If", "Loop"}),
        (_loop_in_branch, {"If", "Loop"}),
        (_recurrence, {"Loop"}),
    ],
)
def test_a_frozen_graph_has_branches_and_loops(tmp_path, function, operators):
    with tf.Graph().as_default() as graph:
        x = tf.compat.v1.placeholder(tf.float32, [None, 5], name="x")
        tf.identity(function(x), name="y")
        assert {"Switch", "Merge"} <= {node.op for node in graph.as_graph_def().node}
        with tf.compat.v1.Session(graph=graph) as session:
            calls = [X, -X, np.concatenate([X, X])]
            expected = [session.run("y:0", {"x:0": call}) for call in calls]
    path = tmp_path / "old.pb"
    path.write_bytes(graph.as_graph_def().SerializeToString())
    model = ep.export(path, X, progress=False)
    assert operators <= {node.op_type for node in model.ir.graph.all_nodes()}
    session = ep.Session(model, providers=["onnxruntime"])
    for call, wanted in zip(calls, expected, strict=True):
        np.testing.assert_allclose(session.run({"x": call})["y"], wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.usefixtures("old_flow")
def test_a_side_that_nothing_merges_is_refused(tmp_path):
    with tf.Graph().as_default() as graph:
        x = tf.compat.v1.placeholder(tf.float32, [None, 5], name="x")
        tf.identity(tf.raw_ops.Switch(data=x * 2, pred=tf.reduce_sum(x) > 0)[1], name="y")
    path = tmp_path / "side.pb"
    path.write_bytes(graph.as_graph_def().SerializeToString())
    with pytest.raises(ep.UnsupportedOpError, match="which of two branches"):
        ep.export(path, X, progress=False)
