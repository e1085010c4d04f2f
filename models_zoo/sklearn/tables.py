"""Pipelines over tables."""

from __future__ import annotations

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_diabetes, load_digits, load_wine
from sklearn.decomposition import PCA
from sklearn.ensemble import IsolationForest, RandomForestRegressor, StackingRegressor
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC

from entrepot.models_zoo.registry import Built


def churn(*, customers: int = 200) -> Built:
    """Will a customer leave: age and spending, which may be missing, plan and region, which are words."""
    rng = np.random.default_rng(0)
    numbers = rng.normal((40, 90), (12, 30), (customers, 2))
    leaves = (numbers[:, 1] + 20 * rng.normal(size=customers)) < 80
    numbers[rng.random(numbers.shape) < 0.1] = np.nan
    words = np.stack([rng.choice(["basic", "plus", "pro"], customers), rng.choice(["north", "south"], customers)], 1)
    rows = np.hstack([numbers.astype(object), words.astype(object)])
    scaled = make_pipeline(SimpleImputer(strategy="median"), StandardScaler())
    table = ColumnTransformer([("numbers", scaled, [0, 1]), ("words", OneHotEncoder(handle_unknown="ignore"), [2, 3])])
    model = make_pipeline(table, LogisticRegression()).fit(rows, np.where(leaves, "leaves", "stays"))
    return Built(model, ((rows[:1],), (rows[:6],)), frozenset({"x0.0", "x1.0", "x2.0", "x3.0"}))


def digits_svm(*, rows: int = 300) -> Built:
    """Which digit is in a picture of 8 by 8."""
    x, y = load_digits(return_X_y=True)
    model = make_pipeline(PCA(20, random_state=0), SVC(gamma="scale")).fit(x[:rows], y[:rows])
    return Built(model, ((x[-1:],), (x[-6:],)), frozenset({"X.0"}))


def stacked_regressors(*, trees: int = 10) -> Built:
    """How a disease goes on, by two regressors and a third that weighs them."""
    x, y = load_diabetes(return_X_y=True)
    forest = RandomForestRegressor(trees, max_depth=6, random_state=0)
    model = StackingRegressor([("ridge", RidgeCV()), ("forest", forest)], cv=3).fit(x, y)
    return Built(model, ((x[:1],), (x[:6],)), frozenset({"X.0"}))


def outliers(*, trees: int = 20) -> Built:
    """Which wines are unlike the others."""
    x, _ = load_wine(return_X_y=True)
    model = make_pipeline(StandardScaler(), IsolationForest(n_estimators=trees, random_state=0)).fit(x)
    return Built(model, ((x[:1],), (x[:6],)), frozenset({"X.0"}))
