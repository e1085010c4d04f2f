"""Frozen graphs, and checkpoints of TensorFlow 1 with their graphs."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import tensorflow as tf

from tests.export_cases.files.functions import FUNCTIONS, Saved
from tests.export_cases.files.making import file_case
from tests.export_cases.tensorflow.case import FunctionCase


def cases() -> Iterator[FunctionCase]:
    """Every function both ways."""
    for name, saved in FUNCTIONS.items():
        call = functools.partial(_called, saved)
        yield file_case(f"graphs/{name}_frozen", functools.partial(_frozen, saved), call, saved.calls)
        yield file_case(f"graphs/{name}_checkpoint", functools.partial(_checkpoint, saved), call, saved.calls)


def _called(saved: Saved, path: str) -> Any:
    return lambda x: saved.function(x) * 0.5


def _graph(saved: Saved) -> None:
    v1 = tf.compat.v1
    x = v1.placeholder(tf.float32, saved.shape, name="x")
    scale = v1.get_variable("scale", [], initializer=tf.constant_initializer(0.5), use_resource=False)
    tf.identity(saved.function(x) * scale, name="result")


def _frozen(saved: Saved, folder: Path) -> str:
    v1 = tf.compat.v1
    with tf.Graph().as_default() as graph, v1.Session() as session:
        _graph(saved)
        session.run(v1.global_variables_initializer())
        frozen = v1.graph_util.convert_variables_to_constants(session, graph.as_graph_def(), ["result"])
    (folder / "frozen.pb").write_bytes(frozen.SerializeToString())
    return "frozen.pb"


def _checkpoint(saved: Saved, folder: Path) -> str:
    v1 = tf.compat.v1
    with tf.Graph().as_default(), v1.Session() as session:
        _graph(saved)
        session.run(v1.global_variables_initializer())
        v1.train.Saver().save(session, str(folder / "model.ckpt"), global_step=7)
    return "model.ckpt-7.meta"
