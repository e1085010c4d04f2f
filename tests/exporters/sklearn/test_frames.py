"""What users write with pandas, with NumPy and around other estimators is followed, or refused with the reason."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.preprocessing import FunctionTransformer

import entrepot as ep
from tests.export_cases.sklearn.frames import cases, frame
from tests.sweeps.estimators import judge


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.name)
def test_what_users_write_agrees_in_onnxruntime(case):
    outcome = judge(case)
    assert outcome.verdict == "passed", outcome.why


REFUSED = {
    "rows are chosen": (lambda d: d[d["income"] > 1][["kids"]], "choice of rows"),
    "rows that come together": (lambda d: d[["income"]] - d[["income"]].mean(), "depends on the rows"),
    "values of the sample": (lambda d: d.assign(odd=[1.0] * 7)[["odd"]], "as the sample has rows"),
    "text by text": (lambda d: d["city"].map({"red": "a", "blue": "b", "green": "c"}).to_frame(), "to be numbers"),
    "a branch": (lambda d: d[["kids"]] if d["income"].max() > 1 else -d[["kids"]], "branch"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_no_graph_can_say_is_refused_with_the_reason(name):
    function, reason = REFUSED[name]
    with pytest.raises(ep.ConversionError, match=reason):
        ep.export(FunctionTransformer(function).fit(frame()), frame().iloc[:7], progress=False)


def test_a_frame_is_told_from_an_array_as_pandas_tells_it():
    def doubled(table):
        return table * 2 if isinstance(table, pd.DataFrame) else table * 3

    x = frame()[["income", "kids"]]
    model = ep.export(FunctionTransformer(doubled).fit(x), x.iloc[:7], progress=False)
    (found,) = ep.Session(model).run({name: x[name].to_numpy() for name in x}).values()
    np.testing.assert_allclose(found, x * 2)


class Scaled(TransformerMixin, BaseEstimator):
    def fit(self, x, y=None):
        self.scale_ = np.abs(x).max(axis=0)
        return self

    def transform(self, x):
        return x / self.scale_


SCALED = Scaled().fit(np.arange(6.0).reshape(2, 3) + 1)


def test_an_estimator_among_the_globals_of_its_own_class_is_exported():
    assert ep.export(SCALED, np.ones((4, 3)), progress=False).report
