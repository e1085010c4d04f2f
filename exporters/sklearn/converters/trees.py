"""Trees, forests, and boosted trees of scikit-learn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from entrepot.exporters.sklearn.array import Symbolic, lifted
from entrepot.exporters.sklearn.blocks import chosen, outliers, sigmoid, softmax, two_columns, voted
from entrepot.exporters.sklearn.columns import as_double, as_float
from entrepot.exporters.sklearn.questions import Questions
from entrepot.exporters.sklearn.table import Results, converts, result
from entrepot.exporters.sklearn.trees import Tree, leaf_numbers, leaf_values


def tree_of(model: Any, values: Any = None) -> Tree:
    """A fitted tree; its nodes are worth what it predicts unless values are given."""
    found = model.tree_ if hasattr(model, "tree_") else model
    left = found.children_left
    values = found.value if values is None else values
    return Tree(left, found.children_right, found.feature, found.threshold, values, found.missing_go_to_left)


def single(x: Any) -> Symbolic:
    """As trees take it."""
    return as_float(x).astype(np.float32)


@converts("sklearn.DecisionTreeRegressor", "sklearn.ExtraTreeRegressor")
def regressor(model: Any, x: Any) -> Results:
    """The mean of a leaf."""
    return {"predict": _forest_mean(model, [model], x)}


@converts("sklearn.ForestRegressor")
def forest_regressor(model: Any, x: Any) -> Results:
    """The mean of leaves."""
    return {"predict": _forest_mean(model, model.estimators_, x)}


def _forest_mean(model: Any, trees: Sequence[Any], x: Any) -> Symbolic:
    worth = leaf_values(single(x), [tree_of(tree, tree.tree_.value[:, :, 0]) for tree in trees])
    mean = worth[:, 0] if len(trees) == 1 else worth.sum(1) / len(trees)
    return mean[:, 0] if model.n_outputs_ == 1 else mean


@converts("sklearn.DecisionTreeClassifier", "sklearn.ExtraTreeClassifier")
def classifier(model: Any, x: Any) -> Results:
    """Shares of classes in a leaf."""
    return _classified(model, [model], x)


@converts("sklearn.ForestClassifier")
def forest_classifier(model: Any, x: Any) -> Results:
    """The mean of shares of classes in leaves."""
    return _classified(model, model.estimators_, x)


def _classified(model: Any, trees: Sequence[Any], x: Any) -> Results:
    worth = leaf_values(single(x), [tree_of(tree) for tree in trees])
    shares = worth[:, 0] if len(trees) == 1 else worth.sum(1) / len(trees)
    if model.n_outputs_ == 1:
        found = shares[:, 0]
        return {"predict": voted(model.classes_, found), "predict_proba": found}
    each = [shares[:, at, :count] for at, count in enumerate(model.n_classes_)]
    labels = [voted(classes, found) for classes, found in zip(model.classes_, each, strict=True)]
    return {"predict": np.stack(labels, axis=1), "predict_proba": each}


@converts("sklearn.RandomTreesEmbedding")
def embedding(model: Any, x: Any) -> Results:
    """Which leaves a row reaches, one-hot."""
    trees = [tree_of(tree) for tree in model.estimators_]
    numbers = leaf_numbers(single(x), trees)
    parts = []
    for at, (tree, known) in enumerate(zip(trees, model.one_hot_encoder_.categories_, strict=True)):
        reached = lifted(numbers.build, tree.leaves).take(numbers[:, at], 0)
        parts.append(reached[:, None] == np.asarray(known, np.int64))
    return {"transform": np.concatenate(parts, axis=1)}


@converts("sklearn.IsolationForest")
def isolation(model: Any, x: Any) -> Results:
    """How deep the leaves are that isolate a row."""
    x = single(x)
    trees = []
    tables = zip(model._decision_path_lengths, model._average_path_length_per_tree, strict=True)
    for tree, columns, (depth, rest) in zip(model.estimators_, model.estimators_features_, tables, strict=True):
        found = tree_of(tree, np.asarray(depth) + np.asarray(rest) - 1.0)
        found.feature = np.where(found.feature >= 0, np.asarray(columns)[np.maximum(found.feature, 0)], -1)
        trees.append(found)
    from sklearn.ensemble._iforest import _average_path_length

    most = len(trees) * _average_path_length([model._max_samples])[0]
    share = leaf_values(x, trees).sum(1) / most if most else x.rows(1.0)
    samples = -np.exp(share * -np.log(2.0))
    return outliers(samples, model.offset_)


@converts("sklearn.BaseGradientBoosting")
def boosting(model: Any, x: Any) -> Results:
    """Sums of leaves on top of a first guess."""
    x = single(x)
    stages, count = model.estimators_.shape
    trees = [tree_of(tree, tree.tree_.value[:, 0, 0] * model.learning_rate) for tree in model.estimators_.ravel()]
    sums = leaf_values(x, trees).reshape(-1, stages, count).sum(1)
    return _boosted(model, sums + _first_guess(model, x), model._loss)


def _first_guess(model: Any, x: Symbolic) -> Any:
    if isinstance(model.init_, str):
        return 0.0
    if type(model.init_).__name__.startswith("Dummy"):
        return model._raw_predict_init(np.zeros((1, model.n_features_in_), np.float32))[0]
    if not hasattr(model, "classes_"):
        return result(model.init_, x, "predict").astype(np.float64)[:, None]
    shares = result(model.init_, x, "predict_proba").astype(np.float64)
    eps = np.finfo(np.float64).eps
    shares = np.clip(shares, eps, 1 - eps)
    if model._loss.is_multiclass:
        logs = np.log(shares)
        return logs - logs.mean(1, True)
    positive = shares[:, 1:]
    odds = np.log(positive / (1 - positive))
    return 0.5 * odds if type(model._loss.link).__name__ == "HalfLogitLink" else odds


def _boosted(model: Any, raw: Symbolic, loss: Any) -> Results:
    if not hasattr(model, "classes_"):
        link = type(loss.link).__name__
        return {"predict": raw[:, 0] if link == "IdentityLink" else np.exp(raw[:, 0])}
    if raw.shape[1] != 1:
        return {"predict": voted(model.classes_, raw), "predict_proba": softmax(raw), "decision_function": raw}
    scores = raw[:, 0]
    positive = sigmoid(scores * (2.0 if type(loss.link).__name__ == "HalfLogitLink" else 1.0))
    labels = chosen(model.classes_, (scores >= 0).astype(np.int64))
    return {"predict": labels, "predict_proba": two_columns(positive), "decision_function": scores}


@converts("sklearn.BaseHistGradientBoosting")
def histogram_boosting(model: Any, x: Any) -> Results:
    """The same on values that were put into bins; categories are sets."""
    x = as_double(x) if model._preprocessor is None else as_double(result(model._preprocessor, x, "transform"))
    known, places = model._bin_mapper.make_known_categories_bitsets()
    questions = Questions(x, _CODES)
    trees = [_of_nodes(part, questions, known, places) for stage in model._predictors for part in stage]
    count = model.n_trees_per_iteration_
    sums = leaf_values(questions.columns(), trees).reshape(-1, len(trees) // count, count).sum(1)
    found = _boosted(model, sums + model._baseline_prediction, model._loss)
    if hasattr(model, "classes_") and count == 1:
        positive = found["predict_proba"][:, 1]
        labels = chosen(model.classes_, (positive > 0.5).astype(np.int64))
        return {**found, "predict": labels}
    return found


def _of_nodes(predictor: Any, questions: Questions, known: Any, places: Any) -> Tree:
    nodes = predictor.nodes
    feature, threshold = nodes["feature_idx"].astype(int), nodes["num_threshold"].astype(float)
    missing, leaf = nodes["missing_go_to_left"].astype(int), nodes["is_leaf"] == 1
    for at in np.flatnonzero((nodes["is_categorical"] == 1) & ~leaf):
        left = _members(predictor.raw_left_cat_bitsets[nodes["bitset_idx"][at]])
        everything = _members(known[places[feature[at]]])
        feature[at] = questions.ask(feature[at], left, missing_left=bool(missing[at]), known=everything)
        threshold[at] = 0.5
    left, right = (np.where(leaf, -1, nodes[name].astype(int)) for name in ("left", "right"))
    return Tree(left, right, feature, threshold, nodes["value"].astype(float), missing)


_CODES = 256


def _members(bits: Any) -> Any:
    """Which of 256 categories are in a set."""
    return np.flatnonzero(np.unpackbits(np.asarray(bits, np.uint32).view(np.uint8), bitorder="little"))
