from __future__ import annotations

import numpy as np
import pytest

from entrepot.ir.opset import ML_OPSET, OPSET
from entrepot.ir.opset.convert import can_convert, convert_opset, raise_to_hub
from tests.ir.opset.evaluate import checked, parse, run

ML = "ai.onnx.ml"
TREE = """
  y = ai.onnx.ml.TreeEnsembleRegressor<
    n_targets = 1, nodes_treeids = [0, 0, 0], nodes_nodeids = [0, 1, 2], nodes_featureids = [1, 0, 0],
    nodes_modes = ["BRANCH_LEQ", "LEAF", "LEAF"], nodes_values = [0.5, 0.0, 0.0], nodes_truenodeids = [1, 0, 0],
    nodes_falsenodeids = [2, 0, 0], target_treeids = [0, 0], target_nodeids = [1, 2], target_ids = [0, 0],
    target_weights = [10.0, 20.0]>(x)
"""


def test_a_list_of_classes_becomes_keys_and_values_and_back() -> None:
    body = 'y = ai.onnx.ml.LabelEncoder<classes_strings = ["a", "b"], default_string = "?">(x)'
    model = parse(body, 11, "int64[3] x) => (string[3] y", imports=', "ai.onnx.ml": 1')
    up = convert_opset(model, {ML: 3})
    data = np.array([1, 0, 5])
    assert run(up, data)[0].tolist() == run(model, data)[0].tolist() == ["b", "a", "?"]
    down = convert_opset(up, {ML: 1})
    assert (
        down.ir.graph.node(0).attributes["classes_strings"].value
        == model.ir.graph.node(0).attributes["classes_strings"].value
    )


def test_tensors_of_keys_become_lists() -> None:
    body = (
        "y = ai.onnx.ml.LabelEncoder<keys_tensor = int64[2] {3, 4}, values_tensor = float[2] {0.5, 1.5},"
        " default_tensor = float[1] {-1}>(x)"
    )
    model = parse(body, 17, "int64[3] x) => (float[3] y", imports=', "ai.onnx.ml": 4')
    down = convert_opset(model, {ML: 2})
    data = np.array([4, 3, 7])
    np.testing.assert_array_equal(run(down, data)[0], run(model, data)[0])


def test_keys_that_are_no_list_of_classes_block() -> None:
    body = 'y = ai.onnx.ml.LabelEncoder<keys_int64s = [5, 6], values_strings = ["a", "b"]>(x)'
    model = parse(body, 11, "int64[3] x) => (string[3] y", imports=', "ai.onnx.ml": 2')
    (blocker,) = can_convert(model, {ML: 1})
    assert "in order" in str(blocker)


def test_a_model_of_one_domain_alone_needs_no_import_of_the_other() -> None:
    model = parse(TREE, 11, "float[N,2] x) => (float[N,1] y", imports=', "ai.onnx.ml": 1')
    del model.ir.graph.opset_imports[""]
    assert convert_opset(model, {ML: 3}).opsets == {ML: 3}


def test_older_tree_ensembles_are_raised_as_far_as_they_live() -> None:
    model = parse(TREE, 11, "float[N,2] x) => (float[N,1] y", imports=', "ai.onnx.ml": 1')
    hub = raise_to_hub(model)
    assert hub.opsets == {"": OPSET, ML: 4}
    assert raise_to_hub(hub) is hub
    checked(hub)


def test_tree_ensembles_of_an_older_form_become_the_new_one() -> None:
    model = parse(TREE, 17, "float[N,2] x) => (float[N,1] y", imports=', "ai.onnx.ml": 3')
    after = convert_opset(model, {ML: ML_OPSET})
    assert [node.op_type for node in after.ir.graph] == ["TreeEnsemble"]
    data = np.array([[0, 0.2], [0, 0.9]], np.float32)
    np.testing.assert_array_equal(run(after, data)[0], [[10], [20]])


@pytest.mark.parametrize("step", [1, 3])
def test_double_thresholds_are_not_squeezed_into_floats(step: int) -> None:
    body = TREE.replace("nodes_values = [0.5, 0.0, 0.0]", "nodes_values_as_tensor = double[3] {0.5, 0.0, 0.0}")
    body = body.replace("target_weights = [10.0, 20.0]", "target_weights_as_tensor = double[2] {10.0, 20.0}")
    model = parse(body, 17, "double[N,2] x) => (float[N,1] y", imports=', "ai.onnx.ml": 3')
    assert bool(can_convert(model, {ML: step})) is (step == 1)
