"""Estimators that look at nothing."""

from __future__ import annotations

from typing import Any

import numpy as np

from entrepot.exporters.sklearn.columns import each
from entrepot.exporters.sklearn.table import Results, converts
from entrepot.ir.errors import ConversionError


@converts("sklearn.DummyRegressor")
def dummy_regressor(model: Any, x: Any) -> Results:
    """A constant."""
    constant = model.constant_[0]
    return {"predict": each(x)[0].rows(constant[0] if model.n_outputs_ == 1 else constant)}


@converts("sklearn.DummyClassifier")
def dummy_classifier(model: Any, x: Any) -> Results:
    """A constant class with constant probabilities."""
    if model.n_outputs_ > 1:
        raise ConversionError("a DummyClassifier of several outputs cannot be written", hint="fit one for each output")
    if model._strategy in ("stratified", "uniform"):
        raise ConversionError(
            f"a DummyClassifier with strategy='{model._strategy}' draws its answers", hint="use 'prior' or a constant"
        )
    column = each(x)[0]
    best = int(np.argmax(model.class_prior_))
    if model._strategy == "constant":
        best = int(np.flatnonzero(model.classes_ == model.constant)[0])
    certain = np.eye(len(model.classes_))[best]
    shares = model.class_prior_ if model._strategy == "prior" else certain
    return {"predict": column.rows(model.classes_[best]), "predict_proba": column.rows(shares)}
