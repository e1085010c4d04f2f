"""Random trees, linear models and support vector machines of ai.onnx.ml, against onnxruntime."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper

import entrepot as ep

TRANSFORMS = ("NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO")
FEATURES = 3
WITH_LABEL = ("TreeEnsembleClassifier", "LinearClassifier", "SVMClassifier")


def model(op_type: str, attributes: dict[str, Any]) -> onnx.ModelProto:
    names = ["label", "scores"] if op_type in WITH_LABEL else ["scores"]
    types = {"label": TensorProto.INT64, "scores": TensorProto.FLOAT}
    graph = helper.make_graph(
        [helper.make_node(op_type, ["X"], names, domain="ai.onnx.ml", **attributes)], "one",
        [helper.make_tensor_value_info("X", TensorProto.FLOAT, ["n", FEATURES])],
        [helper.make_tensor_value_info(name, types[name], ["n"] if name == "label" else ["n", "k"]) for name in names],
    )  # fmt: skip
    opsets = [helper.make_opsetid("", 20), helper.make_opsetid("ai.onnx.ml", 3)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=9)


def assert_as_onnxruntime(op_type: str, attributes: dict[str, Any], X: np.ndarray) -> None:
    """Labels are equal; scores are sums of fewer than fifty terms of about one, in single precision."""
    proto = model(op_type, attributes)
    expected = onnxruntime.InferenceSession(proto.SerializeToString()).run(None, {"X": X})
    outputs = list(ep.Session(ep.load(proto)).run({"X": X}).values())
    assert len(outputs) == len(expected)
    for got, wanted in zip(outputs, expected, strict=True):
        assert got.dtype == wanted.dtype
        bound = 0.0 if wanted.dtype == np.int64 else 50 * np.finfo(np.float32).eps * (50 + np.abs(wanted))
        assert got.shape == wanted.shape
        assert (np.abs(got - wanted) <= bound).all(), (got, wanted)


def floats(values: Any) -> list[float]:
    return np.asarray(values, np.float32).ravel().tolist()


def grown(rng: np.random.Generator, trees: int, depth: int) -> tuple[dict[str, Any], list[tuple[int, int]]]:
    """Attributes of the nodes of random trees, and their leaves."""
    rows: list[Any] = []
    leaves = []

    def grow(tree: int, number: list[int], left: int) -> int:
        own = number[0]
        number[0] += 1
        if not left or (left < depth and rng.random() < 0.3):
            rows.append((tree, own, 0, "LEAF", 0.0, 0, 0, 0))
            leaves.append((tree, own))
            return own
        at = len(rows)
        rows.append(None)
        true, false = grow(tree, number, left - 1), grow(tree, number, left - 1)
        feature, split, missing = rng.integers(FEATURES), rng.normal(), rng.integers(2)
        rows[at] = (tree, own, int(feature), "BRANCH_LEQ", float(np.float32(split)), true, false, int(missing))
        return own

    for tree in range(trees):
        grow(tree, [0], depth)
    names = (
        "treeids", "nodeids", "featureids", "modes", "values", "truenodeids", "falsenodeids",
        "missing_value_tracks_true",
    )  # fmt: skip
    return {f"nodes_{name}": list(column) for name, column in zip(names, zip(*rows, strict=True), strict=True)}, leaves


def rows(rng: np.random.Generator, *, holes: bool = False) -> np.ndarray:
    X = rng.normal(size=(8, FEATURES)).astype(np.float32)
    return np.where(rng.random(X.shape) < 0.1, np.float32(np.nan), X) if holes else X


@pytest.mark.parametrize("votes", ["the first class", "the second class", "some class", "each class"])
@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("positive", [True, False])
def test_trees_classify(votes: str, transform: str, classes: int, positive: bool) -> None:
    rng = np.random.default_rng(7)
    for bases in (0, 1, classes):
        if bases == 1 and (classes > 2 or votes == "some class"):
            continue
        nodes, leaves = grown(rng, 3, 3)
        chosen = {"the first class": 0, "the second class": 1}.get(votes)
        pairs = [(leaf, rng.integers(classes) if chosen is None else chosen) for leaf in leaves]
        if votes == "each class":
            pairs = [(leaf, at) for leaf in leaves for at in range(classes)]
        weights = rng.normal(size=len(pairs))
        attributes = {
            **nodes, "class_treeids": [leaf[0] for leaf, _ in pairs], "class_nodeids": [leaf[1] for leaf, _ in pairs],
            "class_ids": [int(at) for _, at in pairs], "class_weights": floats(abs(weights) if positive else weights),
            "classlabels_int64s": list(range(classes)), "post_transform": transform,
            **({"base_values": floats(rng.normal(size=bases))} if bases else {}),
        }  # fmt: skip
        assert_as_onnxruntime("TreeEnsembleClassifier", attributes, rows(rng, holes=True))


def test_one_base_value_for_two_classes_is_refused_where_it_is_not_defined() -> None:
    rng = np.random.default_rng(0)
    nodes, leaves = grown(rng, 1, 1)
    attributes = {
        **nodes, "class_treeids": [0, 0], "class_nodeids": [leaf[1] for leaf in leaves], "class_ids": [0, 1],
        "class_weights": [1.0, 1.0], "classlabels_int64s": [0, 1], "base_values": [0.5],
    }  # fmt: skip
    session = ep.Session(ep.load(model("TreeEnsembleClassifier", attributes)))
    with pytest.raises(ep.InputError, match="one base value for two classes"):
        session.run({"X": rows(rng)})


@pytest.mark.parametrize("how", ["SUM", "AVERAGE", "MIN", "MAX"])
@pytest.mark.parametrize("targets", [1, 3])
def test_trees_sum_up(how: str, targets: int) -> None:
    rng = np.random.default_rng(3)
    nodes, leaves = grown(rng, 5, 4)
    pairs = [(leaf, at) for leaf in leaves for at in range(targets)]
    attributes = {
        **nodes, "target_treeids": [leaf[0] for leaf, _ in pairs], "target_nodeids": [leaf[1] for leaf, _ in pairs],
        "target_ids": [at for _, at in pairs], "target_weights": floats(rng.normal(size=len(pairs))),
        "n_targets": targets, "aggregate_function": how, "base_values": floats(rng.normal(size=targets)),
    }  # fmt: skip
    assert_as_onnxruntime("TreeEnsembleRegressor", attributes, rows(rng, holes=True))


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("classes", [1, 2, 4])
def test_linear_models(transform: str, classes: int) -> None:
    rng = np.random.default_rng(classes)
    sums = {
        "coefficients": floats(rng.normal(size=(classes, FEATURES))),
        "intercepts": floats(rng.normal(size=classes)),
    }
    common = {**sums, "post_transform": transform}
    assert_as_onnxruntime("LinearClassifier", {**common, "classlabels_ints": list(range(max(2, classes)))}, rows(rng))
    assert_as_onnxruntime("LinearRegressor", {**common, "targets": classes}, rows(rng))


@pytest.mark.parametrize("kernel", ["LINEAR", "POLY", "RBF", "SIGMOID"])
@pytest.mark.parametrize("probabilities", [True, False])
@pytest.mark.parametrize("classes", [2, 4])
def test_support_vectors_classify(kernel: str, probabilities: bool, classes: int) -> None:
    rng = np.random.default_rng(classes)
    per_class = rng.integers(1, 4, classes).tolist()
    supports, pairs = sum(per_class), classes * (classes - 1) // 2
    attributes = {
        "support_vectors": floats(rng.normal(size=(supports, FEATURES))), "kernel_params": [0.5, 1.0, 2.0],
        "coefficients": floats(rng.normal(size=(classes - 1, supports))), "rho": floats(rng.normal(size=pairs)),
        "vectors_per_class": per_class, "kernel_type": kernel, "classlabels_ints": list(range(classes)),
    }  # fmt: skip
    if probabilities:
        attributes |= {"prob_a": floats(-1 - rng.random(pairs)), "prob_b": floats(rng.normal(size=pairs) / 8)}
    for transform in TRANSFORMS:
        assert_as_onnxruntime("SVMClassifier", {**attributes, "post_transform": transform}, rows(rng))


@pytest.mark.parametrize("kernel", ["LINEAR", "POLY", "RBF", "SIGMOID"])
@pytest.mark.parametrize("one_class", [0, 1])
def test_support_vectors_regress(kernel: str, one_class: int) -> None:
    rng = np.random.default_rng(5)
    attributes = {
        "support_vectors": floats(rng.normal(size=(4, FEATURES))), "kernel_params": [0.5, 1.0, 2.0], "n_supports": 4,
        "coefficients": floats(rng.normal(size=4)), "rho": [0.25], "kernel_type": kernel, "one_class": one_class,
    }  # fmt: skip
    assert_as_onnxruntime("SVMRegressor", attributes, rows(rng))
    alone = {"coefficients": floats(rng.normal(size=FEATURES)), "kernel_params": [0.0, 0.0, 0.0], "rho": [0.25]}
    assert_as_onnxruntime("SVMRegressor", alone, rows(rng))
