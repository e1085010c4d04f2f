"""Several estimators that answer together: votes, means, stacks."""

from __future__ import annotations

from typing import Any

import numpy as np

from entrepot.exporters.sklearn.array import Symbolic, lifted
from entrepot.exporters.sklearn.blocks import by_sign, chosen, softmax, voted
from entrepot.exporters.sklearn.columns import beside, matrix
from entrepot.exporters.sklearn.table import Results, converts, result, results


@converts("sklearn.VotingClassifier")
def voting_classifier(model: Any, x: Any) -> Results:
    """The class that most classifiers, or their probabilities, are for."""
    count, weights = len(model.classes_), model._weights_not_none
    if model.voting == "soft":
        stacked = np.stack([_asked(x, *part, "predict_proba") for part in _members(model)], axis=0)
        mean = _average(stacked, weights)
        apart = stacked.transpose(1, 0, 2).reshape(-1, count * len(model.estimators_))
        return {
            "predict": voted(model.classes_, mean),
            "predict_proba": mean,
            "transform": apart if model.flatten_transform else stacked,
        }
    labels = np.stack([_code(_asked(x, *part, "predict"), part[1].classes_) for part in _members(model)], axis=1)
    share = np.ones(len(model.estimators_)) if weights is None else np.asarray(weights, float)
    ballots = ((labels[:, :, None] == np.arange(count)).astype(np.float64) * share[:, None]).sum(1)
    return {"predict": voted(model.classes_, ballots), "transform": labels}


def _members(model: Any) -> list[tuple[str, Any]]:
    """The fitted estimators, with the names that they have in it."""
    names = [name for name, each_ in model.named_estimators_.items() if not isinstance(each_, str)]
    return list(zip(names, model.estimators_, strict=True))


def _asked(x: Any, name: str, model: Any, method: str) -> Any:
    with x.build.module(name):
        return result(model, x, method)


def _code(labels: Symbolic, classes: Any) -> Symbolic:
    """Labels as positions among their classes."""
    from entrepot.exporters.sklearn.encoding import position

    return position(labels, classes)


def _average(stacked: Symbolic, weights: Any) -> Symbolic:
    if weights is None:
        return stacked.mean(0)
    share = np.asarray(weights, float)
    return (stacked * (share / share.sum()).reshape(-1, *[1] * (stacked.ndim - 1))).sum(0)


@converts("sklearn.VotingRegressor")
def voting_regressor(model: Any, x: Any) -> Results:
    """The mean of regressors."""
    apart = np.stack([_asked(x, *part, "predict") for part in _members(model)], axis=1)
    share = np.ones(len(model.estimators_)) if model.weights is None else np.asarray(model._weights_not_none, float)
    return {"predict": (apart * share).sum(1) / share.sum(), "transform": apart}


@converts("sklearn._BaseStacking")
def stacking(model: Any, x: Any) -> Results:
    """An estimator of what others say."""
    parts = []
    for part, method in zip(_members(model), model.stack_method_, strict=True):
        found = _asked(x, *part, method)
        if isinstance(found, list):
            parts += [share[:, 1:] for share in found]
        elif found.ndim == 1:
            parts.append(found[:, None])
        elif method == "predict_proba" and len(getattr(model, "classes_", ())) == 2:
            parts.append(found[:, 1:])
        else:
            parts.append(found)
    meta = beside([*parts, x] if model.passthrough else parts)
    found = dict(results(model.final_estimator_, meta))
    encoder = getattr(model, "_label_encoder", None)
    if isinstance(encoder, list):
        found["predict"] = np.stack([chosen(e.classes_, found["predict"][:, at]) for at, e in enumerate(encoder)], 1)
        found["predict_proba"] = np.stack([part[:, 0] for part in found["predict_proba"]], axis=1)
    elif encoder is not None:
        found["predict"] = chosen(encoder.classes_, found["predict"])
    return {**found, "transform": meta}


@converts("sklearn.BaggingRegressor")
def bagging_regressor(model: Any, x: Any) -> Results:
    """The mean of regressors, each of some columns."""
    return {"predict": sum(result(*part, "predict") for part in _bags(model, x)) / len(model.estimators_)}


@converts("sklearn.BaggingClassifier")
def bagging_classifier(model: Any, x: Any) -> Results:
    """The mean of probabilities, or votes; each classifier looks at some columns."""
    found: dict[str, Any] = {}
    if hasattr(model.estimator_, "predict_proba"):
        total: Any = 0.0
        for part, columns in _bags(model, x):
            shares = result(part, columns, "predict_proba")
            full = np.zeros((len(part.classes_), model.n_classes_))
            full[np.arange(len(part.classes_)), np.asarray(part.classes_, int)] = 1
            total = total + (shares if len(part.classes_) == model.n_classes_ else shares @ full)
        found["predict_proba"] = total / len(model.estimators_)
    else:
        votes = [result(*part, "predict").astype(np.int64)[:, None] for part in _bags(model, x)]
        found["predict_proba"] = sum((vote == np.arange(model.n_classes_)).astype(np.float64) for vote in votes)
        found["predict_proba"] = found["predict_proba"] / len(votes)
    if hasattr(model.estimator_, "decision_function"):
        scores = [result(*part, "decision_function") for part in _bags(model, x)]
        found["decision_function"] = sum(scores) / len(scores)
    return {**found, "predict": voted(model.classes_, found["predict_proba"])}


def _bags(model: Any, x: Any) -> list[tuple[Any, Any]]:
    table = matrix(x)
    return [
        (part, table if len(at) == table.shape[1] and (np.asarray(at) == np.arange(len(at))).all() else table[:, at])
        for part, at in zip(model.estimators_, model.estimators_features_, strict=True)
    ]


@converts("sklearn.AdaBoostClassifier")
def ada_boost(model: Any, x: Any) -> Results:
    """Weighted votes."""
    count, known = model.n_classes_, model.classes_
    total: Any = 0.0
    for weight, part in zip(model.estimator_weights_, model.estimators_, strict=False):
        agrees = _code(result(part, x, "predict"), known)[:, None] == np.arange(count)
        total = total + np.where(agrees, float(weight), -1 / (count - 1) * float(weight))
    norm = float(np.sum(model.estimator_weights_[: len(model.estimators_)]))
    scores = total / norm
    if count == 2:
        apart = scores[:, 1] - scores[:, 0]
        both = np.stack([-apart, apart], axis=1) / 2
        return {"predict": by_sign(known, apart), "decision_function": apart, "predict_proba": softmax(both)}
    shares = softmax(scores / (count - 1))
    return {"predict": voted(known, scores), "decision_function": scores, "predict_proba": shares}


@converts("sklearn.AdaBoostRegressor")
def ada_boost_regressor(model: Any, x: Any) -> Results:
    """The weighted median of regressors."""
    from entrepot.exporters.sklearn.functions import along, top

    apart: Any = np.stack([result(part, x, "predict") for part in model.estimators_], axis=1)
    ordered, places = top(apart, len(model.estimators_), 1, largest=False)
    grown = lifted(x.build, model.estimator_weights_[: len(model.estimators_)]).take(places, 0)
    grown = grown.op("CumSum", np.array(1, np.int64))
    reached = grown >= 0.5 * grown[:, -1:]
    return {"predict": along(ordered, reached.astype(np.int64).argmax(1)[:, None], 1)[:, 0]}
