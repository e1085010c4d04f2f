"""Multilayer perceptrons."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from entrepot.exporters.sklearn.blocks import chosen, sigmoid, softmax, two_columns, voted
from entrepot.exporters.sklearn.columns import as_float
from entrepot.exporters.sklearn.table import Results, converts

_ACTIVATIONS: dict[str, Callable[[Any], Any]] = {
    "identity": lambda x: x,
    "relu": lambda x: np.maximum(x, 0.0),
    "tanh": np.tanh,
    "logistic": sigmoid,
    "softmax": softmax,
    "exp": np.exp,
}


def _forward(model: Any, x: Any) -> Any:
    x = as_float(x)
    layers = list(zip(model.coefs_, model.intercepts_, strict=True))
    for at, (weight, bias) in enumerate(layers):
        x = x @ weight + bias
        x = _ACTIVATIONS[model.out_activation_ if at == len(layers) - 1 else model.activation](x)
    return x


@converts("sklearn.MLPRegressor")
def regressor(model: Any, x: Any) -> Results:
    """Layers."""
    found = _forward(model, x)
    return {"predict": found[:, 0] if found.shape[1] == 1 else found}


@converts("sklearn.MLPClassifier")
def classifier(model: Any, x: Any) -> Results:
    """Layers, and the class that the last is for."""
    found = _forward(model, x)
    if model._label_binarizer.y_type_.startswith("multilabel"):
        return {"predict": (found > 0.5).astype(np.int64), "predict_proba": found}
    if model.n_outputs_ == 1:
        positive = found[:, 0]
        labels = chosen(model.classes_, (positive > 0.5).astype(np.int64))
        return {"predict": labels, "predict_proba": two_columns(positive)}
    return {"predict": voted(model.classes_, found), "predict_proba": found}
