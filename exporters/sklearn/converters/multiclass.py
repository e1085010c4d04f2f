"""Several targets or classes, with an estimator for each."""

from __future__ import annotations

from typing import Any

import numpy as np

from entrepot.exporters.sklearn.blocks import chosen, two_columns, voted
from entrepot.exporters.sklearn.columns import as_float, each, matrix
from entrepot.exporters.sklearn.table import Results, converts, result, results


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
