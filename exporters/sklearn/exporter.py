"""scikit-learn: estimators, pipelines, and the objects of XGBoost and LightGBM."""

from __future__ import annotations

from typing import Any

import sklearn  # noqa: F401 - so that its absence is noticed here

from entrepot.exporters.exporter import Exporter
from entrepot.exporters.recognition import Found, is_sklearn
from entrepot.exporters.sklearn.source import EstimatorSource


class SklearnExporter(Exporter):
    """Opens fitted estimators, and single methods of them."""

    name = "sklearn"

    def recognises(self, found: Found) -> bool:
        """By the classes of an object."""
        return is_sklearn(found)

    def open(self, obj: Any, sample: Any) -> EstimatorSource:
        """The source for an estimator, or for one of its methods."""
        owner = getattr(obj, "__self__", None)
        return EstimatorSource(obj, sample) if owner is None else EstimatorSource(owner, sample, only=obj.__name__)


EXPORTER = SklearnExporter()
