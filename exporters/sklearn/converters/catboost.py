"""CatBoost: its classifiers, regressors and rankers, and ``CatBoost`` itself."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from entrepot.exporters.sklearn.array import Symbolic
from entrepot.exporters.sklearn.blocks import chosen, sigmoid, softmax, two_columns, voted
from entrepot.exporters.sklearn.columns import as_float
from entrepot.exporters.sklearn.table import Results, converts
from entrepot.exporters.sklearn.trees import Tree, leaf_values
from entrepot.ir.errors import ConversionError

_EACH_LABEL = ("MultiLogloss", "MultiCrossEntropy")


@converts("catboost.CatBoost", "catboost.CatBoostRanker")
def plain(model: Any, x: Any) -> Results:
    """Raw scores."""
    return {"predict": _flat(_raw(model, x))}


@converts("catboost.CatBoostRegressor")
def regressor(model: Any, x: Any) -> Results:
    """Numbers, of counts their exponentials; means with variances where it was asked for both."""
    raw = _raw(model, x)
    match _loss(model):
        case "Poisson" | "Tweedie":
            return {"predict": _flat(np.exp(raw))}
        case "RMSEWithUncertainty":
            return {"predict": np.stack([raw[:, 0], np.exp(raw[:, 1] * 2)], 1)}
    return {"predict": _flat(raw)}


@converts("catboost.CatBoostClassifier")
def classifier(model: Any, x: Any) -> Results:
    """Probabilities, and the class or the labels that they are for."""
    raw, loss = _raw(model, x), _loss(model)
    if loss in _EACH_LABEL:
        return {"predict": (raw > 0).astype(np.int64), "predict_proba": sigmoid(raw)}
    if raw.shape[1] == 1:
        bound = model.get_probability_threshold()
        label = (raw[:, 0] > np.log(bound / (1 - bound))).astype(np.int64)
        return {"predict": chosen(model.classes_, label), "predict_proba": two_columns(sigmoid(raw[:, 0]))}
    shares = sigmoid(raw) if loss == "MultiClassOneVsAll" else softmax(raw)
    return {"predict": voted(model.classes_, raw)[:, np.newaxis], "predict_proba": shares}


def _flat(x: Symbolic) -> Symbolic:
    return x[:, 0] if x.shape[1] == 1 else x


def _loss(model: Any) -> str:
    return str(model.get_all_params().get("loss_function", "")).partition(":")[0]


def _raw(model: Any, x: Any) -> Symbolic:
    """Sums of leaves, of each output: CatBoost reads its columns as float32, and adds in float64."""
    found = _described(model)
    _refuse_other_columns(found["features_info"])
    columns = {
        int(each["feature_index"]): (int(each["flat_feature_index"]), each["nan_value_treatment"] != "AsTrue")
        for each in found["features_info"]["float_features"]
    }
    scale, start = found["scale_and_bias"]
    symmetric = "oblivious_trees" in found
    trees = found["oblivious_trees"] if symmetric else found["trees"]
    made = [_tree(_unfolded(each) if symmetric else each, columns, len(start)) for each in trees]
    return leaf_values(as_float(x).astype(np.float32), made).sum(1) * scale + np.asarray(start)


def _described(model: Any) -> Mapping[str, Any]:
    """What CatBoost writes about a model, which it does to files alone."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.json"
        model.save_model(str(path), format="json")
        found: Mapping[str, Any] = json.loads(path.read_text())
    return found


def _refuse_other_columns(info: Mapping[str, Any]) -> None:
    other = [kind for kind in ("categorical", "text", "embedding") if info.get(f"{kind}_features")]
    if other:
        raise ConversionError(
            f"columns that are {other[0]} cannot be written: CatBoost hashes what is in them",
            hint="put OneHotEncoder or TargetEncoder of scikit-learn before it in a pipeline, and fit again",
        )


def _unfolded(tree: Mapping[str, Any]) -> Mapping[str, Any]:
    """A tree that asks the same at all nodes of a level, as one of nodes; the first question is of the lowest bit."""
    splits, values = tree["splits"] or [], tree["leaf_values"]
    count = len(values) >> len(splits)
    nodes: list[Mapping[str, Any]] = [{"value": values[at : at + count]} for at in range(0, len(values), count)]
    for split in splits:
        pairs = zip(nodes[::2], nodes[1::2], strict=True)
        nodes = [{"left": left, "right": right, "split": split} for left, right in pairs]
    return nodes[0]


def _nodes(root: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    pending = [root]
    while pending:
        node = pending.pop()
        yield node
        pending += [node[side] for side in ("left", "right") if side in node]


def _tree(root: Mapping[str, Any], columns: Mapping[int, tuple[int, bool]], outputs: int) -> Tree:
    nodes = list(_nodes(root))
    place, size = {id(node): at for at, node in enumerate(nodes)}, len(nodes)
    left, right, feature = np.full(size, -1), np.full(size, -1), np.full(size, -1)
    threshold, worth, missing = np.zeros(size), np.zeros((size, outputs)), np.zeros(size, int)
    for at, node in enumerate(nodes):
        if "split" not in node:
            worth[at] = node["value"]
            continue
        left[at], right[at], threshold[at] = place[id(node["left"])], place[id(node["right"])], node["split"]["border"]
        feature[at], missing[at] = columns[int(node["split"]["float_feature_index"])]
    return Tree(left, right, feature, threshold, worth, missing)
