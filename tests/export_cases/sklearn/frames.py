"""Functions and classes of users that take data frames apart, make others, count rows, and ask other estimators."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin
from sklearn.cluster import KMeans
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from tests.export_cases.sklearn import data
from tests.export_cases.sklearn.case import EstimatorCase, case


def frame() -> pd.DataFrame:
    """Numbers, some of which are missing, and words."""
    numbers, gaps = data.positive(), data.gaps()
    return pd.DataFrame(
        {
            "age": gaps[:, 0],
            "income": numbers[:, 1],
            "kids": data.counts()[:, 0],
            "city": pd.Series(data.words()[:, 0], dtype=object),
        }
    )


def ratio(d: Any) -> Any:
    d = d.copy()
    d["ratio"] = d["income"] / (d["kids"] + 1)
    return d[["ratio", "kids"]]


def assigned(d: Any) -> Any:
    return d.assign(both=d.income * d.kids, log=lambda t: np.log(t["income"])).drop(columns=["city", "age"])


def made_anew(d: Any) -> Any:
    return pd.DataFrame({"less": d["income"] - d["kids"], "clipped": d["income"].clip(1.2, 2.5), "one": 1.0})


def as_array(d: Any) -> Any:
    return d[["income", "kids"]].values[:, :1] ** 2


def column_by_column(d: Any) -> Any:
    return d[["income", "kids"]].apply(np.log1p)


def row_by_row(d: Any) -> Any:
    return d.apply(lambda row: row["income"] * 2 - row["kids"], axis=1).to_frame()


def filled(d: Any) -> Any:
    return d[["age", "income"]].fillna({"age": 40.0}).astype(np.float32)


def what_is_missing(d: Any) -> Any:
    return np.c_[d["age"].isna(), pd.isna(d["age"]) | (d["income"] > 2), d["age"].fillna(d["income"])]


def beyond(d: Any) -> Any:
    d = d.drop("city", axis=1)
    d.loc[d["income"] > 2, "kids"] = 0
    return d.fillna(0).where(d > 1, 1)


def along_rows(d: Any) -> Any:
    few = d[["age", "income", "kids"]]
    return pd.concat([few.sum(axis=1), few.mean(axis=1), few.max(axis=1), few.std(axis=1), few.min(axis=1)], axis=1)


def by_dictionary(d: Any) -> Any:
    return pd.DataFrame(
        {"a": d["city"].map({"red": 1.0, "green": 2.0}), "b": (d["city"] == "blue").astype(int)}
    ).fillna(-1)


def of_types(d: Any) -> Any:
    d = d.rename(columns={"income": "wage"}).select_dtypes(include="number")
    return d[[name for name in d.columns if name != "age"]] - 1


def by_place(d: Any) -> Any:
    return d.iloc[:, [2, 1]].abs().round(1)


def replaced(d: Any) -> Any:
    return d["kids"].replace({0: 9, 1: 8}).between(3, 8).astype(float).to_frame("few")


def intervals(d: Any) -> Any:
    return pd.cut(d["income"], bins=[0.0, 1.0, 2.0, 9.0], labels=False).fillna(-1.0).to_frame()


def parts_of_text(d: Any) -> Any:
    city = d["city"]
    parts = [city.str.contains("re"), city.str.startswith("b"), city.str.endswith("n"), city.isin(["red", "blue"])]
    return pd.concat([part.astype(int).rename(name) for part, name in zip(parts, "abcd", strict=True)], axis=1)


def filtered(d: Any) -> Any:
    return d.filter(regex="^k|^i") * 2 + d.filter(items=["kids", "income"]).to_numpy()


def two_words(d: Any) -> Any:
    return np.where(d["income"] > 2, "rich", "poor").reshape(-1, 1)


def powers(d: Any, name: str, most: int) -> Any:
    return np.column_stack([d[name] ** power for power in range(1, most + 1)])


class Deviations(TransformerMixin, BaseEstimator):
    """Keeps medians by column, and takes them away."""

    def fit(self, x: pd.DataFrame, y: Any = None) -> Deviations:
        self.medians_ = {name: float(x[name].median()) for name in ("income", "kids")}
        return self

    def transform(self, x: Any) -> Any:
        x = x.copy()
        for name, median in self.medians_.items():
            x[f"{name}_apart"] = (x[name] - median).abs()
        return x[["income_apart", "kids_apart"]]


class Standardised(TransformerMixin, BaseEstimator):
    """Keeps means, deviations and bounds as series of pandas."""

    def fit(self, x: pd.DataFrame, y: Any = None) -> Standardised:
        few = x[["age", "income", "kids"]]
        self.mean_, self.std_, self.low_ = few.mean(), few.std(), few.quantile(0.1)
        return self

    def transform(self, x: Any) -> Any:
        x = x[list(self.mean_.index)].fillna(self.mean_)
        return (x.clip(lower=self.low_, axis=1) - self.mean_) / self.std_ * np.array([1.0, 2.0, 3.0])


class Ordered(ClassifierMixin, BaseEstimator):
    """One classifier for each bound between classes that have an order."""

    def fit(self, x: Any, y: Any) -> Ordered:
        self.classes_ = np.unique(y)
        self.bounds_ = [LogisticRegression().fit(x, y > each) for each in self.classes_[:-1]]
        return self

    def predict_proba(self, x: Any) -> Any:
        beyond = np.column_stack([model.predict_proba(x)[:, 1] for model in self.bounds_])
        return np.column_stack([np.ones(len(beyond)), beyond]) - np.column_stack([beyond, np.zeros(x.shape[0])])

    def predict(self, x: Any) -> Any:
        return self.classes_[np.argmax(self.predict_proba(x), axis=1)]


class Committee(ClassifierMixin, BaseEstimator):
    """The mean and the median of others."""

    def fit(self, x: Any, y: Any) -> Committee:
        self.classes_ = np.unique(y)
        self.members_ = [LogisticRegression(C=c).fit(x, y) for c in (0.1, 1.0, 9.0)]
        return self

    def predict_proba(self, x: Any) -> Any:
        every = [member.predict_proba(x) for member in self.members_]
        return (np.mean(every, axis=0) + np.median(every, axis=0)) / 2

    def predict(self, x: Any) -> Any:
        return self.classes_[np.max([self.predict_proba(x)], axis=0).argmax(axis=1)]


GROUPS = KMeans(3, random_state=0, n_init=1).fit(data.numbers())


def near_groups(x: Any) -> Any:
    return np.column_stack([GROUPS.transform(x), x])


class Blended(BaseEstimator):
    """A sum of others, written column by column."""

    def fit(self, x: Any, y: Any) -> Blended:
        self.models_ = {
            "near": KMeans(3, random_state=0, n_init=1).fit(x),
            "line": make_pipeline(StandardScaler(), Ridge()),
        }
        self.models_["line"].fit(x, y)
        return self

    def predict(self, x: Any) -> Any:
        parts = np.zeros((len(x), 2))
        parts[:, 0] = self.models_["line"].predict(x)
        parts[:, 1] = self.models_["near"].transform(x).min(axis=1)
        return parts.sum(axis=1)


FUNCTIONS: tuple[Callable[..., Any], ...] = (
    ratio, assigned, made_anew, as_array, column_by_column, row_by_row, filled, what_is_missing, beyond, along_rows,
    by_dictionary, of_types, by_place, replaced, intervals, parts_of_text, two_words, filtered,
)  # fmt: skip


def cases() -> list[EstimatorCase]:
    """All of them."""
    made = [case(f"frames/{function.__name__}", functools.partial(_of_function, function)) for function in FUNCTIONS]
    return [
        *made,
        *(
            case(f"frames/{make.__name__}", make)
            for make in (given, numpy_of_columns, held, standardised, ordered, blended, named, committee, grouped)
        ),
    ]


def _of_function(function: Callable[..., Any]) -> tuple[Any, Any]:
    return FunctionTransformer(function).fit(frame()), frame()


def given() -> tuple[Any, Any]:
    return FunctionTransformer(powers, kw_args={"name": "income", "most": 3}).fit(frame()), frame()


def numpy_of_columns() -> tuple[Any, Any]:
    x = frame()
    parts = [
        ("log", FunctionTransformer(np.log1p), ["income", "kids"]),
        ("city", FunctionTransformer(lambda s: s.map({"red": 1.0, "blue": 2.0}).fillna(0.0).to_frame()), "city"),
    ]
    return make_pipeline(ColumnTransformer(parts), Ridge()).fit(x, data.target()), x


def held() -> tuple[Any, Any]:
    x = frame()
    return make_pipeline(Deviations(), LogisticRegression()).fit(x, data.classes()), x


def standardised() -> tuple[Any, Any]:
    return Standardised().fit(frame()), frame()


def ordered() -> tuple[Any, Any]:
    return Ordered().fit(data.numbers(), data.classes()), data.numbers()


def committee() -> tuple[Any, Any]:
    return Committee().fit(data.numbers(), data.names()), data.numbers()


def grouped() -> tuple[Any, Any]:
    x = data.numbers() + 0.01
    return make_pipeline(FunctionTransformer(near_groups), Ridge()).fit(x, data.target()), x


def blended() -> tuple[Any, Any]:
    return make_pipeline(StandardScaler(), Blended()).fit(data.numbers(), data.target()), data.numbers()


def named() -> tuple[Any, Any]:
    x = frame().drop(columns="city")
    impute = SimpleImputer().set_output(transform="pandas")
    return make_pipeline(impute, FunctionTransformer(lambda d: d[["age", "kids"]] * 2), Ridge()).fit(
        x, data.target()
    ), x
