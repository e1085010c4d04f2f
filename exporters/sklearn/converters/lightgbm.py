"""LightGBM: its models for scikit-learn, and ``Booster`` itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from entrepot.exporters.sklearn.array import Symbolic, lifted
from entrepot.exporters.sklearn.blocks import chosen, sigmoid, softmax, two_columns, voted
from entrepot.exporters.sklearn.columns import as_double
from entrepot.exporters.sklearn.encoding import coded
from entrepot.exporters.sklearn.questions import Questions
from entrepot.exporters.sklearn.table import Results, converts
from entrepot.exporters.sklearn.trees import Tree, leaf_numbers, leaf_values

_ZERO = 1e-35
"""What LightGBM takes for 0."""


@converts("lightgbm.Booster")
def booster(model: Any, x: Any) -> Results:
    """What ``predict`` makes of raw scores, and those."""
    found = model.dump_model()
    raw = _raw(found, coded(x, model.pandas_categorical or ()))
    stages = len(found["tree_info"]) // int(found["num_tree_per_iteration"])
    linked = _linked(found, raw / stages if found.get("average_output") else raw)
    return {"predict": _flat(linked), "decision_function": _flat(raw)}


@converts("lightgbm.LGBMRegressor", "lightgbm.LGBMRanker")
def regressor(model: Any, x: Any) -> Results:
    """A regressor or a ranker."""
    return {"predict": booster(model.booster_, x)["predict"]}


@converts("lightgbm.LGBMClassifier")
def classifier(model: Any, x: Any) -> Results:
    """Probabilities, and the class that they are for."""
    found = booster(model.booster_, x)
    linked, raw = found["predict"], found["decision_function"]
    if linked.ndim == 2:
        return {"predict": voted(model.classes_, linked), "predict_proba": linked, "decision_function": raw}
    labels = chosen(model.classes_, (linked > 0.5).astype(np.int64))
    return {"predict": labels, "predict_proba": two_columns(linked), "decision_function": raw}


def _flat(x: Symbolic) -> Symbolic:
    return x[:, 0] if x.shape[1] == 1 else x


def _linked(found: Mapping[str, Any], raw: Symbolic) -> Symbolic:
    name, *rest = str(found.get("objective", "none")).split()
    given = dict(item.split(":") for item in rest if ":" in item)
    steep = float(given.get("sigmoid", 1))
    match name:
        case "multiclass":
            return softmax(raw)
        case "binary" | "multiclassova" | "cross_entropy":
            return sigmoid(raw * steep)
        case "cross_entropy_lambda":
            return np.log1p(np.exp(raw))
        case "poisson" | "gamma" | "tweedie":
            return np.exp(raw)
    return np.sign(raw) * raw * raw if "sqrt" in rest else raw


def _raw(found: Mapping[str, Any], x: Any) -> Symbolic:
    """Sums of leaves."""
    x, count = as_double(x), int(found["num_tree_per_iteration"])
    trees = [info["tree_structure"] for info in found["tree_info"]]
    nodes = [list(_nodes(tree)) for tree in trees]
    table = _Columns(x, [node for each in nodes for node in each])
    made = [_tree(tree, table) for tree in trees]
    columns = table.questions.columns("truncated")
    leaves = [each[at] for each, tree in zip(nodes, made, strict=True) for at in tree.leaves]
    if all("leaf_coeff" in leaf for leaf in leaves):
        starts = np.cumsum([0, *(len(tree.leaves) for tree in made[:-1])])
        worth = _linear_leaves(x, leaf_numbers(columns, made) + starts, leaves)
    else:
        worth = leaf_values(columns, made)
    return worth.reshape(-1, len(made) // count, count).sum(1)


def _linear_leaves(x: Symbolic, numbers: Symbolic, leaves: Sequence[Mapping[str, Any]]) -> Symbolic:
    """What the linear models in leaves say; where an element that one reads is missing, the value of the leaf."""
    places = np.arange(x.shape[1])
    reads = np.array([np.isin(places, leaf["leaf_features"]) for leaf in leaves])
    weights = np.zeros(reads.shape)
    for row, leaf in enumerate(leaves):
        weights[row, leaf["leaf_features"]] = leaf["leaf_coeff"]
    constants, values = (np.array([leaf[name] for leaf in leaves], float) for name in ("leaf_const", "leaf_value"))
    read, weight, constant, value = (
        lifted(x.build, table).take(numbers, 0) for table in (reads.astype(np.int64), weights, constants, values)
    )
    missing = np.isnan(x)
    filled: Symbolic = np.where(missing, 0.0, x)
    line = constant + (weight * filled.expand(1)).sum(2)
    return np.where((read * missing.astype(np.int64).expand(1)).sum(2) > 0, value, line)


def _nodes(tree: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    pending = [tree]
    while pending:
        node = pending.pop()
        yield node
        pending += [node[side] for side in ("left_child", "right_child") if side in node]


class _Columns:
    """The columns as nodes read them, which say themselves what is missing: nothing, zeros, or NaN."""

    def __init__(self, x: Symbolic, nodes: list[Mapping[str, Any]]) -> None:
        kinds = sorted({node["missing_type"] for node in nodes if node.get("decision_type") == "<="} - {"NaN"})
        width = x.shape[1]
        views: dict[str, Callable[[], Symbolic]] = {
            "None": lambda: np.where(np.isnan(x), 0.0, x),
            "Zero": lambda: self._without_zeros(x),
        }
        self._offset = {"NaN": 0, **{kind: width * (1 + at) for at, kind in enumerate(kinds)}}
        extended = np.concatenate([x, *(views[kind]() for kind in kinds)], axis=1) if kinds else x
        codes = [int(code) for node in nodes if node.get("decision_type") == "==" for code in _codes(node)]
        self.questions = Questions(extended, max(codes, default=-1) + 1)

    @staticmethod
    def _without_zeros(x: Symbolic) -> Symbolic:
        return np.where(np.abs(x) <= _ZERO, np.nan, x)

    def split(self, node: Mapping[str, Any]) -> tuple[int, float]:
        """The column and the threshold of a node."""
        if node["decision_type"] == "==":
            return self.questions.ask(node["split_feature"], _codes(node), missing_left=False), 0.5
        return node["split_feature"] + self._offset[node["missing_type"]], float(node["threshold"])


def _codes(node: Mapping[str, Any]) -> list[int]:
    return [int(code) for code in str(node["threshold"]).split("||")]


def _tree(root: Mapping[str, Any], table: _Columns) -> Tree:
    nodes = list(_nodes(root))
    place = {id(node): at for at, node in enumerate(nodes)}
    size = len(nodes)
    left, right, feature = np.full(size, -1), np.full(size, -1), np.full(size, -1)
    threshold, worth, missing = np.zeros(size), np.zeros(size), np.zeros(size, int)
    for at, node in enumerate(nodes):
        if "left_child" not in node:
            worth[at] = node["leaf_value"]
            continue
        left[at], right[at] = place[id(node["left_child"])], place[id(node["right_child"])]
        feature[at], threshold[at] = table.split(node)
        missing[at] = int(node["default_left"])
    return Tree(left, right, feature, threshold, worth, missing)
