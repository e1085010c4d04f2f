"""Boosted trees."""

from __future__ import annotations

import numpy as np
from sklearn.datasets import load_wine
from sklearn.ensemble import HistGradientBoostingClassifier

from entrepot.models_zoo.registry import Built


def xgboost_classifier(*, rounds: int = 10) -> Built:
    """Three kinds of wine, where some measurements are missing."""
    from xgboost import XGBClassifier

    x, y = load_wine(return_X_y=True)
    x = np.where(np.random.default_rng(0).random(x.shape) < 0.1, np.nan, x).astype(np.float32)
    model = XGBClassifier(n_estimators=rounds, max_depth=3, n_jobs=1).fit(x, y)
    return Built(model, ((x[:1],), (x[:6],)), frozenset({"X.0"}))


def lightgbm_categories(*, rounds: int = 10) -> Built:
    """A price, by two numbers and a quarter of the town."""
    from lightgbm import LGBMRegressor

    x, quarter = _houses()
    price = x[:, 0] * 2 + np.isin(quarter, (1, 4, 5)) * 40 + x[:, 1]
    model = LGBMRegressor(n_estimators=rounds, n_jobs=1, verbose=-1, min_data_per_group=5)
    return Built(model.fit(x, price, categorical_feature=[2]), ((x[:1],), (x[:6],)), frozenset({"X.0"}))


def histogram_boosting(*, rounds: int = 10) -> Built:
    """Whether a house is sold, by the same."""
    x, quarter = _houses()
    x[::9, 0] = np.nan
    model = HistGradientBoostingClassifier(max_iter=rounds, categorical_features=[2], random_state=0)
    return Built(model.fit(x, np.isin(quarter, (2, 3)) | (x[:, 1] > 60)), ((x[:1],), (x[:6],)), frozenset({"X.0"}))


def _houses() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(1)
    quarter = rng.integers(0, 7, 240)
    return np.column_stack([rng.normal(100, 30, 240), rng.normal(50, 10, 240), quarter]), quarter
