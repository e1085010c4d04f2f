"""Classical machine learning: trees walked level by level for all rows and trees at once, and tables of categories."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from entrepot.ir.errors import InputError, UnsupportedOpError
from entrepot.runtime import room
from entrepot.runtime.providers.cpu.table import native

Array = np.ndarray[Any, Any]
_ML = "ai.onnx.ml"
_MEMBER = 6

_COMPARISONS: tuple[Callable[[Array, Array], Array], ...] = (
    np.less_equal, np.less, np.greater_equal, np.greater, np.equal, np.not_equal,
)  # fmt: skip
"""By the number of a node's mode."""


@native("TreeEnsemble", 5, domain=_ML)
def tree_ensemble(
    X: Array,
    *,
    leaf_targetids: Sequence[int],
    leaf_weights: Array,
    nodes_falseleafs: Sequence[int],
    nodes_falsenodeids: Sequence[int],
    nodes_featureids: Sequence[int],
    nodes_modes: Array,
    nodes_splits: Array,
    nodes_trueleafs: Sequence[int],
    nodes_truenodeids: Sequence[int],
    tree_roots: Sequence[int],
    aggregate_function: int = 1,
    membership_values: Array | None = None,
    n_targets: int | None = None,
    nodes_hitrates: Array | None = None,
    nodes_missing_value_tracks_true: Sequence[int] | None = None,
    post_transform: int = 0,
) -> Array:
    """What the leaf that each row reaches in each tree adds to its target."""
    rows, trees, inner = len(X), len(tree_roots), len(nodes_featureids)
    room.claim((rows, trees))
    true, false = (
        np.where(np.asarray(leaf, bool), np.asarray(child) + inner, child)
        for leaf, child in ((nodes_trueleafs, nodes_truenodeids), (nodes_falseleafs, nodes_falsenodeids))
    )
    missing = np.asarray(nodes_missing_value_tracks_true or [0] * inner, bool)
    decide = _Decisions(nodes_modes, nodes_splits, membership_values)
    at = np.tile(np.asarray(tree_roots, np.int64), (rows, 1))
    for _ in range(inner + 1):
        row, tree = np.nonzero(at < inner)
        if not len(row):
            break
        node = at[row, tree]
        value = X[row, np.asarray(nodes_featureids)[node]]
        goes = decide(node, value) | (np.isnan(value) & missing[node])
        at[row, tree] = np.where(goes, true[node], false[node])
    else:
        raise InputError("TreeEnsemble: a tree leads back to one of its nodes")
    found = _aggregated(at - inner, np.asarray(leaf_targetids), leaf_weights, n_targets or 1, aggregate_function)
    return _transformed(found.astype(X.dtype), post_transform)


class _Decisions:
    """Whether rows go where the condition of a node holds."""

    def __init__(self, modes: Array, splits: Array, members: Array | None) -> None:
        self._modes, self._splits = modes, splits
        self._kinds = np.unique(modes)
        if members is not None:
            sets = np.split(members, np.flatnonzero(np.isnan(members)))
            asked = np.flatnonzero(modes == _MEMBER)
            self._sets = {int(node): part[~np.isnan(part)] for node, part in zip(asked, sets, strict=False)}

    def __call__(self, node: Array, value: Array) -> Array:
        result = np.zeros(len(node), bool)
        for kind in self._kinds:
            chosen = np.flatnonzero(self._modes[node] == kind)
            if kind == _MEMBER:
                each = [value[at] in self._sets[int(node[at])] for at in chosen]
                result[chosen] = np.asarray(each, bool)
            else:
                result[chosen] = _COMPARISONS[kind](value[chosen], self._splits[node[chosen]])
        return result


def _aggregated(leaves: Array, targets: Array, weights: Array, count: int, how: int) -> Array:
    rows, trees = leaves.shape
    worth, target = weights[leaves], targets[leaves]
    if how in (0, 1):
        total = np.zeros((rows, count), weights.dtype)
        np.add.at(total, (np.arange(rows)[:, None], target), worth)
        return total / trees if how == 0 else total
    extreme, start = ((np.minimum, np.inf), (np.maximum, -np.inf))[how - 2]
    total = np.full((rows, count), start, weights.dtype)
    extreme.at(total, (np.arange(rows)[:, None], target), worth)
    return np.where(np.isinf(total), 0, total).astype(weights.dtype)


def _transformed(x: Array, how: int) -> Array:
    if how == 0:
        return x
    if how == 1:
        grown = np.exp(x - x.max(axis=1, keepdims=True))
        return np.asarray(grown / grown.sum(axis=1, keepdims=True))
    if how == 2:
        return np.asarray(1 / (1 + np.exp(-x)), x.dtype)
    raise UnsupportedOpError(f"TreeEnsemble: post_transform {how} has no kernel", hint="there are 0, 1 and 2")


@native("LabelEncoder", 4, domain=_ML)
def label_encoder(
    X: Array,
    *,
    default_float: float = -0.0,
    default_int64: int = -1,
    default_string: str = "_Unused",
    default_tensor: Array | None = None,
    keys_floats: Sequence[float] | None = None,
    keys_int64s: Sequence[int] | None = None,
    keys_strings: Sequence[str] | None = None,
    keys_tensor: Array | None = None,
    values_floats: Sequence[float] | None = None,
    values_int64s: Sequence[int] | None = None,
    values_strings: Sequence[str] | None = None,
    values_tensor: Array | None = None,
) -> Array:
    """The value of each key, or the default; a key that is NaN is found."""
    keys = _first(keys_tensor, keys_floats, keys_int64s, keys_strings)
    kinds = ((values_floats, default_float, np.float32), (values_int64s, default_int64, np.int64),
             (values_strings, default_string, object))  # fmt: skip
    values, default, dtype = next(
        (each for each in kinds if each[0] is not None),
        (values_tensor, default_tensor, None if values_tensor is None else values_tensor.dtype),
    )
    if values is None or len(keys) != len(values):
        raise InputError("LabelEncoder: as many keys as values are needed")
    if default_tensor is not None:
        default = np.asarray(default_tensor).reshape(-1)[0]
    known = {_key(key, X.dtype): value for key, value in reversed(list(zip(keys, values, strict=True)))}
    found = [known.get(_key(item, X.dtype), default) for item in X.reshape(-1)]
    return np.array(found, dtype).reshape(X.shape)


def _first(*given: Any) -> Sequence[Any]:
    return next((each for each in given if each is not None), ())


def _key(item: Any, dtype: Any) -> Any:
    """Numbers in the type of the input; NaN is one key."""
    if dtype.kind != "f":
        return item
    number = dtype.type(item)
    return "NaN" if np.isnan(number) else float(number)
