"""Estimators that users' classes and functions hold, and ask about arrays of a graph."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from entrepot.exporters.sklearn.array import Array
from entrepot.exporters.sklearn.columns import Columns
from entrepot.exporters.sklearn.table import METHODS, result

_ASKED = (*METHODS, "predict_log_proba")


def is_fitted(value: Any) -> bool:
    """Whether it is an estimator that knows something."""
    if isinstance(value, type) or not isinstance(value, BaseEstimator):
        return False
    try:
        check_is_fitted(value)
    except NotFittedError:
        return False
    return True


def answering(value: Any) -> Any:
    """Estimators in a value, in lists and dictionaries as well, that write their formulas for arrays of a graph."""
    if isinstance(value, list | tuple) and type(value) in (list, tuple):
        return type(value)(map(answering, value))
    if type(value) is dict:
        return {key: answering(item) for key, item in value.items()}
    return _answering(value) if is_fitted(value) else value


def _answering(model: Any) -> Any:
    made = copy.copy(model)
    own = {name: _method(model, name) for name in _ASKED if hasattr(model, name)}
    made.__class__ = type(type(model).__name__, (type(model),), {**own, "__module__": type(model).__module__})
    return made


def _method(model: Any, name: str) -> Callable[..., Any]:
    """A method that asks the model itself about anything but arrays of a graph."""

    def method(self: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
        from entrepot.exporters.sklearn.tables import as_array

        x = as_array(x) if not isinstance(x, Columns) else x
        if not isinstance(x, Array | Columns):
            return getattr(model, name)(x, *args, **kwargs)
        if name == "predict_log_proba":
            return np.log(result(model, x, "predict_proba"))
        return result(model, x, name)

    return method
