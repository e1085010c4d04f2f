"""XGBoost, LightGBM and CatBoost, through scikit-learn and as themselves."""

from __future__ import annotations

import functools
from typing import Any

import catboost
import lightgbm
import numpy as np
import pandas as pd
import xgboost
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from tests.export_cases.sklearn import data
from tests.export_cases.sklearn.case import EstimatorCase, case

_XGB: dict[str, tuple[Any, dict[str, Any], str]] = {
    "regressor": (xgboost.XGBRegressor, {}, "target"),
    "poisson": (xgboost.XGBRegressor, {"objective": "count:poisson"}, "target"),
    "gamma": (xgboost.XGBRegressor, {"objective": "reg:gamma", "base_score": 1.5}, "target"),
    "dart": (xgboost.XGBRegressor, {"booster": "dart", "rate_drop": 0.3}, "target"),
    "linear": (xgboost.XGBRegressor, {"booster": "gblinear"}, "target"),
    "linear_classes": (xgboost.XGBClassifier, {"booster": "gblinear"}, "three"),
    "linear_several": (xgboost.XGBRegressor, {"booster": "gblinear"}, "targets"),
    "several": (xgboost.XGBRegressor, {}, "targets"),
    "vector_leaf": (xgboost.XGBRegressor, {"multi_strategy": "multi_output_tree"}, "targets"),
    "binary": (xgboost.XGBClassifier, {}, "two"),
    "logitraw": (xgboost.XGBRegressor, {"objective": "binary:logitraw"}, "two"),
    "multiclass": (xgboost.XGBClassifier, {}, "three"),
    "labels": (xgboost.XGBClassifier, {}, "labels"),
    "forest": (xgboost.XGBRFClassifier, {}, "three"),
    "forest_regressor": (xgboost.XGBRFRegressor, {}, "target"),
    "depth_one": (xgboost.XGBClassifier, {"max_depth": 1, "tree_method": "exact"}, "three"),
}
_LGB: dict[str, tuple[Any, dict[str, Any], str]] = {
    "regressor": (lightgbm.LGBMRegressor, {}, "target"),
    "poisson": (lightgbm.LGBMRegressor, {"objective": "poisson"}, "target"),
    "l1": (lightgbm.LGBMRegressor, {"objective": "l1"}, "target"),
    "sqrt": (lightgbm.LGBMRegressor, {"reg_sqrt": True}, "target"),
    "quantile": (lightgbm.LGBMRegressor, {"objective": "quantile", "alpha": 0.8}, "target"),
    "cross_entropy": (lightgbm.LGBMRegressor, {"objective": "cross_entropy"}, "two"),
    "binary": (lightgbm.LGBMClassifier, {}, "names2"),
    "multiclass": (lightgbm.LGBMClassifier, {}, "names"),
    "one_versus_all": (lightgbm.LGBMClassifier, {"objective": "multiclassova"}, "three"),
    "dart": (lightgbm.LGBMClassifier, {"boosting_type": "dart"}, "three"),
    "forest": (lightgbm.LGBMClassifier, {"boosting_type": "rf", "bagging_freq": 1, "bagging_fraction": 0.7}, "two"),
    "linear_leaves": (lightgbm.LGBMRegressor, {"linear_tree": True, "min_child_samples": 5}, "target"),
    "zero_missing": (lightgbm.LGBMRegressor, {"zero_as_missing": True}, "target"),
}
_CAT: dict[str, tuple[Any, dict[str, Any], str]] = {
    "regressor": (catboost.CatBoostRegressor, {}, "target"),
    "poisson": (catboost.CatBoostRegressor, {"loss_function": "Poisson"}, "target"),
    "tweedie": (catboost.CatBoostRegressor, {"loss_function": "Tweedie:variance_power=1.5"}, "target"),
    "quantiles": (catboost.CatBoostRegressor, {"loss_function": "MultiQuantile:alpha=0.2,0.8"}, "target"),
    "uncertainty": (catboost.CatBoostRegressor, {"loss_function": "RMSEWithUncertainty"}, "target"),
    "several": (catboost.CatBoostRegressor, {"loss_function": "MultiRMSE"}, "targets"),
    "missing_last": (catboost.CatBoostRegressor, {"nan_mode": "Max"}, "target"),
    "leafwise": (catboost.CatBoostRegressor, {"grow_policy": "Lossguide"}, "target"),
    "depthwise": (catboost.CatBoostClassifier, {"grow_policy": "Depthwise"}, "three"),
    "binary": (catboost.CatBoostClassifier, {}, "names2"),
    "multiclass": (catboost.CatBoostClassifier, {}, "names"),
    "one_versus_all": (catboost.CatBoostClassifier, {"loss_function": "MultiClassOneVsAll"}, "three"),
    "labels": (catboost.CatBoostClassifier, {"loss_function": "MultiLogloss"}, "labels"),
    "plain": (catboost.CatBoost, {"loss_function": "Logloss"}, "two"),
}
_TARGETS = {
    "target": data.target,
    "targets": data.targets,
    "two": lambda: data.classes(2),
    "three": data.classes,
    "labels": data.labels,
    "names": lambda: data.names(3),
    "names2": data.names,
}


def cases() -> list[EstimatorCase]:
    """All of them."""
    found = []
    for library, table in (("xgboost", _XGB), ("lightgbm", _LGB), ("catboost", _CAT)):
        for name, (cls, arguments, target) in table.items():
            make = functools.partial(_fitted, cls, arguments, target)
            found.append(case(f"{library}/{name}", make))
            found.append(case(f"{library}/{name}_gaps", functools.partial(make, gaps=True)))
    found += [case("catboost/ranker", _ranked), case("catboost/threshold", _with_threshold)]
    pairs = {
        "categories": _categories,
        "frame": _frame,
        "native": _native,
        "ranker": _ranker,
        "pipeline": _in_pipeline,
        "early": _early,
    }
    return found + [
        case(f"{library}/{name}", functools.partial(make, library))
        for library in ("xgboost", "lightgbm")
        for name, make in pairs.items()
    ]


