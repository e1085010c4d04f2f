"""SavedModels: with one signature, several, none, tables, nested functions, of TensorFlow 1."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from tests.export_cases.files.functions import FUNCTIONS, Saved
from tests.export_cases.files.making import file_case
from tests.export_cases.tensorflow.case import FunctionCase


def cases() -> Iterator[FunctionCase]:
    """Every function as a signature, as a method and by session; then modules with more to them."""
    for name, saved in FUNCTIONS.items():
        for kind, write in (("signature", _signature), ("method", _method), ("session", _session)):
            yield file_case(f"saved/{name}_{kind}", functools.partial(write, saved), _served, saved.calls)
    rows = {"x": np.ones((2, 3), np.float32)}, {"x": np.full((4, 3), -0.5, np.float32)}
    for signature in ("serving_default", "second", "third"):
        write = functools.partial(_several, signature)
        yield file_case(f"saved/several_{signature}", write, _served, rows)
    words = {"x": np.array(["a", "zz"], object)}, {"x": np.array(["b", "a", "b"], object)}
    yield file_case("saved/table", _table, _served, words)


def _served(path: str) -> Any:
    """The signature itself, as TensorFlow runs it."""
    folder, _, name = path.partition("#")
    loaded = tf.saved_model.load(folder)
    chosen = loaded.signatures[name or "serving_default"]

    return lambda **arrays: loaded and chosen(**arrays)  # which holds the variables


def _signature(saved: Saved, folder: Path) -> str:
    module = tf.Module()
    module.network = tf.function(saved.function, input_signature=[tf.TensorSpec(saved.shape, name="x")])
    tf.saved_model.save(module, str(folder / "model"), signatures=module.network)
    return "model"


def _method(saved: Saved, folder: Path) -> str:
    class Model(tf.Module):
        def __init__(self) -> None:
            self.scale = tf.Variable(1.5, name="scale")

        @tf.function(input_signature=[tf.TensorSpec(saved.shape, name="x")])
        def __call__(self, x):
            return {"first": self.inner(x), "second": tf.reduce_sum(x)}

        @tf.function(jit_compile=True)
        def inner(self, x):
            return saved.function(x) * self.scale

    model = Model()
    tf.saved_model.save(model, str(folder / "model"), signatures={"serving_default": model.__call__})
    return "model"


def _session(saved: Saved, folder: Path) -> str:
    v1 = tf.compat.v1
    with tf.Graph().as_default(), v1.Session() as session:
        x = v1.placeholder(tf.float32, saved.shape, name="input")
        scale = v1.get_variable("scale", [], initializer=tf.constant_initializer(0.5), use_resource=False)
        y = tf.identity(saved.function(x) * scale, name="result")
        session.run(v1.global_variables_initializer())
        builder = v1.saved_model.Builder(str(folder / "model"))
        signature = v1.saved_model.predict_signature_def({"x": x}, {"y": y})
        builder.add_meta_graph_and_variables(session, ["serve"], {"serving_default": signature})
        builder.save()
    return "model"


def _several(signature: str, folder: Path) -> str:
    class Model(tf.Module):
        def __init__(self) -> None:
            self.weight = tf.Variable(np.eye(3, 4, dtype=np.float32), name="weight")
            self.table = tf.Variable(np.arange(12, dtype=np.float32).reshape(4, 3), name="table")

        @tf.function(input_signature=[tf.TensorSpec([None, 3], name="x")])
        def first(self, x):
            return {"y": tf.nn.relu(x @ self.weight)}

        @tf.function(input_signature=[tf.TensorSpec([None, 3], name="x")])
        def second(self, x):
            return {"b": x @ tf.transpose(self.table), "a": self.first(x)["y"]}

        @tf.function(input_signature=[tf.TensorSpec([None, 3], name="x")])
        def third(self, x):
            return {"mapped": tf.map_fn(tf.cumsum, x)}

    model = Model()
    signatures = {"serving_default": model.first, "second": model.second, "third": model.third}
    tf.saved_model.save(model, str(folder / "model"), signatures=signatures)
    return "model" if signature == "serving_default" else f"model#{signature}"


def _table(folder: Path) -> str:
    module = tf.Module()
    entries = tf.lookup.KeyValueTensorInitializer(["a", "b"], tf.constant([3, 4], tf.int64))
    module.table = tf.lookup.StaticHashTable(entries, -1)
    module.find = tf.function(module.table.lookup, input_signature=[tf.TensorSpec([None], tf.string, name="x")])
    wrapped = tf.function(
        lambda x: {"found": module.table.lookup(x)}, input_signature=[tf.TensorSpec([None], tf.string, "x")]
    )
    tf.saved_model.save(module, str(folder / "model"), signatures=wrapped)
    return "model"
