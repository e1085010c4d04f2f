"""Random ensembles of trees, down from ai.onnx.ml 5 and up from 3, against onnxruntime's kernels of both forms."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from entrepot.ir.errors import ConversionError
from entrepot.ir.io.read import load
from entrepot.ir.model import Model
from entrepot.ir.opset.convert import convert_opset
from entrepot.runtime.session import Session
from tests.ir.opset.evaluate import run
from tests.judges.oracle import run_onnxruntime
from tests.op_cases.case import Case
from tests.op_cases.ml import ML_MODES, classifier, column, ensemble, ml, regressor

ML = "ai.onnx.ml"
FEATURES = 3


def inputs(rng: np.random.Generator) -> np.ndarray[Any, Any]:
    x = rng.integers(0, 6, (40, FEATURES)).astype(np.float32)
    return np.where(rng.random(x.shape) < 0.1, np.float32(np.nan), x)


def new_trees(rng: np.random.Generator, targets: int) -> dict[str, Any]:
    """Trees of TreeEnsemble 5; about every fourth node asks for membership of a set."""
    rows: list[list[int]] = []
    leaves: list[int] = []
    roots, members = [], []

    def grow(depth: int) -> tuple[int, int]:
        if depth and rng.random() < 0.3 * depth:
            leaves.append(int(rng.integers(targets)))
            return 1, len(leaves) - 1
        row = [int(rng.integers(FEATURES)), int(rng.integers(7)), int(rng.integers(2)), 0, 0, 0, 0]
        index = len(rows)
        rows.append(row)
        row[3:5], row[5:7] = grow(depth + 1), grow(depth + 1)
        return 0, index

    for _ in range(4):
        roots.append(grow(0)[1])
    for row in rows:
        if row[1] == 6:
            members += [*rng.integers(0, 6, rng.integers(1, 4)).tolist(), np.nan]
    features, modes, missing, true_leafs, true, false_leafs, false = (list(row) for row in zip(*rows, strict=True))
    return {
        "nodes_featureids": features,
        "nodes_splits": rng.integers(0, 6, len(rows)).astype(np.float32),
        "nodes_modes": column(*modes, dtype=np.uint8),
        "nodes_missing_value_tracks_true": missing,
        "nodes_trueleafs": true_leafs,
        "nodes_truenodeids": true,
        "nodes_falseleafs": false_leafs,
        "nodes_falsenodeids": false,
        "membership_values": column(*members),
        "leaf_targetids": leaves,
        "leaf_weights": rng.normal(size=len(leaves)).astype(np.float32),
        "tree_roots": roots,
        "n_targets": targets,
    }


def old_trees(rng: np.random.Generator, prefix: str, classes: int, *, each: bool) -> dict[str, Any]:
    """Trees of ai.onnx.ml 3; ``each`` leaf votes for every class, or for some."""
    rows: list[list[Any]] = []
    votes: list[list[Any]] = []

    def grow(tree: int, start: int, depth: int) -> int:
        node, is_leaf = len(rows) - start, depth > 0 and rng.random() < 0.3 * depth
        mode = "LEAF" if is_leaf else f"BRANCH_{rng.choice(ML_MODES)}"
        row = [tree, node, int(rng.integers(FEATURES)), mode, float(rng.integers(6)), int(rng.integers(2)), 0, 0]
        rows.append(row)
        if is_leaf:
            chosen = range(classes) if each else sorted({int(item) for item in rng.integers(0, classes, 2)})
            votes.extend([tree, node, item, float(rng.normal())] for item in chosen)
        else:
            row[6:] = grow(tree, start, depth + 1), grow(tree, start, depth + 1)
        return node

    for tree in range(4):
        grow(tree, len(rows), 0)
    names = ("treeids", "nodeids", "featureids", "modes", "values", "missing_value_tracks_true", "truenodeids")
    nodes = zip((*names, "falsenodeids"), zip(*rows, strict=True), strict=True)
    leaves = zip(("treeids", "nodeids", "ids", "weights"), zip(*votes, strict=True), strict=True)
    return {f"nodes_{name}": list(values) for name, values in nodes} | {
        f"{prefix}_{name}": list(values) for name, values in leaves
    }


def same(case: Case, version: int) -> Model:
    """Convert the case from one form to the other, and compare the results of onnxruntime."""
    before = load(case.model(4 if version == 5 else 5))
    after = convert_opset(before, {ML: version})
    for want, have in zip(run(before, *case.feeds().values()), run(after, *case.feeds().values()), strict=True):
        assert (have.dtype, have.shape) == (want.dtype, want.shape)
        if want.dtype.kind == "f":
            np.testing.assert_allclose(have, want, rtol=1e-4, atol=1e-5)
        else:
            np.testing.assert_array_equal(have, want)
    return after


@pytest.mark.parametrize("seed", range(12))
def test_ensembles_become_regressors_and_ensembles_again(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x, targets = inputs(rng), int(rng.integers(1, 4))
    case = ml("TreeEnsemble", x, **new_trees(rng, targets), aggregate_function=seed % 4)
    old = same(case, 4)
    assert [node.op_type for node in old.ir.graph] == ["TreeEnsembleRegressor"]
    new = convert_opset(old, {ML: 5}) if seed % 4 < 2 or targets == 1 else old
    np.testing.assert_allclose(run(new, x)[0], run(old, x)[0], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("seed", range(12))
def test_leaves_of_many_targets_are_told_apart(seed: int) -> None:
    rng = np.random.default_rng(seed)
    aggregate = ("AVERAGE", "SUM", "MIN", "MAX")[seed % 4]
    trees = old_trees(rng, "target", 3, each=seed % 4 > 1)
    same(ml("TreeEnsembleRegressor", inputs(rng), **trees, n_targets=3, aggregate_function=aggregate), 5)


@pytest.mark.parametrize("seed", range(12))
def test_classifiers_become_an_ensemble_and_the_best_class(seed: int) -> None:
    rng = np.random.default_rng(seed)
    trees = old_trees(rng, "class", 3, each=seed % 2 == 0)
    labels = {"classlabels_strings": ["x", "y", "z"]} if seed % 3 else {"classlabels_int64s": [7, 5, 3]}
    base = {"base_values": [0.5, -0.25, 0.125]} if seed % 2 else {}
    how = ("NONE", "LOGISTIC", "SOFTMAX")[seed % 3]
    case = ml("TreeEnsembleClassifier", inputs(rng), **trees, **labels, **base, post_transform=how).outputs(2)
    same(case, 5)


def test_a_class_without_a_score_is_refused() -> None:
    weights = [0.1, 0.7, -0.2, 0.3, 0.4]
    with pytest.raises(ConversionError, match="has no score"):
        convert_opset(load(classifier(class_weights=weights).model()), {ML: 5})


def test_two_classes_are_refused_and_one_row_of_scores_is_not() -> None:
    rng = np.random.default_rng(0)
    trees = old_trees(rng, "class", 2, each=True)
    case = ml("TreeEnsembleClassifier", inputs(rng), **trees, classlabels_int64s=[0, 1]).outputs(2)
    model = load(case.model())
    with pytest.raises(ConversionError, match="two classes"):
        convert_opset(model, {ML: 5})
    del model.ir.graph.outputs[0]
    after = convert_opset(model, {ML: 5})
    np.testing.assert_allclose(run(after, *case.feeds().values())[0], run(model, *case.feeds().values())[0], rtol=1e-5)


def test_leaves_of_one_target_each_are_averaged_over_their_own_trees() -> None:
    same(regressor(ids=[0, 1, 0, 1, 1], n_targets=2, aggregate_function="AVERAGE"), 5)


def test_branches_that_meet_for_ever_are_refused() -> None:
    circle = {"nodes_truenodeids": [0, 3, 0, 0, 0, 1, 0, 0]}
    with pytest.raises(ConversionError, match="begin with their roots"):
        convert_opset(load(regressor(**circle).model()), {ML: 5})
    circle = {"nodes_truenodeids": [1, 1, 0, 0, 0, 1, 0, 0]}
    with pytest.raises(ConversionError, match="no tree"):
        convert_opset(load(regressor(**circle).model()), {ML: 5})
    with pytest.raises(ConversionError, match="no trees"):
        convert_opset(load(ensemble(nodes_truenodeids=[0, 0, 3]).model()), {ML: 4})


def test_weights_of_nodes_that_ask_are_refused() -> None:
    with pytest.raises(ConversionError, match="is not a leaf"):
        convert_opset(load(regressor(target_nodeids=[1, 3, 4, 1, 2]).model()), {ML: 5})


@pytest.mark.parametrize("targets", [1, 2])
def test_a_leaf_that_names_its_target_again(targets: int) -> None:
    case = regressor(
        n_targets=targets,
        target_treeids=[0, 0, 0, 0, 1, 1],
        target_nodeids=[2, 2, 3, 4, 1, 2],
        target_ids=[0] * 6,
        target_weights=[1.0, 7.0, 2.0, 3.0, 4.0, 5.0],
    )
    (expected,) = run_onnxruntime(case.model(3), case.feeds())
    (found,) = Session(load(case.model(3)), providers=["cpu"]).run(case.feeds()).values()
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    same(case, 5)
