"""Estimators made of others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from entrepot.exporters.sklearn.array import Symbolic, lifted
from entrepot.exporters.sklearn.blocks import by_sign, chosen, softmax, two_columns, voted
from entrepot.exporters.sklearn.columns import Columns, as_float, beside, each, matrix
from entrepot.exporters.sklearn.table import Results, converts, result, results


@converts("sklearn.Pipeline")
def pipeline(model: Any, x: Any) -> Results:
    """One step after the other."""
    *before, (name, last) = model.steps
    for step, transformer in before:
        with x.build.module(step):
            x = transformed(transformer, x)
    with x.build.module(name):
        return {"transform": x} if _passes(last) else results(last, x)


def transformed(model: Any, x: Any) -> Any:
    """What a transformer makes of a table."""
    return x if _passes(model) else result(model, x, "transform")


def _passes(model: Any) -> bool:
    return model is None or (isinstance(model, str) and model == "passthrough")


@converts("sklearn.FeatureUnion")
def union(model: Any, x: Any) -> Results:
    """Results of several transformers side by side."""
    parts = []
    weights = model.transformer_weights or {}
    for name, transformer in model.transformer_list:
        if isinstance(transformer, str) and transformer == "drop":
            continue
        with x.build.module(name):
            part = transformed(transformer, x)
            parts.append(matrix(part) * weights[name] if name in weights else part)
    return {"transform": beside(parts)}


@converts("sklearn.ColumnTransformer")
def column_transformer(model: Any, x: Any) -> Results:
    """Each transformer on its columns, results side by side."""
    parts = []
    for name, transformer, columns in model.transformers_:
        at = list(model._transformer_to_input_indices[name])
        if (isinstance(transformer, str) and transformer == "drop") or not at:
            continue
        taken = _picked(x, at, alone=isinstance(columns, str | int | np.integer))
        with x.build.module(name):
            parts.append(transformed(transformer, taken))
    return {"transform": beside(parts)}


def _picked(x: Any, at: Sequence[int], *, alone: bool) -> Any:
    """The columns at these places; one that was named by itself has no axis of columns, as text vectorisers want it."""
    if alone:
        return each(x)[at[0]]
    return x.pick(at) if isinstance(x, Columns) else x[:, at]


@converts("sklearn.BaseSearchCV")
def search(model: Any, x: Any) -> Results:
    """The best estimator that was found."""
    return results(model.best_estimator_, x)


@converts("sklearn.FrozenEstimator")
def frozen(model: Any, x: Any) -> Results:
    """What is inside."""
    return results(model.estimator, x)


@converts("sklearn.SelfTrainingClassifier")
def self_training(model: Any, x: Any) -> Results:
    """The classifier that was fitted last."""
    return results(model.estimator_, x)


@converts("sklearn.BaseThresholdClassifier")
def threshold(model: Any, x: Any) -> Results:
    """A classifier whose threshold is another."""
    found = dict(results(model.estimator_, x))
    fixed = getattr(model, "best_threshold_", getattr(model, "threshold", "auto"))
    methods = model._get_response_method() if hasattr(model, "_get_response_method") else model.response_method
    method = _response(model.estimator_, methods)
    positive = getattr(model, "_curve_scorer", model)
    label = positive._get_pos_label() if positive is not model else model.pos_label
    classes = model.estimator_.classes_
    at = 1 if label is None else int(np.flatnonzero(classes == label)[0])
    scores = found[method][:, at] if method == "predict_proba" else found[method] * (1 if at == 1 else -1)
    if isinstance(fixed, str):
        fixed = 0.5 if method == "predict_proba" else 0.0
    order = classes[[1 - at, at]]
    found["predict"] = chosen(order, (scores >= fixed).astype(np.int64))
    return found


def _response(model: Any, methods: Any) -> str:
    names = ["predict_proba", "decision_function"] if methods == "auto" else np.atleast_1d(methods)
    return next(str(name) for name in names if hasattr(model, name))


@converts("sklearn.TransformedTargetRegressor")
def transformed_target(model: Any, x: Any) -> Results:
    """A regressor whose target was transformed, and is transformed back."""
    from entrepot.exporters.sklearn.converters.inverses import inverse

    predicted = result(model.regressor_, x, "predict")
    table = predicted[:, None] if predicted.ndim == 1 else predicted
    back = inverse(model.transformer_, table)
    flat = model._training_dim == 1 and back.ndim == 2 and back.shape[1] == 1
    return {"predict": back[:, 0] if flat else back}


@converts("sklearn.VotingClassifier")
def voting_classifier(model: Any, x: Any) -> Results:
    """The class that most classifiers, or their probabilities, are for."""
    count, weights = len(model.classes_), model._weights_not_none
    if model.voting == "soft":
        stacked = np.stack([result(each_, x, "predict_proba") for each_ in model.estimators_], axis=0)
        mean = _average(stacked, weights)
        apart = stacked.transpose(1, 0, 2).reshape(-1, count * len(model.estimators_))
        return {
            "predict": voted(model.classes_, mean),
            "predict_proba": mean,
            "transform": apart if model.flatten_transform else stacked,
        }
    labels = np.stack([_code(result(each_, x, "predict"), each_.classes_) for each_ in model.estimators_], axis=1)
    share = np.ones(len(model.estimators_)) if weights is None else np.asarray(weights, float)
    ballots = ((labels[:, :, None] == np.arange(count)).astype(np.float64) * share[:, None]).sum(1)
    return {"predict": voted(model.classes_, ballots), "transform": labels}


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
    apart = np.stack([result(each_, x, "predict") for each_ in model.estimators_], axis=1)
    share = np.ones(len(model.estimators_)) if model.weights is None else np.asarray(model._weights_not_none, float)
    return {"predict": (apart * share).sum(1) / share.sum(), "transform": apart}


@converts("sklearn._BaseStacking")
def stacking(model: Any, x: Any) -> Results:
    """An estimator of what others say."""
    parts = []
    for each_, method in zip(model.estimators_, model.stack_method_, strict=True):
        found = result(each_, x, method)
        if isinstance(found, list):
            parts += [part[:, 1:] for part in found]
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


@converts("sklearn.MultiOutputRegressor")
def multi_regressor(model: Any, x: Any) -> Results:
    """A regressor for each target."""
    return {"predict": np.stack([result(part, x, "predict") for part in model.estimators_], axis=1)}


@converts("sklearn.MultiOutputClassifier")
def multi_classifier(model: Any, x: Any) -> Results:
    """A classifier for each target."""
    parts = [results(part, x) for part in model.estimators_]
    found: dict[str, Any] = {"predict": np.stack([part["predict"] for part in parts], axis=1)}
    if all("predict_proba" in part for part in parts):
        found["predict_proba"] = [part["predict_proba"] for part in parts]
    return found


@converts("sklearn._BaseChain")
def chain(model: Any, x: Any) -> Results:
    """Each target's estimator sees what those before it said."""
    said: list[Any] = []
    found: dict[str, list[Any]] = {}
    table, method = as_float(x), getattr(model, "chain_method_", "predict")
    for part in model.estimators_:
        seen = np.concatenate([table, *(one[:, None] for one in said)], axis=1)
        answers = results(part, seen)
        for name in ("predict", "predict_proba", "decision_function"):
            if name in answers and hasattr(part, name):
                found.setdefault(name, []).append(_positive(answers[name], name))
        said.append(_positive(answers[method], method).astype(np.float64))
    back = np.argsort(model.order_)
    return {
        name: np.stack([parts[at].astype(np.float64) for at in back], axis=1)
        for name, parts in found.items()
        if len(parts) == len(model.estimators_)
    }


