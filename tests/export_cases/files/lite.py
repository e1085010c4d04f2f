"""Files of TensorFlow Lite: float, with integer or half-precision weights, and quantised inside and outside."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from tests.export_cases.files.functions import FUNCTIONS, Saved
from tests.export_cases.files.making import file_case
from tests.export_cases.tensorflow.case import FunctionCase

KINDS = ("float", "dynamic", "half", "inside", "integers")


def cases() -> Iterator[FunctionCase]:
    """Every function in every kind."""
    for name, saved in FUNCTIONS.items():
        for kind in KINDS:
            calls = saved.calls
            if kind == "integers":
                calls = tuple({"x": np.clip(np.round(call["x"] * 30), -128, 127).astype(np.int8)} for call in calls)
            step = {"inside": 0.05, "integers": 1.0}.get(kind, 0.0)
            yield file_case(f"lite/{name}_{kind}", functools.partial(_written, saved, kind), _interpreted, calls, step)


def _written(saved: Saved, kind: str, folder: Path) -> str:
    concrete = tf.function(saved.function).get_concrete_function(tf.TensorSpec(saved.shape, tf.float32, name="x"))
    converter = tf.lite.TFLiteConverter.from_concrete_functions([concrete])
    converter.optimizations = [] if kind == "float" else [tf.lite.Optimize.DEFAULT]
    if kind == "half":
        converter.target_spec.supported_types = [tf.float16]
    if kind in ("inside", "integers"):
        rows = [saved.rows(2) for _ in range(8)]
        converter.representative_dataset = lambda: ([row] for row in rows)
    if kind == "integers":
        converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8]
        converter.inference_input_type = converter.inference_output_type = tf.int8
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        (folder / "model.tflite").write_bytes(converter.convert())
    return "model.tflite"


def _interpreted(path: str) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        interpreter = tf.lite.Interpreter(
            path, experimental_op_resolver_type=tf.lite.experimental.OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
        )

    def call(x: Any) -> Any:
        index = interpreter.get_input_details()[0]["index"]
        interpreter.resize_tensor_input(index, x.shape)
        interpreter.allocate_tensors()
        interpreter.set_tensor(index, x.numpy())
        interpreter.invoke()
        return [interpreter.get_tensor(each["index"]) for each in interpreter.get_output_details()]

    return call
