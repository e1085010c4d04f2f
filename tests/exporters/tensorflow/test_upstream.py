"""Canaries: what a release of TensorFlow moved, of the private names that the exporter uses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import tensorflow as tf

from entrepot.exporters.tensorflow import upstream


@pytest.fixture(scope="module")
def function() -> Any:
    weight = tf.Variable(tf.ones([2, 3]))
    return tf.function(lambda x: x @ weight).get_concrete_function(tf.TensorSpec([None, 2]))


def test_operators_have_definitions() -> None:
    definition = upstream.operator_definition("FusedBatchNormV3")
    assert definition is not None
    assert [output.name for output in definition.output_arg][:2] == ["y", "batch_mean"]
    assert upstream.operator_definition("NoSuchOperator") is None


def test_outputs_of_a_list_take_as_many_places_as_it_has(function: Any) -> None:
    with tf.Graph().as_default() as graph:
        tf.raw_ops.TopKV2(input=tf.zeros([4]), k=2, name="best")
        tf.raw_ops.Split(axis=0, value=tf.zeros([4]), num_split=2, name="parts")
    nodes = {node.name: node for node in graph.as_graph_def().node}
    best = upstream.operator_definition("TopKV2")
    assert upstream.output_offsets(best, nodes["best"].attr) == {"values": 0, "indices": 1}
    parts = upstream.operator_definition("Split")
    assert upstream.output_offsets(parts, nodes["parts"].attr) == {"output": 0}


def test_what_a_function_takes_from_outside_is_known(function: Any) -> None:
    ((name, handle),) = upstream.captured(function)
    assert name in {operation.name for operation in function.graph.get_operations()}
    assert upstream.variable_of(handle) == (tf.float32, [2, 3])
    assert upstream.variable_of(tf.constant(1.0)) == (None, None)


def test_the_graphs_of_a_saved_model_have_tags(tmp_path: Path) -> None:
    tf.saved_model.save(tf.Module(), str(tmp_path))
    assert upstream.tag_sets(tmp_path) == [["serve"]]


def test_functions_from_files_are_known(tmp_path: Path) -> None:
    module = tf.Module()
    module.f = tf.function(tf.square, input_signature=[tf.TensorSpec([None])])
    tf.saved_model.save(module, str(tmp_path), signatures=module.f)
    loaded = tf.saved_model.load(str(tmp_path))
    restored = loaded.f, loaded.f.concrete_functions[0], loaded.signatures["serving_default"]
    assert all(map(upstream.is_restored, restored))
    assert not any(map(upstream.is_restored, (module.f, module.f.get_concrete_function(), tf.square)))


def test_eager_operators_are_counted() -> None:
    one = tf.constant(1.0)
    with upstream.counting_calls() as count:
        one + one + one
    assert count == {"AddV2": 2}
    with pytest.raises(RuntimeError, match="does not come to an end"), upstream.counting_calls(1):
        one + one + one


def test_maxima_at_each_place_of_an_image_are_told_from_others() -> None:
    image = tf.ones([1, 5, 5, 2])
    with upstream.counting_calls() as count:
        (
            tf.nn.max_pool2d(image, 3, 1, "VALID"),
            tf.nn.max_pool2d(image, 3, 1, "SAME"),
            tf.nn.max_pool2d(image, 3, 2, "VALID"),
        )
    assert count == {upstream.DENSE_POOL: 1, "MaxPool": 2}
    with pytest.raises(ValueError, match=r".") as caught:
        tf.compat.v1.wrap_function(lambda x: tf.nn.max_pool2d(x, 3, 1, "VALID"), [tf.TensorSpec([1, 5, 2, 2])])
    assert upstream.has_no_room(caught.value)


def test_the_schema_of_files_is_there() -> None:
    assert upstream.lite_names("BuiltinOperator")[0] == "ADD"
    assert upstream.lite_schema().Model.GetRootAs
