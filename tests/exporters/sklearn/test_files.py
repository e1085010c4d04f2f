"""Files of boosters are read as data; pickles are refused."""

from __future__ import annotations

import pickle
import re

import catboost
import lightgbm
import numpy as np
import pytest
import xgboost
from sklearn.datasets import load_iris
from sklearn.linear_model import LinearRegression

import entrepot as ep

X, Y = load_iris(return_X_y=True)
ROWS = X[:10]


@pytest.mark.parametrize("suffix", ["json", "ubj"])
def test_a_file_of_xgboost_is_exported(suffix, tmp_path):
    path = tmp_path / f"net.{suffix}"
    model = xgboost.XGBClassifier(n_estimators=4).fit(X, Y)
    model.save_model(path)
    found = ep.Session(ep.export(path, ROWS, progress=False)).run({"X": X})
    np.testing.assert_allclose(found["prediction"], model.predict_proba(X), rtol=1e-5, atol=1e-6)


def test_a_file_of_lightgbm_is_exported(tmp_path):
    model = lightgbm.LGBMRegressor(n_estimators=4, verbose=-1).fit(X, Y)
    model.booster_.save_model(tmp_path / "net.txt")
    found = ep.Session(ep.export(tmp_path / "net.txt", ROWS, progress=False)).run({"X": X})
    np.testing.assert_allclose(found["prediction"], model.predict(X), rtol=1e-9)


@pytest.mark.parametrize("kind", ["cbm", "json"])
def test_a_file_of_catboost_is_exported(kind, tmp_path):
    path = tmp_path / f"net.{kind}"
    model = catboost.CatBoostRegressor(iterations=4, verbose=0, allow_writing_files=False).fit(X, Y)
    model.save_model(str(path), format=kind)
    found = ep.Session(ep.export(path, ROWS, progress=False)).run({"X": X})
    np.testing.assert_allclose(next(iter(found.values())), model.predict(X), rtol=1e-5)


@pytest.mark.parametrize(
    "content",
    [
        b'{"learner": {"attributes": 3}}',
        b"{L" + bytes(7) + b"\x07learner",
        b"CBM1\x80\x3f",
        b"tree\nversion=v4\nnum_class=x\n",
    ],
)
def test_a_damaged_file_is_refused(content, tmp_path):
    (tmp_path / "net").write_bytes(content)
    with pytest.raises(ep.ModelFormatError, match="cannot read it"):
        ep.export(tmp_path / "net", ROWS, progress=False)


@pytest.mark.parametrize("damage", ["cut in a tree", "cut behind a tree", "a child that is not there", "a circle"])
def test_a_damaged_tree_of_lightgbm_is_refused(damage, tmp_path):
    lightgbm.LGBMRegressor(n_estimators=4, verbose=-1).fit(X, Y).booster_.save_model(tmp_path / "net.txt")
    text = (tmp_path / "net.txt").read_text()
    kept = {
        "cut in a tree": text[: text.index("Tree=2") + 200],
        "cut behind a tree": text[: text.index("Tree=2")],
        "a child that is not there": re.sub("(?m)^left_child=-?[0-9]+", "left_child=99999", text),
        "a circle": re.sub("(?m)^left_child=-?[0-9]+", "left_child=0", text),
    }
    (tmp_path / "net.txt").write_text(kept[damage])
    with pytest.raises(ep.ModelFormatError, match=r"cannot read it: (it is cut off|node 0 of tree 0)"):
        ep.export(tmp_path / "net.txt", ROWS, progress=False)


def test_the_code_of_a_pickle_is_not_run(tmp_path):
    (tmp_path / "net.pkl").write_bytes(pickle.dumps(LinearRegression().fit(X, Y)))
    with pytest.raises(ep.InputError, match="Python pickle of an estimator"):
        ep.export(tmp_path / "net.pkl", ROWS, progress=False)
