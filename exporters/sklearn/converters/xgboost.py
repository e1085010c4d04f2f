"""XGBoost: its models for scikit-learn, and ``Booster`` itself."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from entrepot.exporters.sklearn.array import Symbolic
from entrepot.exporters.sklearn.blocks import chosen, sigmoid, softmax, two_columns, voted
from entrepot.exporters.sklearn.columns import as_float
from entrepot.exporters.sklearn.encoding import coded
from entrepot.exporters.sklearn.questions import Questions
from entrepot.exporters.sklearn.table import Results, converts
from entrepot.exporters.sklearn.trees import Tree, leaf_values
from entrepot.ir.errors import ConversionError

_EXP = ("count:poisson", "reg:gamma", "reg:tweedie", "survival:cox", "survival:aft")
_LINKS: dict[str, Callable[[Symbolic], Symbolic]] = {
    "binary:logistic": sigmoid,
    "reg:logistic": sigmoid,
    "binary:hinge": lambda x: (x > 0).astype(np.float32),
    "multi:softprob": softmax,
    **dict.fromkeys(_EXP, np.exp),
}


@converts("xgboost.Booster")
def booster(model: Any, x: Any) -> Results:
    """What ``predict`` makes of a margin, and the margin."""
    margin = _margin(model, x)
    flat = margin[:, 0] if margin.shape[1] == 1 else margin
    objective = _objective(model)
    if objective == "multi:softmax":
        return {"predict": margin.argmax(1).astype(np.float32), "decision_function": flat}
    return {"predict": _LINKS.get(objective, lambda y: y)(flat), "decision_function": flat}


@converts("xgboost.XGBModel")
def regressor(model: Any, x: Any) -> Results:
    """A regressor or a ranker."""
    return {"predict": booster(_cut(model), x)["predict"]}


@converts("xgboost.XGBRanker")
def ranker(model: Any, x: Any) -> Results:
    """Scores to sort by."""
    return {"predict": booster(_cut(model), x)["decision_function"]}


@converts("xgboost.XGBClassifier")
def classifier(model: Any, x: Any) -> Results:
    """Probabilities, and the class that they are for."""
    inner = _cut(model)
    margin = _margin(inner, x)
    if _objective(inner).startswith("multi:"):
        return {"predict": voted(model.classes_, margin), "predict_proba": softmax(margin)}
    positive = _LINKS.get(_objective(inner), lambda y: y)(margin)
    if margin.shape[1] != 1:  # several labels at once
        return {"predict": (positive > 0.5).astype(np.int64), "predict_proba": positive}
    one = positive[:, 0]
    return {"predict": chosen(model.classes_, (one > 0.5).astype(np.int64)), "predict_proba": two_columns(one)}


def _cut(model: Any) -> Any:
    """The trees up to the best, if it was stopped early."""
    found = model.get_booster()
    stopped = getattr(model, "early_stopping_rounds", None) is not None
    return found[: model.best_iteration + 1] if stopped else found


def _described(model: Any) -> Mapping[str, Any]:
    learner: Mapping[str, Any] = json.loads(bytes(model.save_raw("json")))["learner"]
    return learner


def _objective(model: Any) -> str:
    return str(_described(model)["objective"]["name"])


def _margin(model: Any, x: Any) -> Symbolic:
    """Sums of leaves in single precision, as XGBoost sums, on top of what it starts from."""
    learner = _described(model)
    kind = learner["gradient_booster"]["name"]
    count = max(1, *(int(learner["learner_model_param"][name]) for name in ("num_class", "num_target")))
    x = as_float(coded(x, _categories(learner))).astype(np.float32)
    if kind == "gblinear":
        weights = np.array(learner["gradient_booster"]["model"]["weights"], np.float32).reshape(-1, count)
        return x @ weights[:-1] + (weights[-1] + _start(learner, count)[:1])  # the first score for all outputs (3.2)
    inner = learner["gradient_booster"].get("gbtree", learner["gradient_booster"])["model"]
    scales = learner["gradient_booster"].get("weight_drop", [1.0] * len(inner["trees"]))
    largest = max((code for tree in inner["trees"] for code in tree["categories"]), default=-1)
    questions = Questions(x, largest + 1)
    trees = [_tree(tree, float(scale), questions) for tree, scale in zip(inner["trees"], scales, strict=True)]
    start = _start(learner, count)
    if not trees:
        return x.rows(start)
    worth = leaf_values(questions.columns("beyond"), trees)
    if worth.ndim == 3:
        return worth.sum(1) + start
    spread = np.eye(count, dtype=np.float32)[np.asarray(inner["tree_info"])]
    return np.where(spread[None].astype(bool), worth[:, :, None], np.float32(0)).sum(1) + start


def _categories(learner: Mapping[str, Any]) -> Iterator[list[Any]]:
    """Those of a table that it was fitted with, of each column that had some."""
    for found in learner["gradient_booster"].get("model", {}).get("cats", {}).get("enc", ()):
        if "offsets" not in found:
            yield found["values"]
        elif found["values"]:
            letters, ends = bytes(found["values"]), found["offsets"]
            yield [letters[begin:end].decode() for begin, end in itertools.pairwise(ends)]


def _tree(tree: Mapping[str, Any], scale: float, questions: Questions) -> Tree:
    size = int(tree["tree_param"].get("size_leaf_vector", 1) or 1)
    feature = np.array(tree["split_indices"], int)
    threshold = np.array(tree["split_conditions"], np.float32).astype(float)
    worth = np.array(tree["split_conditions"], np.float32) * np.float32(scale)
    if size > 1:
        worth = np.array(tree["base_weights"], np.float32).reshape(-1, size) * np.float32(scale)
    missing = np.array(tree["default_left"], int)
    for node, begin, length in zip(
        tree["categories_nodes"], tree["categories_segments"], tree["categories_sizes"], strict=True
    ):
        right = tree["categories"][begin : begin + length]
        feature[node] = questions.ask_right(int(feature[node]), right, missing_left=bool(missing[node]))
        threshold[node] = 0.5
    left, right_child = (np.array(tree[f"{side}_children"], int) for side in ("left", "right"))
    return Tree(left, right_child, feature, threshold, worth, missing, less=True)


def _start(learner: Mapping[str, Any], count: int) -> Any:
    """The base score as a margin."""
    text = str(learner["learner_model_param"]["base_score"]).strip("[]")
    base = np.array([float(part) for part in text.split(",")], np.float64)
    objective = str(learner["objective"]["name"])
    if objective in ("binary:logistic", "reg:logistic"):
        base = np.log(base / (1 - base))
    elif objective in _EXP:
        base = np.log(base)
    if len(base) not in (1, count):
        raise ConversionError(f"a base_score of {len(base)} numbers for {count} outputs is not understood")
    return np.broadcast_to(base, (count,)).astype(np.float32)
