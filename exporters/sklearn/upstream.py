"""What is asked of scikit-learn and its like: how their objects are called, and what they raise."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

from entrepot.exporters.sklearn.table import METHODS
from entrepot.ir.errors import InputError

_REFUSALS = (ValueError, TypeError, IndexError, KeyError, AttributeError, ArithmeticError, NotImplementedError)


def framework_of(model: Any) -> str:
    """The library and its version."""
    name = next(
        (root for cls in type(model).__mro__ if (root := cls.__module__.partition(".")[0]) in _LIBRARIES), "sklearn"
    )
    import sklearn

    library = sys.modules.get(name, sklearn)
    return f"{_LIBRARIES[name]} {library.__version__}"


_LIBRARIES = {"sklearn": "scikit-learn", "xgboost": "xgboost", "lightgbm": "lightgbm"}


def methods_of(model: Any, only: str = "") -> dict[str, tuple[str, Callable[[Any], Any]]]:
    """Names of outputs, each with the method that it comes from.

    Raises:
        InputError: There are none, or the estimator is not fitted.
    """
    from sklearn.exceptions import NotFittedError
    from sklearn.utils.validation import check_is_fitted

    try:
        check_is_fitted(model)
    except NotFittedError as error:
        raise InputError(f"this {type(model).__name__} is not fitted", hint="call fit with its data first") from error
    except TypeError as error:
        raise InputError(f"a {type(model).__name__} is not an estimator: it has no fit") from error
    found = {
        _output(model, method): (method, getattr(model, method))
        for method in METHODS
        if hasattr(model, method) and only in ("", method)
    }
    if not found:
        raise InputError(
            f"{type(model).__name__} says nothing about new data: it has none of {', '.join(METHODS)}",
            hint="fit an estimator that predicts or transforms, on its results for example",
        )
    return found


def _output(model: Any, method: str) -> str:
    from sklearn.base import is_regressor

    return "prediction" if method == "predict" and is_regressor(model) else METHODS[method]


def names_of(model: Any) -> Sequence[str] | None:
    """The columns that it was fitted with, if they had names."""
    found = getattr(model, "feature_names_in_", None)
    return None if found is None else [str(name) for name in found]


def raised_by(model: Any) -> tuple[type[BaseException], ...]:
    """What it raises when it does not take its input."""
    lightgbm = sys.modules.get("lightgbm")
    return _REFUSALS if lightgbm is None else (*_REFUSALS, lightgbm.basic.LightGBMError)