def _positive(answer: Any, method: str) -> Any:
    return answer[:, 1] if method == "predict_proba" else answer


@converts("sklearn._ConstantPredictor")
def constant(model: Any, x: Any) -> Results:
    """What stands for a classifier where there was one class."""
    column, one = each(x)[0], model.y_[0]
    shares = np.array([1 - one, one], float)
    return {"predict": column.rows(one), "decision_function": column.rows(one), "predict_proba": column.rows(shares)}


@converts("sklearn.OneVsRestClassifier")
def one_versus_rest(model: Any, x: Any) -> Results:
    """The class whose classifier is most certain."""
    multilabel = model.label_binarizer_.y_type_.startswith("multilabel")
    parts = [results(part, x) for part in model.estimators_]
    methods = [
        "decision_function" if hasattr(part, "decision_function") else "predict_proba" for part in model.estimators_
    ]
    certain = [
        answers["decision_function"]
        if method in answers and method == "decision_function"
        else answers["predict_proba"][:, 1]
        for answers, method in zip(parts, methods, strict=True)
    ]
    found: dict[str, Any] = {}
    scores = np.stack(certain, axis=1) if len(certain) > 1 else certain[0]
    limits = [0.0 if method == "decision_function" else 0.5 for method in methods]
    if multilabel:
        found["predict"] = (np.stack(certain, axis=1) > np.array(limits)).astype(np.int64)
    elif scores.ndim == 1:
        found["predict"] = chosen(model.classes_, (scores > limits[0]).astype(np.int64))
    else:
        found["predict"] = voted(model.classes_, scores)
    if all("decision_function" in answers for answers in parts):
        found["decision_function"] = scores
    if all("predict_proba" in answers for answers in parts):
        shares = np.stack([answers["predict_proba"][:, 1] for answers in parts], axis=1)
        shares = two_columns(shares[:, 0]) if len(parts) == 1 else shares
        found["predict_proba"] = shares if multilabel else shares / shares.sum(1, keepdims=True)
    return found


@converts("sklearn.OneVsOneClassifier")
def one_versus_one(model: Any, x: Any) -> Results:
    """Votes of classifiers of two classes each."""
    from entrepot.exporters.sklearn.converters.kernels import one_versus_rest as combined

    table, count = matrix(x), model.n_classes_
    seen = [table] * len(model.estimators_)
    if model.pairwise_indices_ is not None:
        seen = [table[:, at] for at in model.pairwise_indices_]
    parts = [results(part, rows) for part, rows in zip(model.estimators_, seen, strict=True)]
    sure = [_certainty(part, answers) for part, answers in zip(model.estimators_, parts, strict=True)]
    second = np.stack([part["predict"].astype(np.float64) for part in parts], axis=1)
    scores = combined(np.stack(sure, axis=1).astype(np.float64), count, second)
    if count == 2:
        apart = scores[:, 1]
        limit = 0.0 if hasattr(model.estimators_[0], "decision_function") else 0.5
        return {"predict": chosen(model.classes_, (apart > limit).astype(np.int64)), "decision_function": apart}
    return {"predict": voted(model.classes_, scores), "decision_function": scores}


def _certainty(model: Any, answers: Results) -> Any:
    from sklearn.base import is_regressor

    if is_regressor(model):
        return answers["predict"]
    return answers["decision_function"] if hasattr(model, "decision_function") else answers["predict_proba"][:, 1]


@converts("sklearn.OutputCodeClassifier")
def output_code(model: Any, x: Any) -> Results:
    """The class whose code is nearest to what the classifiers say."""
    from entrepot.exporters.sklearn.blocks import squared_distances

    said = [_certainty(part, results(part, x)) for part in model.estimators_]
    away = squared_distances(np.stack(said, axis=1).astype(np.float64), model.code_book_)
    return {"predict": chosen(model.classes_, away.argmin(1))}
