"""Pipelines over data whose columns are of different kinds, and over text."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestRegressor, StackingRegressor
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.feature_selection import SelectKBest
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge, SGDClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import MultinomialNB
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    KBinsDiscretizer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    StandardScaler,
    TargetEncoder,
)
from sklearn.svm import SVC
from sklearn.utils import check_array
from sklearn.utils.validation import validate_data

from tests.export_cases.sklearn import data
from tests.export_cases.sklearn.case import EstimatorCase, case


def cases() -> list[EstimatorCase]:
    """All of them."""
    return [case(f"tables/{make.__name__}", make) for make in _MAKERS]


def mixed() -> np.ndarray:
    """Two columns of words between columns of numbers, whole and not."""
    words, numbers, counts = data.words().astype(object), data.numbers().astype(object), data.counts().astype(object)
    return np.stack([numbers[:, 0], words[:, 0], counts[:, 1], words[:, 1], numbers[:, 2]], 1)


NUMBERS, WORDS = [0, 2, 4], [1, 3]


def encoded_and_scaled() -> tuple[Any, Any]:
    parts = [("numbers", StandardScaler(), NUMBERS), ("words", OneHotEncoder(handle_unknown="ignore"), WORDS)]
    x = mixed()
    return make_pipeline(ColumnTransformer(parts), LogisticRegression()).fit(x, data.names()), x


def imputed_first() -> tuple[Any, Any]:
    x = mixed()
    x[::7, 0] = np.nan
    numbers = make_pipeline(SimpleImputer(add_indicator=True), StandardScaler())
    parts = [("numbers", numbers, NUMBERS), ("words", OrdinalEncoder(), WORDS)]
    return make_pipeline(ColumnTransformer(parts), Ridge()).fit(x, data.target()), x


def categories_for_boosting() -> tuple[Any, Any]:
    x = mixed()
    parts = [("words", OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1), WORDS)]
    table = ColumnTransformer(parts, remainder="passthrough")
    model = HistGradientBoostingClassifier(max_iter=5, categorical_features=[0, 1], random_state=0)
    return make_pipeline(table, model).fit(x, data.classes()), x


def rare_words() -> tuple[Any, Any]:
    x = data.words()
    encoder = OneHotEncoder(min_frequency=25, handle_unknown="infrequent_if_exist", sparse_output=False)
    return make_pipeline(encoder, SVC(probability=True, random_state=0)).fit(x, data.classes()), x


def words_by_target() -> tuple[Any, Any]:
    x = data.words()
    return make_pipeline(TargetEncoder(random_state=0), Ridge()).fit(x, data.target()), x


def union_of_bins_and_products() -> tuple[Any, Any]:
    x = data.numbers(np.float32)
    union = FeatureUnion([("bins", KBinsDiscretizer(3)), ("products", make_pipeline(PCA(2), PolynomialFeatures()))])
    return Pipeline([("union", union), ("best", SelectKBest(k=8)), ("model", LogisticRegression())]).fit(
        x, data.classes()
    ), x


def function_of_a_user() -> tuple[Any, Any]:
    x = data.numbers()

    def ratios(table: Any) -> Any:
        clipped = np.clip(table, -2, 2)
        return np.column_stack([clipped, np.where(table[:, 0] > 0, table[:, 1], -table[:, 1]), table.mean(axis=1)])

    return make_pipeline(FunctionTransformer(ratios), Ridge()).fit(x, data.target()), x


def stacked_in_a_search() -> tuple[Any, Any]:
    x = data.numbers()
    stack = StackingRegressor([("ridge", Ridge()), ("forest", RandomForestRegressor(4, random_state=0))], cv=3)
    search = GridSearchCV(
        make_pipeline(StandardScaler(), stack), {"stackingregressor__passthrough": [True, False]}, cv=2
    )
    return search.fit(x, data.target()), x


def whole_numbers() -> tuple[Any, Any]:
    x = data.counts()
    return make_pipeline(OneHotEncoder(), LogisticRegression()).fit(x, data.classes()), x


def single_precision() -> tuple[Any, Any]:
    x = data.numbers(np.float32)
    return make_pipeline(StandardScaler(), PCA(3), LogisticRegression()).fit(x, data.classes()), x


def chosen_by_type() -> tuple[Any, Any]:
    x = data.gaps()
    parts = [("all", SimpleImputer(), slice(0, 3)), ("last", "passthrough", [-1]), ("none", "drop", [3])]
    return ColumnTransformer(parts).fit(x), x


def words_counted() -> tuple[Any, Any]:
    x = data.sentences()
    return make_pipeline(CountVectorizer(), MultinomialNB()).fit(x, data.classes()), x


def words_weighed() -> tuple[Any, Any]:
    x = data.sentences()
    vectoriser = TfidfVectorizer(ngram_range=(1, 2), min_df=2, sublinear_tf=True)
    return make_pipeline(vectoriser, SGDClassifier(loss="log_loss", random_state=0)).fit(x, data.names()), x


def topics_of_text() -> tuple[Any, Any]:
    x = data.sentences()
    return make_pipeline(TfidfVectorizer(stop_words=["the", "it"]), TruncatedSVD(3, random_state=0)).fit(x), x


def text_beside_numbers() -> tuple[Any, Any]:
    x = np.stack([data.sentences(), data.numbers()[:, 0].astype(object)], 1)
    parts = [("text", CountVectorizer(lowercase=False), 0), ("numbers", StandardScaler(), [1])]
    return make_pipeline(ColumnTransformer(parts), LogisticRegression()).fit(x, data.classes()), x


class Winsorised(TransformerMixin, BaseEstimator):
    """A class of a user: between quantiles, logarithms of some columns, and which elements were moved."""

    def fit(self, x: Any, y: Any = None) -> Winsorised:
        x = validate_data(self, x)
        self.low_, self.high_ = np.quantile(x, [0.1, 0.9], axis=0)
        return self

    def transform(self, x: Any) -> Any:
        x = np.array(validate_data(self, x, reset=False), dtype=float)
        inside = np.clip(x, self.low_, self.high_)
        moved = np.logical_not(np.isclose(inside, x)).sum(axis=1, keepdims=True)
        for column in (0, 2):
            inside[:, column] = _signed_log(inside[:, column])
        inside[inside < -1.5] = -1.5
        inside[inside[:, 1] > 0, 3] = 0.0
        return np.hstack([inside, moved.astype(x.dtype), np.atleast_2d(x).std(axis=1)[:, None]])


def _signed_log(x: Any) -> Any:
    return np.sign(x) * np.log1p(np.abs(np.asarray(x)))


class Nearest(ClassifierMixin, BaseEstimator):
    """A class of a user: the class whose mean is nearest."""

    def fit(self, x: Any, y: Any) -> Nearest:
        x = check_array(x)
        self.classes_ = np.unique(y)
        self.means_ = np.array([x[y == each].mean(0) for each in self.classes_])
        return self

    def decision_function(self, x: Any) -> Any:
        x = check_array(x)
        return -((x[:, None, :] - self.means_[None]) ** 2).sum(-1)

    def predict(self, x: Any) -> Any:
        return self.classes_[np.argmax(self.decision_function(x), axis=1)]


def classes_of_a_user() -> tuple[Any, Any]:
    x = data.numbers()
    return make_pipeline(Winsorised(), Nearest()).fit(x, data.names()), x


def classes_of_a_user_in_a_union() -> tuple[Any, Any]:
    x = data.numbers()
    parts = FeatureUnion([("own", Winsorised()), ("scaled", StandardScaler())])
    return make_pipeline(parts, Ridge()).fit(x, data.target()), x


_MAKERS = (
    classes_of_a_user,
    classes_of_a_user_in_a_union,
    encoded_and_scaled,
    imputed_first,
    categories_for_boosting,
    rare_words,
    words_by_target,
    union_of_bins_and_products,
    function_of_a_user,
    stacked_in_a_search,
    whole_numbers,
    single_precision,
    chosen_by_type,
    words_counted,
    words_weighed,
    topics_of_text,
    text_beside_numbers,
)
