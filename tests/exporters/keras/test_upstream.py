"""Canaries: what a release of Keras moved, of the private names that the exporter uses."""

from __future__ import annotations

import keras
import numpy as np
import pytest

from entrepot.exporters.keras import upstream


@pytest.fixture(scope="module")
def model() -> keras.Model:
    x = keras.Input((4,), name="x")
    hidden = keras.layers.Dense(3, name="hidden")(x)
    return keras.Model(x, keras.layers.Activation("gelu", name="act")(hidden))


def test_the_calls_of_a_functional_model_are_known(model: keras.Model) -> None:
    assert upstream.graph_of(model) is model
    assert upstream.graph_of(keras.layers.Dense(1)) is None
    assert [node.operation.name for node in upstream.ordered_nodes(model)] == ["hidden", "act"]
    node = upstream.ordered_nodes(model)[0]
    assert upstream.node_of(upstream.outputs_of(node)[0]) is node
    assert [tensor.shape for tensor in upstream.parents_of(node)] == [(None, 4)]
    assert upstream.arguments_of(node)[1] == {}
    assert upstream.input_names(model) == ["x"]
    assert upstream.input_structure(model) is not None
    assert upstream.output_structure(model) is not None


def test_a_sequential_model_consists_of_a_functional_one() -> None:
    network = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)])
    assert isinstance(upstream.graph_of(network), upstream.Functional)


def test_what_a_layer_does_with_types_and_arguments_is_known(model: keras.Model) -> None:
    layer = model.get_layer("hidden")
    assert upstream.is_cast(layer.kernel)
    assert upstream.converts_inputs(layer)
    assert "inputs" in upstream.signature_of(layer).parameters
    assert layer in upstream.nested_layers(model)


def test_symbolic_calls_leave_no_traces(model: keras.Model) -> None:
    layer = model.get_layer("hidden")
    before = len(layer._inbound_nodes)
    with upstream.unrecorded(layer):
        layer(keras.Input((4,)))
        assert len(layer._inbound_nodes) == before + 1
    assert len(layer._inbound_nodes) == before


def test_a_copy_of_a_layer_runs_on_symbolic_variables(model: keras.Model) -> None:
    layer = model.get_layer("hidden")
    symbols = {id(variable): keras.KerasTensor(variable.shape) for variable in layer.variables}
    with upstream.unrecorded(layer):
        result = upstream.stand_in(layer, lambda variable: symbols[id(variable)]).call(keras.Input((4,)))
    assert result.shape == (None, 3)


def test_what_went_wrong_is_told_without_what_was_given() -> None:
    with pytest.raises(ValueError, match="Exception encountered") as caught:
        keras.layers.Reshape((5,))(np.zeros((2, 3), np.float32))
    assert "must be unchanged" in upstream.reason_of(caught.value)
    assert "Arguments received" not in upstream.reason_of(caught.value)
    assert upstream.reason_of(KeyError()) == "KeyError"


def test_attention_is_made_of_scores_and_weights() -> None:
    layer, x = keras.layers.Attention(), keras.ops.ones((1, 2, 3))
    layer([x, x])
    scores = upstream.attention_scores(layer, query=x, key=x)
    assert scores.shape == (1, 2, 2)
    sums, weights = upstream.attention_weights(layer, scores, x, None)
    assert np.allclose(sums, 1)
    assert np.allclose(weights, 0.5)


def test_masks_are_kept_with_tensors() -> None:
    tensor, mask = keras.Input((3,)), keras.Input((3,), dtype="bool")
    upstream.set_keras_mask(tensor, mask)
    assert upstream.get_keras_mask(tensor) is mask
