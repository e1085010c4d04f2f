"""Estimators around others: pipelines, unions, searches, thresholds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from entrepot.exporters.sklearn.blocks import chosen
from entrepot.exporters.sklearn.columns import Columns, beside, each, matrix
from entrepot.exporters.sklearn.table import Results, converts, result, results
from entrepot.exporters.sklearn.upstream import makes_frames


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
    return x if _passes(model) else named(model, result(model, x, "transform"))


def named(model: Any, found: Any) -> Any:
    """The columns of a result by name, where a transformer makes data frames: ``set_output(transform="pandas")``."""
    if not makes_frames(model) or not hasattr(model, "get_feature_names_out"):
        return found
    names, arrays = list(model.get_feature_names_out()), each(found)
    return Columns(names, arrays) if len(names) == len(arrays) else found


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
    parts, weights = [], model.transformer_weights or {}
    for name, transformer, columns in model.transformers_:
        at = list(model._transformer_to_input_indices[name])
        if (isinstance(transformer, str) and transformer == "drop") or not at:
            continue
        taken = _picked(x, at, alone=isinstance(columns, str | int | np.integer))
        with x.build.module(name):
            part = transformed(transformer, taken)
            parts.append(matrix(part) * weights[name] if name in weights else part)
    return {"transform": beside(parts)}


def _picked(x: Any, at: Sequence[int], *, alone: bool) -> Any:
    """The columns at these places; one that was named by itself has no axis of columns, as text vectorisers want it."""
    if alone:
        found = each(x)[at[0]]
        found.column = x.names[at[0]] if isinstance(x, Columns) else None
        return found
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