def _quiet(cls: Any, **arguments: Any) -> Any:
    if cls.__module__.startswith("catboost"):
        few = {"iterations": 6, "depth": 3, "thread_count": 1, "random_seed": 0, "verbose": 0}
        return cls(**{**few, "allow_writing_files": False, **arguments})
    few = {"verbose": -1, "min_child_samples": 3} if cls.__module__.startswith("lightgbm") else {"max_depth": 3}
    return cls(**{"n_estimators": 6, "n_jobs": 1, "random_state": 0, **few, **arguments})


def _fitted(cls: Any, arguments: dict[str, Any], target: str, *, gaps: bool = False) -> tuple[Any, Any]:
    x = data.gaps(np.float32) if gaps else data.numbers()
    if arguments.get("zero_as_missing"):
        x = np.where(np.abs(x) < 0.7, 0.0, x)
    if arguments.get("booster") == "gblinear":
        x = data.numbers()
    if cls is catboost.CatBoost:  # which takes a dictionary
        return cls(_quiet(catboost.CatBoostClassifier, **arguments).get_params()).fit(x, _TARGETS[target]()), x
    return _quiet(cls, **arguments).fit(x, _TARGETS[target]()), x


def _mixed() -> np.ndarray:
    x = data.gaps()
    x[:, 1] = np.random.default_rng(6).integers(0, 9, data.ROWS)
    x[:, 3] = np.random.default_rng(7).integers(0, 4, data.ROWS)
    x[::11, 3] = np.nan
    return x


def _categories(library: str) -> tuple[Any, Any]:
    x = _mixed()
    y = np.nan_to_num(x[:, 0]) + np.isin(x[:, 1], (2, 5, 6)) * 3 + (x[:, 3] == 1)
    if library == "xgboost":
        kinds = ["q", "c", "q", "c", "q"]
        return _quiet(xgboost.XGBRegressor, feature_types=kinds, enable_categorical=True).fit(x, y), x
    model = _quiet(lightgbm.LGBMRegressor, min_data_per_group=2, cat_smooth=1)
    return model.fit(x, y, categorical_feature=[1, 3]), x


def _frame(library: str) -> tuple[Any, Any]:
    """Categories that the table itself says are some, of words and of numbers; one is never seen in the training."""
    words, x = data.words(), data.gaps()
    kinds = pd.CategoricalDtype(["blue", "red", "grey", "green"])
    columns = {"a": x[:, 0], "colour": pd.Series(words[:, 0], dtype=kinds), "b": x[:, 1].astype(np.float32)}
    frame = pd.DataFrame(columns).assign(rank=pd.Categorical(data.counts()[:, 0] + 3))
    y = (words[:, 0] == "red") * 3 + (data.counts()[:, 0] % 2) + np.nan_to_num(x[:, 0])
    if library == "xgboost":
        return _quiet(xgboost.XGBRegressor, enable_categorical=True, max_cat_to_onehot=2).fit(frame, y), frame
    return _quiet(lightgbm.LGBMRegressor, min_data_per_group=2, cat_smooth=1).fit(frame, y), frame


def _native(library: str) -> tuple[Any, Any]:
    x, y = data.gaps(), data.classes(3)
    if library == "xgboost":
        settings = {"objective": "multi:softprob", "num_class": 3, "max_depth": 3, "nthread": 1}
        return xgboost.train(settings, xgboost.DMatrix(x, y), 5), x
    settings = {"objective": "multiclass", "num_class": 3, "verbose": -1, "num_threads": 1}
    return lightgbm.train(settings, lightgbm.Dataset(x, y), 5), x


def _ranker(library: str) -> tuple[Any, Any]:
    x, y, groups = data.numbers(), data.classes(3), [20] * (data.ROWS // 20)
    model = _quiet(xgboost.XGBRanker if library == "xgboost" else lightgbm.LGBMRanker)
    return model.fit(x, y, group=groups), x


def _ranked() -> tuple[Any, Any]:
    x, y = data.numbers(), data.classes(3)
    return _quiet(catboost.CatBoostRanker).fit(x, y, group_id=np.arange(data.ROWS) // 20), x


def _with_threshold() -> tuple[Any, Any]:
    model = _quiet(catboost.CatBoostClassifier).fit(data.numbers(), data.classes(2))
    model.set_probability_threshold(0.2)
    return model, data.numbers()


def _in_pipeline(library: str) -> tuple[Any, Any]:
    cls = xgboost.XGBClassifier if library == "xgboost" else lightgbm.LGBMClassifier
    return make_pipeline(StandardScaler(), _quiet(cls)).fit(data.numbers(), data.classes()), data.numbers()


def _early(library: str) -> tuple[Any, Any]:
    x, y = data.numbers(), data.classes(2)
    if library == "xgboost":
        model = _quiet(xgboost.XGBClassifier, n_estimators=40, early_stopping_rounds=2)
        return model.fit(x[:50], y[:50], eval_set=[(x[50:], y[50:])], verbose=False), x
    model = _quiet(lightgbm.LGBMClassifier, n_estimators=40)
    stop = lightgbm.early_stopping(2, verbose=False)
    return model.fit(x[:50], y[:50], eval_set=[(x[50:], y[50:])], callbacks=[stop]), x
