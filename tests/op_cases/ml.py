"""Classical machine learning: ai.onnx.ml."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.op_cases.case import Case, Draw, f32, f64, floats, i32, i64, ints, strings

NUMBERS = (f32, f64, i32, i64)
WORDS = strings(["b", "a", "z"])
MIXED = floats(-1, 0, 0.5, 2, 4, 5).reshape(3, 2)
ML_MODES = ("LEQ", "LT", "GTE", "GT", "EQ", "NEQ")
TRANSFORMS = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")
KERNELS = ("LINEAR", "POLY", "RBF", "SIGMOID")
UNIT = f32(4, 2, low=0, high=1)


def ml(op_type: str, *inputs: Any, **attributes: Any) -> Case:
    return Case(op_type, *inputs, **attributes).of("ai.onnx.ml")


def single(case: Case) -> Case:
    """A case whose output is in single precision whatever comes in."""
    if case.inputs[0].dtype == np.float32:
        return case
    return case.held_to("onnxruntime", why="onnx.reference gives the type of the input")


def column(*values: Any, dtype: Any = np.float32) -> np.ndarray:
    """An attribute that is a tensor."""
    return np.array(values, object if dtype is str else dtype)


TREE = {
    "nodes_treeids": [0, 0, 0, 0, 0, 1, 1, 1],
    "nodes_nodeids": [0, 1, 2, 3, 4, 0, 1, 2],
    "nodes_featureids": [0, 1, 0, 0, 0, 1, 0, 0],
    "nodes_modes": ["BRANCH_LEQ", "BRANCH_LEQ", "LEAF", "LEAF", "LEAF", "BRANCH_LEQ", "LEAF", "LEAF"],
    "nodes_truenodeids": [1, 3, 0, 0, 0, 1, 0, 0],
    "nodes_falsenodeids": [2, 4, 0, 0, 0, 2, 0, 0],
}
"""Two trees: the first of two levels, the second of one."""
SPLITS = [0.5, 0.25, 0, 0, 0, 2, 0, 0]
LEAVES = {"treeids": [0, 0, 0, 1, 1], "nodeids": [2, 3, 4, 1, 2]}
WEIGHTS = [10.0, 20.0, 30.0, 0.5, -0.5]


def regressor(x: Any = MIXED, ids: list[int] | None = None, double: bool = False, **attributes: Any) -> Case:
    """Leaves of one target each; thresholds and weights as lists, or as tensors of doubles."""
    numbers = {"nodes_values": SPLITS, "target_weights": WEIGHTS}
    if double:
        numbers = {f"{name}_as_tensor": np.array(value, np.float64) for name, value in numbers.items()}
    leaves = {f"target_{name}": value for name, value in LEAVES.items()}
    given = {"n_targets": 1, "target_ids": ids or [0] * 5, **TREE, **leaves, **numbers, **attributes}
    return ml("TreeEnsembleRegressor", x, **given)


def classifier(x: Any = MIXED, ids: list[int] | None = None, double: bool = False, **attributes: Any) -> Case:
    numbers = {"nodes_values": SPLITS, "class_weights": [0.1, 0.7, 0.2, 0.3, 0.4]}
    if double:
        numbers = {f"{name}_as_tensor": np.array(value, np.float64) for name, value in numbers.items()}
    leaves = {f"class_{name}": value for name, value in LEAVES.items()}
    labels = {} if "classlabels_strings" in attributes else {"classlabels_int64s": [3, 5, 7]}
    given = {"class_ids": ids or [0, 1, 2, 0, 1], **labels, **TREE, **leaves, **numbers, **attributes}
    return ml("TreeEnsembleClassifier", x, **given).outputs(2)


def ensemble(x: Any = MIXED, dtype: Any = np.float32, **attributes: Any) -> Case:
    """The trees of ``TREE`` in the form of version 5."""
    given = {
        "nodes_featureids": [0, 1, 1],
        "nodes_splits": column(0.5, 0.25, 2, dtype=dtype),
        "nodes_modes": column(0, 0, 0, dtype=np.uint8),
        "nodes_truenodeids": [1, 0, 3],
        "nodes_falsenodeids": [2, 1, 4],
        "nodes_trueleafs": [0, 1, 1],
        "nodes_falseleafs": [1, 1, 1],
        "leaf_targetids": [0, 0, 0, 0, 0],
        "leaf_weights": column(20, 30, 10, 0.5, -0.5, dtype=dtype),
        "tree_roots": [0, 2],
        "n_targets": 1,
    }
    return ml("TreeEnsemble", x, **{**given, **attributes})


NO_BASE = "onnx.reference does not read base_values_as_tensor"

TREES = [
    regressor(),
    *(regressor(post_transform=how) for how in TRANSFORMS[1:]),
    *(regressor(aggregate_function=how) for how in ("SUM", "AVERAGE", "MIN", "MAX")),
    regressor(ids=[0, 1, 0, 1, 1], n_targets=2),
    *(regressor(ids=[0, 1, 0, 1, 1], n_targets=2, post_transform=how) for how in ("SOFTMAX", "LOGISTIC")),
    regressor(ids=[0, 1, 0, 1, 1], n_targets=2, base_values=[1.0, -2.0]).held_to(
        "reference", why="onnxruntime leaves out the base value of a target that no leaf adds to"
    ),
    *(regressor(base_values=[5.0], aggregate_function=how) for how in ("SUM", "AVERAGE", "MIN", "MAX")),
    regressor(nodes_hitrates=[1.0] * 8),
    regressor(nodes_hitrates_as_tensor=column(*[1] * 8)),
    regressor(base_values_as_tensor=column(5), nodes_missing_value_tracks_true=[0] * 8).held_to(
        "onnxruntime", why=NO_BASE
    ),
    regressor(floats(np.nan, 0, 0.5, np.nan).reshape(2, 2), nodes_missing_value_tracks_true=[1, 0, 0, 0, 0, 1, 0, 0]),
    regressor(MIXED.astype(np.float64), double=True),
    *(
        regressor(MIXED.astype(dtype)).giving(floats(20.5, 30.5, 9.5).reshape(3, 1))  # the reference adds up integers
        for dtype in (np.int32, np.int64)
    ),
    regressor(ids=[0, 1, 0, 1, 1], n_targets=2, aggregate_function="AVERAGE"),
    *(
        regressor(nodes_modes=[mode, mode, *["LEAF"] * 3, mode, *["LEAF"] * 2])
        for mode in ("BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ")
    ),
    regressor(nodes_modes=["BRANCH_LEQ", "BRANCH_GT", *["LEAF"] * 3, "BRANCH_EQ", *["LEAF"] * 2]),
    classifier(),
    *(classifier(post_transform=how) for how in TRANSFORMS[1:-1]),
    classifier(classlabels_strings=["x", "y", "z"]),
    classifier(base_values=[0.1, 0.2, 0.3]),
    classifier(base_values_as_tensor=column(0.1, 0.2, 0.3)).held_to("onnxruntime", why=NO_BASE),
    classifier(nodes_hitrates=[1.0] * 8, nodes_missing_value_tracks_true=[0] * 8),
    classifier(nodes_hitrates_as_tensor=column(*[1] * 8)),
    classifier(ids=[0, 0, 0, 0, 0], classlabels_int64s=[0, 1]).held_to(
        "onnxruntime", why="onnx.reference gives another label where one score stands for two classes"
    ),
    classifier(MIXED.astype(np.float64), double=True),
    *(classifier(MIXED.astype(dtype)) for dtype in (np.int32, np.int64)),
    ensemble(),
    *(ensemble(aggregate_function=how) for how in range(4)),
    *(ensemble(nodes_modes=column(*[mode] * 3, dtype=np.uint8)) for mode in range(1, 6)),
    ensemble(leaf_targetids=[0, 1, 0, 1, 1], n_targets=2),
    ensemble(post_transform=1).giving(np.ones((3, 1), np.float32)),  # of one target; of more, no oracle has softmax
    ensemble(nodes_missing_value_tracks_true=[1, 0, 1], nodes_hitrates=column(1, 1, 1)),
    ensemble(nodes_modes=column(6, 0, 0, dtype=np.uint8), membership_values=column(-1, 4, np.nan)),
    ensemble(nodes_modes=column(6, 0, 6, dtype=np.uint8), membership_values=column(2, np.nan, 0.5, 2, np.nan)),
    ensemble(MIXED.astype(np.float64), np.float64),
    ensemble(MIXED.astype(np.float64), np.float64, tree_roots=[0]),
    ensemble(MIXED.astype(np.float64), np.float64, aggregate_function=3),
    ensemble(MIXED.astype(np.float16), np.float16).held_to("reference", why="onnxruntime has no kernel of float16"),
]

ENCODERS = [
    ml("LabelEncoder", WORDS, keys_strings=["a", "b"], values_int64s=[0, 1]),
    ml("LabelEncoder", WORDS, keys_strings=["a", "b"], values_int64s=[0, 1], default_int64=-7),
    ml("LabelEncoder", ints(1, 0, 5), keys_int64s=[0, 1], values_strings=["a", "b"]),
    ml("LabelEncoder", ints(1, 0, 5), keys_int64s=[0, 1], values_strings=["a", "b"], default_string="?"),
    ml("LabelEncoder", ints(7, 8, 5), keys_int64s=[7, 8], values_strings=["a", "b"]),
    ml("LabelEncoder", ints(7, 8, 5), keys_int64s=[7, 8], values_floats=[0.5, 1.5], default_float=-2.0),
    ml("LabelEncoder", floats(0.5, 1.5, 9), keys_floats=[0.5, 1.5], values_strings=["a", "b"]),
    ml("LabelEncoder", floats(0.5, 1.5, 9), keys_floats=[0.5, 1.5], values_int64s=[3, 4]),
    ml("LabelEncoder", floats(0.5, 1.5, 9), keys_floats=[0.5, 1.5], values_floats=[3.0, 4.0]),
    ml("LabelEncoder", floats(0.5, np.nan, 9), keys_floats=[0.5, np.nan], values_strings=["a", "b"]).held_to(
        "onnxruntime", why="onnx.reference compares NaN with itself"
    ),
    ml("LabelEncoder", WORDS, keys_strings=["a", "b"], values_strings=["x", "y"]),
    ml("LabelEncoder", WORDS, keys_strings=["a", "b"], values_floats=[1.0, 2.0]),
    ml("LabelEncoder", ints(7, 8, 5), keys_int64s=[7, 8], values_int64s=[1, 2]),
    ml("LabelEncoder", i64(2, 3, low=0, high=3), keys_int64s=[0, 1, 2], values_strings=["a", "b", "c"]),
    *(
        ml("LabelEncoder", x, keys_tensor=keys, values_tensor=values, default_tensor=default)
        for x, keys, values, default in (
            (ints(3, 4, 9), column(3, 4, dtype=np.int64), column(0.5, 1.5), column(-1)),
            (WORDS, column("a", "b", dtype=str), column(0, 1, dtype=np.int64), column(9, dtype=np.int64)),
            (ints(0, 1, 9), column(0, 1, dtype=np.int64), column("a", "b", dtype=str), column("?", dtype=str)),
            (
                floats(1, 2, 3, dtype=np.float64),
                column(1, 2, dtype=np.float64),
                column("a", "b", dtype=str),
                column("?", dtype=str),
            ),
            (WORDS, column("a", "b", dtype=str), column(0, 1, dtype=np.int16), column(9, dtype=np.int16)),
            (
                floats(1, 2, 3, dtype=np.float64),
                column(1, 2, dtype=np.float64),
                column(3, 4, dtype=np.float64),
                column(5, dtype=np.float64),
            ),
        )
    ),
    ml("CategoryMapper", WORDS, cats_strings=["a", "b"], cats_int64s=[4, 5]),
    ml("CategoryMapper", WORDS, cats_strings=["a", "b"], cats_int64s=[4, 5], default_int64=-7),
    ml("CategoryMapper", ints(4, 5, 6), cats_strings=["a", "b"], cats_int64s=[4, 5], default_string="?"),
    *(ml("OneHotEncoder", make(2, 3, low=0, high=3), cats_int64s=[0, 1, 2, 3], zeros=1) for make in (i32, i64)),
    ml("OneHotEncoder", WORDS, cats_strings=["a", "b"], zeros=1),
    ml("OneHotEncoder", WORDS[:2], cats_strings=["a", "b"], zeros=0),
    ml("OneHotEncoder", floats(0, 1, 2), cats_int64s=[0, 1, 2]),
]

ONE_ROW = "onnx.reference gives a vector, not one row"
MAPS = [
    ml("CastMap", {1: 0.5, 3: 2.5}),
    ml("CastMap", {1: 0.5, 3: 2.5}, cast_to="TO_INT64"),
    ml("CastMap", {1: 0.5, 3: 2.5}, cast_to="TO_STRING"),
    ml("CastMap", {1: 0.5, 3: 2.5}, map_form="SPARSE", max_map=5),
    ml("DictVectorizer", {"a": 1.0, "c": 2.0}, string_vocabulary=["c", "b", "a"]).held_to("onnxruntime", why=ONE_ROW),
    ml("DictVectorizer", {4: 1.0, 6: 2.0}, int64_vocabulary=[4, 5, 6]).held_to("onnxruntime", why=ONE_ROW),
    ml("DictVectorizer", {"a": 1, "c": 2}, string_vocabulary=["c", "b", "a"]).giving(ints(2, 0, 1).reshape(1, 3)),
    ml("ZipMap", f32(2, 3), classlabels_strings=["a", "b", "c"]),
    ml("ZipMap", f32(2, 3), classlabels_int64s=[4, 5, 6]),
]

FEATURES = [
    *(ml("ArrayFeatureExtractor", make(2, 4), ints(0, 3, 1)) for make in NUMBERS),
    ml("ArrayFeatureExtractor", strings([["a", "b"], ["c", "d"]]), ints(1)),
    ml("ArrayFeatureExtractor", f32(4), ints(0, 3)),
    *(ml("Binarizer", make(2, 3)) for make in NUMBERS),
    ml("Binarizer", f32(2, 3), threshold=0.5),
    ml("FeatureVectorizer", f32(2, 3), f32(2, 1), inputdimensions=[3, 1]),
    *(single(ml("FeatureVectorizer", make(2, 3), make(2, 2), inputdimensions=[3, 2])) for make in (f64, i32, i64)),
    ml("Imputer", floats(1, np.nan, 3, 4).reshape(2, 2), imputed_value_floats=[7.0, 8.0], replaced_value_float=np.nan),
    ml("Imputer", floats(1, 0, 3, 0).reshape(2, 2), imputed_value_floats=[7.0], replaced_value_float=0.0),
    ml("Imputer", ints(1, -1, 3, -1).reshape(2, 2), imputed_value_int64s=[7, 8], replaced_value_int64=-1),
    *(single(ml("Normalizer", make(2, 3, low=1), norm=norm)) for make in NUMBERS for norm in ("MAX", "L1", "L2")),
    ml("Normalizer", f32(2, 3, low=1)),
    *(single(ml("Scaler", make(2, 3), offset=[1.0, 2.0, 3.0], scale=[0.5, 2.0, 4.0])) for make in NUMBERS),
    ml("Scaler", f32(2, 3), offset=[1.0], scale=[0.5]),
]


def linear(x: Draw | np.ndarray, **attributes: Any) -> Case:
    return ml("LinearRegressor", x, coefficients=[0.5, -1.0, 2.0], **attributes)


def summed(case: Case) -> Case:
    """The case with the sum it makes, in single precision; onnx.reference gives the type of the input."""
    sums = case.inputs[0].astype(np.float64) @ [0.5, -1.0, 2.0] + 0.25
    return case.giving(sums.astype(np.float32)[:, None])


def vectors(op_type: str, **attributes: Any) -> Case:
    """Two support vectors of two features."""
    common = {"support_vectors": [0.0, 1.0, 1.0, 0.5], "kernel_params": [0.5, 1.0, 2.0]}
    return ml(op_type, attributes.pop("x", UNIT), **{**common, **attributes})


MACHINES = [
    *(summed(linear(make(2, 3), intercepts=[0.25])) for make in NUMBERS),
    linear(f32(2, 3)).held_to("onnxruntime", why="onnx.reference needs intercepts"),
    *(linear(f32(2, 3), intercepts=[0.25], post_transform=how) for how in TRANSFORMS),
    ml("LinearRegressor", f32(2, 3), coefficients=[0.5, -1.0, 2.0, 1.0, 0.0, 3.0], intercepts=[1.0, 2.0],
       targets=2),
    *(
        ml("LinearClassifier", make(4, 2), coefficients=[0.5, -1.0, 2.0, 1.0, 0.0, 3.0], intercepts=[0.1, 0.2, 0.3],
           classlabels_ints=[3, 5, 7]).outputs(2)
        for make in (f32, i32, i64)
    ),
    *(
        ml("LinearClassifier", f32(4, 2), coefficients=[0.5, -1.0, 2.0, 1.0, 0.0, 3.0], intercepts=[0.1, 0.2, 0.3],
           classlabels_strings=["x", "y", "z"], post_transform=how, multi_class=many).outputs(2)
        for how in TRANSFORMS[:-1] for many in (0, 1)
    ),
    *(vectors("SVMRegressor", coefficients=[1.0, -0.5], rho=[0.25], n_supports=2, kernel_type=how) for how in KERNELS),
    *(
        vectors("SVMRegressor", coefficients=[1.0, -0.5], rho=[0.25], n_supports=2, post_transform=how)
        for how in ("NONE", "LOGISTIC")
    ),
    vectors("SVMRegressor", coefficients=[1.0, -0.5], rho=[0.25], n_supports=2, one_class=1),
    *(
        vectors("SVMClassifier", coefficients=[1.0, -0.5], rho=[0.25], vectors_per_class=[1, 1], kernel_type=how,
                classlabels_ints=[0, 1]).outputs(2)
        for how in KERNELS
    ),
    vectors("SVMClassifier", coefficients=[1.0, -0.5], rho=[0.25], vectors_per_class=[1, 1], prob_a=[-1.5],
            prob_b=[0.1], classlabels_strings=["x", "y"]).outputs(2),
    *(
        vectors("SVMClassifier", coefficients=[1.0, -0.5], rho=[0.25], vectors_per_class=[1, 1], post_transform=how,
                classlabels_ints=[0, 1]).outputs(2)
        for how in ("NONE", "LOGISTIC")
    ),
]  # fmt: skip

CASES = [*TREES, *ENCODERS, *MAPS, *FEATURES, *MACHINES]
