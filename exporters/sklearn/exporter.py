"""scikit-learn: estimators, pipelines, and the objects and files of boosters."""

from __future__ import annotations

import os
from typing import Any

import sklearn  # noqa: F401 - so that its absence is noticed here

from entrepot.exporters.exporter import Exporter
from entrepot.exporters.recognition import Found, is_sklearn
from entrepot.exporters.sklearn.files import read
from entrepot.exporters.sklearn.source import EstimatorSource


class SklearnExporter(Exporter):
    """Opens fitted estimators, and single methods of them."""

    name = "sklearn"

    def recognises(self, found: Found) -> bool:
        """By the classes of an object, or by what a file contains."""
        return is_sklearn(found)

    def open(self, obj: Any, sample: Any) -> EstimatorSource:
        """The source for an estimator, for one of its methods, or for the file of a booster."""
        if isinstance(obj, str | os.PathLike):
            obj = read(obj)
        owner = getattr(obj, "__self__", None)
        return EstimatorSource(obj, sample) if owner is None else EstimatorSource(owner, sample, only=obj.__name__)


EXPORTER = SklearnExporter()
