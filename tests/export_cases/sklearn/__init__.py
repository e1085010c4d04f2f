"""Every estimator of scikit-learn in two configurations, pipelines, and the objects of XGBoost and LightGBM.

``estimators`` fits whatever ``all_estimators`` finds, ``settings`` says how those are made that need an argument or
have more to show, ``tables`` has pipelines over mixed data, ``frames`` what users write with data frames, ``boosters``
XGBoost and LightGBM.
"""

from __future__ import annotations

from tests.export_cases.sklearn import boosters, estimators, frames, tables
from tests.export_cases.sklearn.case import EstimatorCase


def catalogue() -> list[EstimatorCase]:
    """All cases, in the same order at every time."""
    return [*estimators.cases(), *tables.cases(), *frames.cases(), *boosters.cases()]
