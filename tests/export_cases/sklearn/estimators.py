"""Everything that ``all_estimators`` finds, fitted to data that it takes."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.base import is_classifier, is_outlier_detector, is_regressor
from sklearn.experimental import enable_iterative_imputer  # noqa: F401 - which is how scikit-learn shows it
from sklearn.utils import all_estimators

from tests.export_cases.sklearn import data
from tests.export_cases.sklearn import settings as given
from tests.export_cases.sklearn.case import EstimatorCase, case

METHODS = ("predict", "predict_proba", "decision_function", "transform", "score_samples")


def cases() -> list[EstimatorCase]:
    """Two of each class that says something about new data."""
    return list(_found())


def _found() -> Iterator[EstimatorCase]:
    for name, cls in all_estimators():
        if name in given.NO_OUTPUT or not any(hasattr(cls, method) for method in METHODS):
            continue
        home = cls.__module__.split(".")[1]
        arguments = given.SETTINGS.get(name, [{}])
        for at, dtype in enumerate((np.float64, np.float32)):
            if arguments:
                chosen = arguments[min(at, len(arguments) - 1)]
                kind = np.float64 if len(arguments) > 1 else dtype
                yield case(f"{home}/{name}_{at}", functools.partial(_fitted, name, cls, chosen, kind, at))


def _fitted(name: str, cls: Any, arguments: dict[str, Any], dtype: Any, at: int) -> tuple[Any, Any]:
    model = cls(**arguments)
    if "random_state" in model.get_params():
        model.set_params(random_state=0)
    x = _data(name, dtype)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        y = _target(name, model, at)
        model.fit(*((y,) if name in ("LabelBinarizer", "LabelEncoder") else (x, y)))
    if name in ("LabelBinarizer", "LabelEncoder"):
        return model, y
    # distances of 0 are what cancellation leaves of them, in scikit-learn as here
    return model, x + dtype(0.01) if cls.__module__.startswith("sklearn.cluster") else x


def _data(name: str, dtype: Any) -> Any:
    if name in given.WORDS:
        return data.words()
    if name in given.TEXTS:
        return data.sentences()
    if name in given.GAPS:
        return data.gaps(dtype)
    if name in given.COUNTS:
        return data.counts().astype(float)
    if name == "IsotonicRegression":
        return data.numbers(dtype)[:, 0]
    if name == "KernelCenterer":
        x = data.numbers(dtype)
        return x @ x.T
    return data.positive(dtype) if name in given.POSITIVE else data.numbers(dtype)


def _target(name: str, model: Any, at: int) -> Any:
    if name in given.LABELS:
        return data.labels()
    if name in given.TARGETS:
        return data.targets()
    if name in given.BINARY:
        return data.classes(2)
    if name in ("LabelPropagation", "LabelSpreading", "SelfTrainingClassifier"):
        return np.where(np.arange(data.ROWS) % 4 == 1, -1, data.classes())
    if is_classifier(model) or name in ("LabelBinarizer", "LabelEncoder"):
        return data.names() if at else data.classes()
    if is_regressor(model) or name == "TargetEncoder":
        return data.target()
    if is_outlier_detector(model):
        return None
    return data.classes()
