"""Ensembles of decision trees: one operator finds the leaves, whose values are then looked up in full precision.

``TreeEnsembleRegressor`` adds in float32 in every version that files have. Here it is asked for the *number* of the
leaf in each tree, which float32 holds exactly, and compares as the library does: where inputs are float32, thresholds
are rounded down to float32, which changes no comparison; where they are float64, thresholds are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from entrepot.exporters.sklearn.array import Array, lifted

_MOST_LEAVES = 1 << 24


@dataclass
class Tree:
    """One tree; children of a leaf are -1.

    Attributes:
        left: The child where the comparison holds.
        right: The other child.
        feature: The column that is compared.
        threshold: What with.
        values: What each node is worth, in any shape; only leaves count.
        missing_left: Whether a missing value goes to the left.
        less: Whether a node's comparison is ``<`` instead of ``<=``.
    """

    left: np.ndarray[Any, Any]
    right: np.ndarray[Any, Any]
    feature: np.ndarray[Any, Any]
    threshold: np.ndarray[Any, Any]
    values: np.ndarray[Any, Any]
    missing_left: np.ndarray[Any, Any] | None = None
    less: bool = False
    leaves: np.ndarray[Any, Any] = field(init=False)

    def __post_init__(self) -> None:
        """Count the leaves."""
        self.leaves = np.flatnonzero(self.left == -1)


def leaf_values(x: Array, trees: Sequence[Tree]) -> Array:
    """What the leaf that each row reaches in each tree is worth: ``[rows, trees, ...]``."""
    offsets = np.cumsum([0, *(len(tree.leaves) for tree in trees[:-1])])
    table = np.concatenate([np.asarray(tree.values)[tree.leaves] for tree in trees])
    return lifted(x.build, table).take(leaf_numbers(x, trees) + offsets, 0)


def leaf_numbers(x: Array, trees: Sequence[Tree]) -> Array:
    """Which of its leaves each row reaches in each tree: ``[rows, trees]``."""
    if x.dtype not in (np.float32, np.float64):
        x = x.astype(np.float64)
    attributes = _attributes(trees, x.dtype)
    operator = {"domain": "ai.onnx.ml", "n_targets": len(trees), "aggregate_function": "SUM", **attributes}
    return x.op("TreeEnsembleRegressor", dtype=np.float32, shape=(x.shape[0], len(trees)), **operator).astype(np.int64)


def _attributes(trees: Sequence[Tree], dtype: Any) -> dict[str, Any]:
    counts = [len(tree.left) for tree in trees]
    leaf = np.concatenate([tree.left == -1 for tree in trees])
    modes = np.concatenate([np.full(len(tree.left), "BRANCH_LT" if tree.less else "BRANCH_LEQ") for tree in trees])
    missing = [
        np.zeros(len(tree.left)) if tree.missing_left is None else np.asarray(tree.missing_left) for tree in trees
    ]
    owner = np.repeat(np.arange(len(trees)), counts)
    number = np.concatenate([np.arange(count) for count in counts])
    return {
        "nodes_treeids": owner.tolist(),
        "nodes_nodeids": number.tolist(),
        "nodes_featureids": _joined([np.maximum(tree.feature, 0) for tree in trees], leaf),
        "nodes_modes": np.where(leaf, "LEAF", modes).tolist(),
        "nodes_truenodeids": _joined([tree.left for tree in trees], leaf),
        "nodes_falsenodeids": _joined([tree.right for tree in trees], leaf),
        "nodes_missing_value_tracks_true": _joined(missing, leaf),
        "target_treeids": owner[leaf].tolist(),
        "target_nodeids": number[leaf].tolist(),
        "target_ids": owner[leaf].tolist(),
        **_numbers("nodes_values", _thresholds(trees, leaf, dtype)),
        **_numbers("target_weights", np.concatenate([np.arange(len(t.leaves)) for t in trees]).astype(dtype)),
    }


def _joined(parts: Sequence[Any], leaf: np.ndarray[Any, Any]) -> list[int]:
    return np.where(leaf, 0, np.concatenate(parts)).astype(int).tolist()


def _thresholds(trees: Sequence[Tree], leaf: np.ndarray[Any, Any], dtype: Any) -> np.ndarray[Any, Any]:
    exact = np.where(leaf, 0.0, np.concatenate([tree.threshold for tree in trees]))
    if dtype == np.float64:
        return exact
    with np.errstate(over="ignore"):
        rounded = exact.astype(np.float32)
        lower = np.nextafter(rounded, np.float32(-np.inf))
        upper = np.nextafter(rounded, np.float32(np.inf))
    down = np.concatenate([np.full(len(tree.left), not tree.less) for tree in trees])
    # the largest float32 that is not above it, or for "<" the smallest that is not below
    return np.where(down, np.where(rounded > exact, lower, rounded), np.where(rounded < exact, upper, rounded))


def _numbers(name: str, values: np.ndarray[Any, Any]) -> dict[str, Any]:
    """As a list, which has been there longer, or as a tensor, which doubles need."""
    if values.dtype == np.float32:
        return {name: [float(value) for value in values]}
    import onnx_ir as ir

    return {f"{name}_as_tensor": ir.tensor(values, name=name)}
