"""Decision trees: sums over the leaves in which rows end."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from entrepot.ir.errors import InputError
from entrepot.runtime.providers.cpu.ensembles import Array, Attributes, Ensemble, aggregated, of_lists, of_tensors
from entrepot.runtime.providers.cpu.scores import logistic, named, transformed
from entrepot.runtime.providers.cpu.table import native

ML = "ai.onnx.ml"
_AGGREGATES = ("AVERAGE", "SUM", "MIN", "MAX")
_TRANSFORMS = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")


@native("TreeEnsemble", 5, domain=ML)
def tree_ensemble(
    X: Array, *, aggregate_function: int = 1, leaf_targetids: Any, leaf_weights: Any, membership_values: Any = None,
    n_targets: int | None = None, nodes_falseleafs: Any, nodes_falsenodeids: Any, nodes_featureids: Any,
    nodes_hitrates: Any = None, nodes_missing_value_tracks_true: Any = None, nodes_modes: Any, nodes_splits: Any,
    nodes_trueleafs: Any, nodes_truenodeids: Any, post_transform: int = 0, tree_roots: Any,
) -> Array:  # fmt: skip
    """Leaves and inner nodes in lists of their own."""
    return bound_ensemble(locals())(X)


@native("TreeEnsembleRegressor", 3, domain=ML)
def tree_ensemble_regressor(
    X: Array, *, aggregate_function: str = "SUM", base_values: Any = None, base_values_as_tensor: Any = None,
    n_targets: int | None = None, nodes_falsenodeids: Any = None, nodes_featureids: Any = None,
    nodes_hitrates: Any = None, nodes_hitrates_as_tensor: Any = None, nodes_missing_value_tracks_true: Any = None,
    nodes_modes: Any = None, nodes_nodeids: Any = None, nodes_treeids: Any = None, nodes_truenodeids: Any = None,
    nodes_values: Any = None, nodes_values_as_tensor: Any = None, post_transform: str = "NONE", target_ids: Any = None,
    target_nodeids: Any = None, target_treeids: Any = None, target_weights: Any = None,
    target_weights_as_tensor: Any = None,
) -> Array:  # fmt: skip
    """Single precision comes out, whatever comes in."""
    return bound_regressor(locals())(X)


@native("TreeEnsembleClassifier", 3, domain=ML)
def tree_ensemble_classifier(
    X: Array, *, base_values: Any = None, base_values_as_tensor: Any = None, class_ids: Any = None,
    class_nodeids: Any = None, class_treeids: Any = None, class_weights: Any = None,
    class_weights_as_tensor: Any = None, classlabels_int64s: Any = None, classlabels_strings: Any = None,
    nodes_falsenodeids: Any = None, nodes_featureids: Any = None, nodes_hitrates: Any = None,
    nodes_hitrates_as_tensor: Any = None, nodes_missing_value_tracks_true: Any = None, nodes_modes: Any = None,
    nodes_nodeids: Any = None, nodes_treeids: Any = None, nodes_truenodeids: Any = None, nodes_values: Any = None,
    nodes_values_as_tensor: Any = None, post_transform: str = "NONE",
) -> tuple[Array, Array]:  # fmt: skip
    """The label of the class with the largest score, and the scores."""
    return bound_classifier(locals())(X)


def bound_ensemble(attributes: Attributes) -> Callable[[Array], Array]:
    """The kernel of a TreeEnsemble."""
    trees = of_tensors(attributes)
    how = _named(_AGGREGATES, attributes.get("aggregate_function", 1))
    transform = _named(_TRANSFORMS, attributes.get("post_transform", 0))

    def run(X: Array) -> Array:
        return transformed(aggregated(trees, X, how)[0], transform).astype(X.dtype)

    return run


def _named(names: Sequence[str], number: int) -> str:
    if not 0 <= number < len(names):
        raise InputError(f"{number} is none of {', '.join(names)}")
    return names[number]


def bound_regressor(attributes: Attributes) -> Callable[[Array], Array]:
    """The kernel of a TreeEnsembleRegressor."""
    trees = of_lists(attributes, "target", attributes["n_targets"])
    base, how = _base(attributes), attributes.get("aggregate_function", "SUM")
    transform = attributes.get("post_transform", "NONE")
    if trees.n_targets == 1 and transform != "PROBIT":
        transform = "NONE"  # onnxruntime transforms several scores only

    def run(X: Array) -> Array:
        scores = aggregated(trees, X, how)[0]
        return transformed(scores + base if len(base) else scores, transform).astype(np.float32)

    return run


def bound_classifier(attributes: Attributes) -> Callable[[Array], tuple[Array, Array]]:
    """The kernel of a TreeEnsembleClassifier."""
    labels = list(attributes.get("classlabels_strings") or attributes.get("classlabels_int64s") or ())
    trees = of_lists(attributes, "class", len(labels))
    base, transform = _base(attributes), attributes.get("post_transform", "NONE")
    decide = _Two(trees, base, transform) if len(labels) == 2 else _Many(base, transform)

    def run(X: Array) -> tuple[Array, Array]:
        scores, voted = aggregated(trees, X, "SUM")
        index, scores = decide(scores.astype(trees.splits.dtype), voted)  # 0.2 + 0.3 is no more than 0.5
        return named(index, labels), scores.astype(np.float32)

    return run


def _base(attributes: Attributes) -> Array:
    tensor = attributes.get("base_values_as_tensor")
    return (
        np.array(attributes.get("base_values") or (), np.float64) if tensor is None else np.asarray(tensor, np.float64)
    )


class _Many:
    """The class with the largest score of those that have one."""

    def __init__(self, base: Array, transform: str) -> None:
        self._base, self._transform = base, transform

    def __call__(self, scores: Array, voted: Array) -> tuple[Array, Array]:
        if len(self._base):
            scores, voted = scores + self._base, np.ones_like(voted)
        index = np.where(voted, scores, -np.inf).argmax(1)
        return index, transformed(scores, self._transform)


class _Two:
    """Two classes, which onnxruntime decides between by one score where leaves vote for no more."""

    def __init__(self, trees: Ensemble, base: Array, transform: str) -> None:
        voted = trees.targets[trees.targets < trees.n_targets]
        self._one = len(np.unique(voted)) == 1
        self._least = 0.5 if (trees.weights >= 0).all() else 0.0
        self._base, self._transform = base, transform

    def __call__(self, scores: Array, voted: Array) -> tuple[Array, Array]:
        first, second, both = scores[:, 0], scores[:, 1], voted[:, 1]
        alone = ~both
        if len(self._base) == 2:
            told = self._base[1] + first
            first = np.where(both, -told, first + self._base[0])
            second = np.where(both, told, second + self._base[1])
            alone = np.zeros_like(both)
        elif len(self._base):
            if not self._one and alone.any():
                raise InputError("one base value for two classes is not defined where a row has votes for one only")
            first = first + self._base[0]
        index = (np.where(both, second, first) > (self._least if self._one else 0.0)).astype(np.intp)
        written = np.where(voted, np.stack([first, second], 1), 0.0)
        return index, np.where(alone[:, None], self._expanded(first), transformed(written, self._transform))

    def _expanded(self, score: Array) -> Array:
        """One score as two."""
        if self._transform == "LOGISTIC":
            return logistic(np.stack([-score, score], 1))
        if self._transform == "PROBIT":
            return np.stack([transformed(score[:, None], "PROBIT")[:, 0], np.zeros_like(score)], 1)
        return np.stack([1 - score if self._one and self._least else -score, score], 1)
