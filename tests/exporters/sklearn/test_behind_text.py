"""Estimators from behind steps on text that have no formula."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import RandomForestClassifier, StackingClassifier
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import FunctionTransformer, MaxAbsScaler, OneHotEncoder, StandardScaler

import entrepot as ep

TEXTS = ["the cat sat", "a dog ran", "cat and dog", "one more text"] * 3
LABELS = [0, 1, 1, 0] * 3
OTHERS = ["a cat", "", "Ünïcode, and more of it"]


def run(model, given):
    return ep.Session(model, providers=["onnxruntime"]).run(given)


def same(found, estimator, data):
    assert (found["label"] == estimator.predict(data)).all()
    np.testing.assert_allclose(found["probabilities"], estimator.predict_proba(data), rtol=1e-7)


def test_a_pipeline_begins_behind_its_hashes():
    pipeline = make_pipeline(HashingVectorizer(n_features=64), TfidfTransformer(), LogisticRegression())
    pipeline.fit(TEXTS, LABELS)
    model = ep.export(pipeline, TEXTS[:4], strings="cut", progress=False)
    assert [str(each) for each in model.inputs] == ["hashingvectorizer: float64[batch, 64]"]
    assert "'hashingvectorizer' is the result of HashingVectorizer" in model.notes[0]
    same(run(model, {"hashingvectorizer": pipeline[0].transform(OTHERS).toarray()}), pipeline, OTHERS)
    assert ep.verify(pipeline, model, TEXTS[:4]).ok
    assert "transform" not in vars(pipeline[0])


@pytest.fixture(name="frame")
def made_frame():
    return pd.DataFrame({"body": TEXTS, "title": TEXTS[::-1], "a": np.arange(12.0), "kind": ["x", "y", "z"] * 4})


def columns():
    hashes, letters = HashingVectorizer(n_features=16), CountVectorizer(analyzer="char")
    plain = [("a", StandardScaler(), ["a"]), ("kind", OneHotEncoder(), ["kind"])]
    return ColumnTransformer([("hashes", hashes, "body"), ("letters", letters, "title"), *plain])


def test_columns_of_text_go_and_others_stay(frame):
    pipeline = make_pipeline(columns(), RandomForestClassifier(5, random_state=0)).fit(frame, LABELS)
    model = ep.export(pipeline, frame, strings="cut", progress=False)
    assert [each.name for each in model.inputs] == ["a", "kind", "hashes", "letters"]
    given = {
        "a": frame["a"].to_numpy()[:5],
        "kind": frame["kind"].to_numpy(object)[:5],
        "hashes": pipeline[0].named_transformers_["hashes"].transform(frame["body"][:5]).toarray(),
        "letters": pipeline[0].named_transformers_["letters"].transform(frame["title"][:5]).toarray(),
    }
    same(run(model, given), pipeline, frame[:5])


def test_each_estimator_of_a_committee_has_an_input_of_its_own(frame):
    parts = [("one", make_pipeline(columns(), LogisticRegression())), ("two", make_pipeline(columns(), MaxAbsScaler()))]
    parts[1][1].steps.append(("last", LogisticRegression()))
    model = ep.export(StackingClassifier(parts, cv=2).fit(frame, LABELS), frame, strings="cut", progress=False)
    assert [each.name for each in model.inputs] == ["a", "kind", "hashes", "letters", "hashes_1", "letters_1"]
    assert any("CountVectorizer 'two/columntransformer/letters'" in note for note in model.notes)


def test_what_is_no_array_stays_with_what_reads_it():
    pipeline = make_pipeline(
        FunctionTransformer(lambda texts: [text[::-1].split() for text in texts]),
        FeatureUnion(
            [(f"h{n}", HashingVectorizer(n_features=n, analyzer=lambda words: words)) for n in (8, 4)], n_jobs=2
        ),
        LogisticRegression(),
    ).fit(TEXTS, LABELS)
    model = ep.export(pipeline, TEXTS[:3], strings="cut", progress=False)
    assert [str(each) for each in model.inputs] == ["h8: float64[batch, 8]", "h4: float64[batch, 4]"]
    words = pipeline[0].transform(OTHERS)
    given = {name: each.transform(words).toarray() for name, each in pipeline[1].transformer_list}
    same(run(model, given), pipeline, OTHERS)


def test_refusals_name_the_way_out():
    hashes = HashingVectorizer(n_features=8)
    with pytest.raises(ep.ConversionError, match=r'hashes text.*strings="cut"'):
        ep.export(make_pipeline(hashes, LogisticRegression()).fit(TEXTS, LABELS), TEXTS, progress=False)
    for alone in (hashes, make_pipeline(hashes)):
        with pytest.raises(ep.ConversionError, match="nothing of the estimator is left"):
            ep.export(alone.fit(TEXTS), TEXTS, strings="cut", progress=False)


def test_what_has_formulas_is_not_cut():
    pipeline = make_pipeline(CountVectorizer(), LogisticRegression()).fit(TEXTS, LABELS)
    model = ep.export(pipeline, TEXTS[:3], strings="cut", progress=False)
    assert [each.dtype for each in model.inputs] == ["string"]
