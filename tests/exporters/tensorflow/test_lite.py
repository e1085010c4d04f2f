"""Files of TensorFlow Lite, float and quantised, judged by its interpreter."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import entrepot as ep

pytestmark = pytest.mark.filterwarnings("ignore:.*tf.lite.*:UserWarning", "ignore:Statistics for quantized:UserWarning")

DRAWN = np.random.default_rng(0)
KERNEL = tf.constant(DRAWN.standard_normal((3, 3, 3, 8)).astype(np.float32) * 0.3)
BIAS = tf.constant(DRAWN.standard_normal(8).astype(np.float32))
MATRIX = tf.constant(DRAWN.standard_normal((8, 5)).astype(np.float32))


def network(x: tf.Tensor) -> tf.Tensor:
    x = tf.nn.max_pool2d(tf.nn.relu(tf.nn.conv2d(x, KERNEL, 2, "SAME") + BIAS), 2, 2, "VALID")
    return tf.nn.softmax(tf.reduce_mean(x, [1, 2]) @ MATRIX)


def halves(x: tf.Tensor) -> tf.Tensor:
    one, two = tf.split(x, 2, 1)
    return tf.concat([one * two, tf.transpose(tf.sigmoid(one)) @ tf.abs(two)], 0)


def thrice(x: tf.Tensor) -> tf.Tensor:
    return tf.while_loop(lambda i, v: i < 3, lambda i, v: (i + 1, v * 2.0), (0, x))[1]


SHAPES: dict[Callable[..., Any], list[int | None]] = {network: [None, 16, 16, 3], halves: [4, 8], thrice: [2, 3]}


@functools.cache
def converted(function: Callable[..., Any], kind: str) -> bytes:
    spec = tf.TensorSpec(SHAPES[function], tf.float32, name="x")
    concrete = tf.function(function).get_concrete_function(spec)
    converter = tf.lite.TFLiteConverter.from_concrete_functions([concrete])
    converter.optimizations = [] if kind == "float" else [tf.lite.Optimize.DEFAULT]
    if kind in ("integers inside", "integers"):
        shape = [size or 2 for size in SHAPES[function]]
        rows = [DRAWN.standard_normal(shape).astype(np.float32) for _ in range(8)]
        converter.representative_dataset = lambda: ([row] for row in rows)
    if kind == "integers":
        converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8]
        converter.inference_input_type = converter.inference_output_type = tf.int8
    return bytes(converter.convert())


@pytest.mark.parametrize("kind", ["float", "integer weights", "integers inside", "integers"])
@pytest.mark.parametrize("function", SHAPES, ids=lambda function: function.__name__)
def test_the_interpreter_agrees(function: Callable[..., Any], kind: str, tmp_path: Path) -> None:
    path = tmp_path / "model.tflite"
    path.write_bytes(converted(function, kind))
    model = ep.export(path)
    assert model.report
    varies = [isinstance(size, str) for size in model.inputs[0].shape]
    assert varies == [size is None for size in SHAPES[function]]
    assert model.inputs[0].dtype == ("int8" if kind == "integers" else "float32")


def test_a_file_that_is_cut_off_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "model.tflite"
    path.write_bytes(converted(halves, "float")[:-200])
    with pytest.raises(ep.ModelFormatError, match="TensorFlow Lite cannot read it"):
        ep.export(path)


def test_an_operator_without_a_counterpart_is_named(tmp_path: Path) -> None:
    converter = tf.lite.TFLiteConverter.from_concrete_functions(
        [tf.function(lambda x: tf.bitcast(x, tf.int32)).get_concrete_function(tf.TensorSpec([4]))]
    )
    path = tmp_path / "model.tflite"
    path.write_bytes(converter.convert())
    with pytest.raises(ep.UnsupportedOpError, match="TensorFlow Lite's BITCAST has no counterpart"):
        ep.export(path)


BOXES = np.array([[0, 0, 1, 1], [0, 0.1, 1, 1.1], [0, 2, 1, 3], [0.5, 2, 1.5, 3]], np.float32)
VOLUME = tf.constant(DRAWN.standard_normal((2, 2, 2, 3, 2)).astype(np.float32))
OPERATORS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "NON_MAX_SUPPRESSION_V4": (
        lambda b, s: tf.raw_ops.NonMaxSuppressionV4(
            boxes=b, scores=s, max_output_size=3, iou_threshold=0.5, score_threshold=0.1, pad_to_max_output_size=True
        ),
        (BOXES, np.array([0.9, 0.8, 0.7, 0.05], np.float32)),
    ),
    "NON_MAX_SUPPRESSION_V5": (
        lambda b, s: tf.raw_ops.NonMaxSuppressionV5(
            boxes=b, scores=s, max_output_size=3, iou_threshold=0.5, score_threshold=0.1, soft_nms_sigma=0.0,
            pad_to_max_output_size=True,
        ),
        (BOXES, np.array([0.3, 0.8, 0.7, 0.6], np.float32)),
    ),
    "UNIQUE": (tf.unique, (np.array([3, 1, 3, 2, 1], np.int32),)),
    "RFFT2D": (lambda x: tf.abs(tf.signal.rfft2d(x, [4, 8])), (DRAWN.standard_normal((2, 4, 8)).astype(np.float32),)),
    "CONV_3D_TRANSPOSE": (
        lambda x: tf.nn.conv3d_transpose(x, VOLUME, [1, 4, 4, 4, 3], 2),
        (DRAWN.standard_normal((1, 2, 2, 2, 2)).astype(np.float32),),
    ),
    "RESHAPE": (lambda x: tf.reshape(tf.reduce_max(x, keepdims=True), []) + 1.0, (np.ones((2, 2), np.float32),)),
}  # fmt: skip


@pytest.mark.parametrize("name", OPERATORS)
def test_an_operator_computes_what_the_interpreter_computes(name: str, tmp_path: Path) -> None:
    function, given = OPERATORS[name]
    specs = [tf.TensorSpec(each.shape, each.dtype) for each in given]
    content = tf.lite.TFLiteConverter.from_concrete_functions(
        [tf.function(function).get_concrete_function(*specs)]
    ).convert()
    (tmp_path / "model.tflite").write_bytes(content)
    interpreter = tf.lite.Interpreter(model_content=content)
    interpreter.allocate_tensors()
    assert name in {each["op_name"] for each in interpreter._get_ops_details()}
    for detail, array in zip(interpreter.get_input_details(), given, strict=True):
        interpreter.set_tensor(detail["index"], array)
    interpreter.invoke()
    expected = [interpreter.get_tensor(each["index"]) for each in interpreter.get_output_details()]
    session = ep.Session(ep.export(str(tmp_path / "model.tflite"), given, progress=False))
    found = session.run(dict(zip([spec.name for spec in session.inputs], given, strict=True))).values()
    for one, two in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-5, atol=1e-5)


def test_a_tensor_that_is_returned_twice_is_returned_twice(tmp_path: Path) -> None:
    x = np.ones((2, 3), np.float32)
    concrete = tf.function(lambda x: (x * 2.0, x * 2.0, x + 1.0)).get_concrete_function(tf.TensorSpec(x.shape))
    path = tmp_path / "model.tflite"
    path.write_bytes(tf.lite.TFLiteConverter.from_concrete_functions([concrete]).convert())
    session = ep.Session(ep.export(str(path), progress=False))
    found = sorted(float(each[0, 0]) for each in session.run({session.inputs[0].name: x}).values())
    assert found == [2.0, 2.0, 2.0]
