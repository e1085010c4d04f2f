"""What is asked of scikit-learn and its like: how their objects are called, and what they raise."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

from entrepot.exporters.calls import MODEL_ERRORS
from entrepot.exporters.recognition import TABULAR
from entrepot.exporters.sklearn.table import METHODS
from entrepot.ir.errors import InputError


def framework_of(model: Any) -> str:
    """The library and its version."""
    name = next(
        (root for cls in type(model).__mro__ if (root := cls.__module__.partition(".")[0]) in TABULAR), "sklearn"
    )
    import sklearn

    library = sys.modules.get(name, sklearn)
    return f"{'scikit-learn' if name == 'sklearn' else name} {library.__version__}"


def makes_frames(model: Any) -> bool:
    """Whether what a transformer returns is a data frame, whatever it is given."""
    from sklearn import get_config

    own = getattr(model, "_sklearn_output_config", {}).get("transform", get_config()["transform_output"])
    return bool(own != "default")


def methods_of(model: Any, only: str = "") -> dict[str, tuple[str, Callable[[Any], Any]]]:
    """Names of outputs, each with the method that it comes from.

    Raises:
        InputError: There are none, or the estimator is not fitted.
    """
    if type(model).__name__ == "Booster":
        return _of_booster(model)
    _refuse_unfitted(model)
    found = {
        _output(model, method): (method, getattr(model, method))
        for method in METHODS
        if hasattr(model, method) and only in ("", method) and (type(model).__name__, method) not in _RANDOM
    }
    if not found:
        raise InputError(
            f"{type(model).__name__} says nothing about new data: it has none of {', '.join(METHODS)}",
            hint="fit an estimator that predicts or transforms, on its results for example",
        )
    return found


_RANDOM = {("BernoulliRBM", "score_samples")}
"""Methods that corrupt their input at random."""


def _refuse_unfitted(model: Any) -> None:
    from sklearn.exceptions import NotFittedError
    from sklearn.utils.validation import check_is_fitted

    try:
        check_is_fitted(model)
    except NotFittedError as error:
        raise InputError(f"this {type(model).__name__} is not fitted", hint="call fit with its data first") from error
    except TypeError as error:
        raise InputError(
            f"a {type(model).__name__} is not an estimator: it has no fit", hint="give a fitted estimator or pipeline"
        ) from error


def _of_booster(model: Any) -> dict[str, tuple[str, Callable[[Any], Any]]]:
    """Of XGBoost's or LightGBM's own object, which gives raw scores on request."""
    if type(model).__module__.startswith("xgboost"):
        import xgboost

        kinds = {"feature_types": model.feature_types, "enable_categorical": True} if model.feature_types else {}

        def matrix(x: Any) -> Any:
            return xgboost.DMatrix(x, feature_names=model.feature_names, **kinds)

        return {
            "prediction": ("predict", lambda x: model.predict(matrix(x))),
            "scores": ("decision_function", lambda x: model.predict(matrix(x), output_margin=True)),
        }
    return {
        "prediction": ("predict", model.predict),
        "scores": ("decision_function", lambda x: model.predict(x, raw_score=True)),
    }


def _output(model: Any, method: str) -> str:
    from sklearn.base import is_classifier, is_clusterer, is_outlier_detector

    names_a_class = is_classifier(model) or is_clusterer(model) or is_outlier_detector(model)
    return "prediction" if method == "predict" and not names_a_class else METHODS[method]


def names_of(model: Any) -> Sequence[str] | None:
    """The columns that it was fitted with, if they had names."""
    found = getattr(model, "feature_names_in_", None)
    return None if found is None else [str(name) for name in found]


def raised() -> tuple[type[Exception], ...]:
    """What estimators raise when they do not take their input."""
    own = (("lightgbm.basic", "LightGBMError"), ("catboost", "CatBoostError"))
    return (*MODEL_ERRORS, *(getattr(sys.modules[name], error) for name, error in own if name in sys.modules))
