"""What cannot be exported is told in one clear error."""

from __future__ import annotations

import joblib
import numpy as np
import pytest
import xgboost
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.cluster import DBSCAN
from sklearn.datasets import load_iris
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.utils.validation import check_array

import entrepot as ep
from entrepot.exporters.sklearn.registration import REGISTERED

X, Y = load_iris(return_X_y=True)
MODEL = LogisticRegression(max_iter=500).fit(X, Y)
TEXTS = ["one two", "two three"]


class Sorted(TransformerMixin, BaseEstimator):
    def fit(self, X, y=None):
        self.mean_ = X.mean(0)
        return self

    def transform(self, X):
        return np.array([sorted(row) for row in check_array(X)])


REFUSED = {
    "unfitted": (LogisticRegression(), X, "not fitted"),
    "unfitted pipeline": (make_pipeline(StandardScaler(), Ridge()), X, "not fitted"),
    "unfitted booster": (xgboost.XGBClassifier(), X, "not fitted"),
    "other columns": (MODEL, X[:, :3], "3 features"),
    "sparse": (MODEL, sparse.csr_array(X), "sparse"),
    "no sample": (MODEL, None, "needs a sample"),
    "a target as well": (MODEL, (X, Y), "one argument"),
    "missing values": (MODEL, X * np.nan, "NaN"),
    "rows of two lengths": (MODEL, [[1.0, 2.0, 3.0, 4.0], [5.0]], "no table"),
    "one axis": (MODEL, X[0], "2D array"),
    "text for numbers": (MODEL, X.astype(str), "text"),
    "objects": (MODEL, np.array([[1.0, None, {}, 2.0]], object), "no type"),
    "nothing about new data": (DBSCAN().fit(X), X, "says nothing about new data"),
    "no estimator": (KFold(), X, "not an estimator"),
    "a class": (LogisticRegression, X, "is a class"),
    "a matrix of XGBoost": (MODEL, xgboost.DMatrix(X), "DMatrix"),
    "hashes": (HashingVectorizer(n_features=8).fit(TEXTS), TEXTS, "hashes text"),
    "a function": (CountVectorizer(analyzer=str.splitlines).fit(TEXTS), TEXTS, "with analyzer=splitlines cannot"),
    "characters": (CountVectorizer(analyzer="char").fit(TEXTS), TEXTS, "analyzer='char'"),
    "a tokenizer": (CountVectorizer(tokenizer=str.splitlines, token_pattern=None).fit(TEXTS), TEXTS, "tokenizer"),
    "a class of a user": (Sorted().fit(X), X, "NumPy"),
    "a function of a user": (FunctionTransformer(lambda x: np.linalg.svd(x)[0]).fit(X), X, "cannot be followed"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_exported_is_refused_with_the_reason(name):
    model, sample, reason = REFUSED[name]
    with pytest.raises(ep.EntrepotError, match=reason) as caught:
        ep.export(model, sample)
    assert caught.value.hint or "features" in str(caught.value) or "take the sample" in str(caught.value)


@pytest.mark.parametrize("compress", [0, 3])
def test_a_pickle_is_never_loaded(compress, tmp_path):
    path = tmp_path / "model.joblib"
    joblib.dump(MODEL, path, compress=compress)
    with pytest.raises(ep.InputError, match=r"pickle.*load it yourself"):
        ep.export(path, X)


def test_a_registered_formula_takes_the_place_of_what_cannot_be_followed():
    @ep.register_converter(Sorted)
    def ordered(estimator, x):
        return {"transform": np.sort(x, axis=1)}

    try:
        assert ep.export(Sorted().fit(X), X[:6]).report.ok
    finally:
        del REGISTERED[Sorted]


def test_a_wrong_formula_is_found_out():
    @ep.register_converter(Sorted)
    def unordered(estimator, x):
        return {"transform": x}

    try:
        with pytest.raises(ep.VerificationError):
            ep.export(Sorted().fit(X), X[:6])
    finally:
        del REGISTERED[Sorted]


def test_only_classes_and_functions_have_converters():
    with pytest.raises(ep.InputError):
        ep.register_converter("Ridge")


class UnfitError(Exception):
    """As libraries have it: neither a ValueError nor a TypeError."""


class Doubled(TransformerMixin, BaseEstimator):
    def __init__(self, refuses=()):
        self.refuses = refuses

    def fit(self, X, y=None):
        self.fitted_ = True
        return self

    def transform(self, X):
        if type(X).__name__ in self.refuses or X.shape[0] in self.refuses:
            raise UnfitError("not this")
        return X * 2


@pytest.mark.parametrize(
    ("model", "error"),
    [
        (Doubled(["ndarray"]), ep.InputError),
        (Doubled(["Array"]), ep.ConversionError),
        (FunctionTransformer(lambda x: next(iter(()))), ep.InputError),
    ],
)
def test_errors_of_any_kind_are_refusals_that_name_the_line(model, error):
    with pytest.raises(error, match=r"(UnfitError: not this|StopIteration: ), at test_refusals.py:\d+ in "):
        ep.export(model.fit(X) if isinstance(model, Doubled) else model, X, progress=False)


def test_an_error_at_one_number_of_rows_is_no_error_of_the_export():
    assert ep.export(Doubled([1]).fit(X), X, progress=False).report.ok
