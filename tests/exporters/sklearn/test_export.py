"""Estimators and pipelines as models, and what they are called in them."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import onnxruntime
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_diabetes, load_iris
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PowerTransformer, QuantileTransformer, RobustScaler, SplineTransformer, StandardScaler
from sklearn.svm import SVC

import entrepot as ep
from entrepot.ir.computed import rounded_types

X, Y = load_iris(return_X_y=True)
TABLE, TARGET = load_diabetes(return_X_y=True)


def in_onnxruntime(model, tmp_path, feeds):
    path = tmp_path / "model.onnx"
    model.save(path)
    session = onnxruntime.InferenceSession(path)
    return dict(zip([o.name for o in session.get_outputs()], session.run(None, feeds), strict=True))


def test_a_pipeline_gives_labels_probabilities_and_scores(tmp_path):
    pipeline = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, Y)
    model = ep.export(pipeline, X[:5])
    assert model.report.ok
    assert [spec.name for spec in model.outputs] == ["label", "probabilities", "scores"]
    found = in_onnxruntime(model, tmp_path, {"X": X[40:60]})
    np.testing.assert_array_equal(found["label"], pipeline.predict(X[40:60]))
    np.testing.assert_allclose(found["probabilities"], pipeline.predict_proba(X[40:60]), rtol=1e-12)
    np.testing.assert_allclose(found["scores"], pipeline.decision_function(X[40:60]), rtol=1e-12)


def test_the_number_of_rows_varies_and_that_of_columns_does_not():
    model = ep.export(LinearRegression().fit(TABLE, TARGET), TABLE[:1])
    assert model.inputs[0].shape == ("batch", 10)
    assert model.outputs[0].name == "prediction"
    assert model.outputs[0].shape == ("batch",)


@pytest.mark.parametrize("opset", [13, 17, 20])
def test_forests_are_exact_at_every_opset(opset, tmp_path):
    forest = RandomForestClassifier(10, random_state=0).fit(X, Y)
    model = ep.export(forest, X[:5], opset=opset)
    found = in_onnxruntime(model, tmp_path, {"X": X})
    np.testing.assert_allclose(found["probabilities"], forest.predict_proba(X), rtol=0, atol=1e-15)


def test_one_method_is_exported_by_itself():
    model = ep.export(LogisticRegression(max_iter=500).fit(X, Y).predict_proba, X[:5])
    assert [spec.name for spec in model.outputs] == ["probabilities"]


@pytest.mark.parametrize(
    "estimator",
    [
        SplineTransformer(),
        SplineTransformer(extrapolation="continue"),
        SplineTransformer(extrapolation="periodic"),
        PowerTransformer(),
        QuantileTransformer(n_quantiles=5),
        RobustScaler(),
    ],
    ids=str,
)
def test_columns_that_never_change_are_taken(estimator):
    x = np.random.default_rng(0).normal(size=(20, 2))
    x[:, 0] = 1
    model = ep.export(estimator.fit(x), x[:6].astype(np.float32))
    assert model.report


def test_transformers_of_columns_have_their_weights():
    model = ColumnTransformer(
        [("scaled", StandardScaler(), slice(0, 2)), ("kept", "passthrough", [2])], transformer_weights={"scaled": 2.0}
    ).fit(X)
    (found,) = ep.Session(ep.export(model, X[:7], progress=False)).run({"X": X}).values()
    np.testing.assert_allclose(found, model.transform(X), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("loss", ["log_loss", "exponential"])
@pytest.mark.parametrize("first", [LogisticRegression(), GaussianNB(), make_pipeline(StandardScaler(), PCA(2), SVC())])
def test_boosted_trees_on_a_first_guess_in_single_precision(first, loss, tmp_path):
    x, y = TABLE[:80] * 20, (TARGET[:80] > 120).astype(int)
    first = CalibratedClassifierCV(first, ensemble=False) if not hasattr(first, "predict_proba") else first
    trees = GradientBoostingClassifier(init=first, loss=loss, n_estimators=4).fit(x, y)
    model = ep.export(trees, x[:7])
    assert model.report.ok
    found = in_onnxruntime(model, tmp_path, {"X": x})
    # odds of what is nearly certain are as inexact as 1 - p in single precision
    np.testing.assert_allclose(found["probabilities"], trees.predict_proba(x), rtol=1e-4, atol=5e-6)


def test_only_what_is_computed_in_single_precision_is_judged_by_it():
    x, y = TABLE[:80].astype(np.float32) * 20, (TARGET[:80] > 120).astype(int)
    trees = GradientBoostingClassifier(n_estimators=4).fit(x, y)
    guess = GradientBoostingClassifier(n_estimators=4, init=LogisticRegression()).fit(x, y)
    assert not rounded_types(ep.export(trees, x[:5]).ir) & {ir.DataType.FLOAT}
    assert rounded_types(ep.export(guess, x[:5]).ir) >= {ir.DataType.FLOAT}


def test_a_method_that_a_solver_does_not_have_is_left_out():
    model = LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto").fit(X, Y)
    exported = ep.export(model, X[:10], progress=False)
    assert [spec.name for spec in exported.outputs] == ["label", "probabilities", "scores"]
