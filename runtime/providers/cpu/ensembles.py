"""Ensembles of decision trees: where each row ends in each tree, and what the leaves add up to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from entrepot.ir.errors import InputError

Array: TypeAlias = np.ndarray[Any, Any]
Attributes: TypeAlias = Mapping[str, Any]

MODES = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ", "BRANCH_MEMBER")
"""In the order in which version 5 numbers them."""

_LEAF = len(MODES)
_COMPARED = (np.less_equal, np.less, np.greater_equal, np.greater, np.equal, np.not_equal)
_MEMBER = MODES.index("BRANCH_MEMBER")
_AT_ONCE = 1 << 18
"""Places, one for each row and tree, that are looked at together."""


@dataclass(frozen=True)
class Ensemble:
    """Trees with their nodes in one list; a leaf is its own child.

    Attributes:
        roots: The node where each tree begins.
        features: Which column a node looks at.
        splits: What it compares with.
        modes: How, as an index of ``MODES``.
        children: ``[2, nodes]``, where a row goes if the comparison fails, and if it holds.
        missing: Whether NaN counts as if the comparison held.
        members: ``[nodes, most]``, the set of a node that asks for membership, filled up with NaN.
        targets: ``[nodes, most]``, what a leaf votes for; ``n_targets`` fills up.
        weights: The weight of each of these votes.
        n_targets: How many scores there are.
    """

    roots: Array
    features: Array
    splits: Array
    modes: Array
    children: Array
    missing: Array
    members: Array
    targets: Array
    weights: Array
    n_targets: int

    def votes(self, X: Array) -> Iterator[tuple[Array, Array, Array]]:
        """For each tree and each of a leaf's votes: the row, the target and the weight."""
        if X.ndim != 2:
            raise InputError(f"an ensemble of trees takes [rows, features], not an array of {X.ndim} axes")
        _check_places("nodes_featureids", self.features, X.shape[1])
        rows = np.arange(len(X))
        for start in range(0, len(X), step := max(1, _AT_ONCE // max(len(self.roots), 1))):
            at = self._leaves(X[start : start + step])
            for leaf in at.T:
                for target, weight in zip(self.targets[leaf].T, self.weights[leaf].T, strict=True):
                    yield rows[start : start + step], target, weight

    def _leaves(self, X: Array) -> Array:
        """The leaf of each row in each tree, ``[rows, trees]``."""
        at = np.tile(self.roots, (len(X), 1))
        rows = np.arange(len(X))[:, None]
        for _ in range(len(self.modes) + 1):
            x = X[rows, self.features[at]]
            holds = self._holds(x, at)
            if self._asks_for_nan:
                holds |= self.missing[at] & np.isnan(x)
            following = self.children[holds.view(np.uint8), at]
            if np.array_equal(at, following):
                return at
            at = following
        raise InputError("the trees have no end: a node is its own descendant")

    def _holds(self, x: Array, at: Array) -> Array:
        if len(self._used) == 1 and self._used[0] != _MEMBER:  # as in all ensembles that frameworks write
            return np.asarray(_COMPARED[self._used[0]](x, self.splits[at]))
        holds, modes, splits = np.zeros(x.shape, bool), self.modes[at], self.splits[at]
        for mode in self._used:
            here = modes == mode
            if mode == _MEMBER:
                holds[here] = (x[here][:, None] == self.members[at[here]]).any(1)
            else:
                holds[here] = _COMPARED[mode](x[here], splits[here])
        return holds

    @cached_property
    def _used(self) -> list[int]:
        return [mode for mode in np.unique(self.modes).tolist() if mode != _LEAF]

    @cached_property
    def _asks_for_nan(self) -> bool:
        return bool(self.missing.any())


def aggregated(ensemble: Ensemble, X: Array, how: str) -> tuple[Array, Array]:
    """The scores, ``[rows, targets]`` in double precision, and which of them a leaf voted for."""
    shape = len(X), ensemble.n_targets + 1  # the last one takes what fills up
    start = {"MIN": np.inf, "MAX": -np.inf}.get(how, 0.0)
    scores, voted = np.full(shape, start), np.zeros(shape, bool)
    combine: Any = {"MIN": np.minimum, "MAX": np.maximum}.get(how, np.add)
    for rows, targets, weights in ensemble.votes(X):
        scores[rows, targets] = combine(scores[rows, targets], weights)
        voted[rows, targets] = True
    scores, voted = scores[:, :-1], voted[:, :-1]
    if how == "AVERAGE":
        scores /= max(len(ensemble.roots), 1)
    return np.where(voted, scores, 0.0), voted


def of_lists(attributes: Attributes, prefix: str, n_targets: int) -> Ensemble:
    """The trees of TreeEnsembleRegressor and TreeEnsembleClassifier.

    Args:
        attributes: Of the node.
        prefix: Of the attributes that say what leaves vote for: ``target`` or ``class``.
        n_targets: How many scores there are.

    Raises:
        InputError: They contradict one another.
    """
    keys = list(zip(attributes["nodes_treeids"], attributes["nodes_nodeids"], strict=True))
    place = {key: index for index, key in enumerate(keys)}
    modes = np.array([_LEAF if mode == "LEAF" else MODES.index(mode) for mode in attributes["nodes_modes"]], np.intp)
    own = np.arange(len(keys))
    children = np.array([own, own])
    for side, name in enumerate(("nodes_falsenodeids", "nodes_truenodeids")):
        for index, (key, child) in enumerate(zip(keys, attributes[name], strict=True)):
            if modes[index] != _LEAF:
                children[side, index] = _found(place, (key[0], child))
    below = set(children[:, modes != _LEAF].ravel().tolist())
    voters = zip(attributes[f"{prefix}_treeids"], attributes[f"{prefix}_nodeids"], strict=True)
    voting = [_found(place, key) for key in voters]
    amounts = _numbers(attributes, f"{prefix}_weights")
    targets, weights = _listed(len(keys), voting, attributes[f"{prefix}_ids"], amounts, n_targets)
    return Ensemble(
        np.array([index for index in own if index not in below], np.intp),
        np.array(attributes["nodes_featureids"], np.intp), _numbers(attributes, "nodes_values"), modes, children,
        _flags(attributes, len(keys)), np.empty((len(keys), 0)), targets, weights, n_targets,
    )  # fmt: skip


def of_tensors(attributes: Attributes) -> Ensemble:
    """The trees of TreeEnsemble, whose leaves are a list of their own."""
    inner, leaves = len(attributes["nodes_featureids"]), len(attributes["leaf_targetids"])
    own = np.arange(inner + leaves)
    children = np.array([own, own])
    for side, word in enumerate(("false", "true")):
        child = np.array(attributes[f"nodes_{word}nodeids"], np.intp)
        ends = np.array(attributes[f"nodes_{word}leafs"], np.intp) != 0
        _check_places(f"nodes_{word}nodeids", child, np.where(ends, leaves, inner))
        children[side, :inner] = child + inner * ends
    splits = np.asarray(attributes["nodes_splits"])
    modes = np.asarray(attributes["nodes_modes"]).astype(np.intp)
    n_targets = attributes["n_targets"]
    targets, weights = _listed(
        inner + leaves, range(inner, inner + leaves), attributes["leaf_targetids"],
        np.asarray(attributes["leaf_weights"]), n_targets,
    )  # fmt: skip
    roots = np.array(attributes["tree_roots"], np.intp)
    _check_places("tree_roots", roots, inner)
    return Ensemble(
        roots, _padded(np.array(attributes["nodes_featureids"], np.intp), leaves), _padded(splits, leaves),
        np.concatenate([modes, np.full(leaves, _LEAF)]), children, _padded(_flags(attributes, inner), leaves),
        _members(modes, attributes.get("membership_values"), inner + leaves), targets, weights, n_targets,
    )  # fmt: skip


def _check_places(name: str, places: Array, count: Any) -> None:
    if (outside := (places < 0) | (places >= count)).any():
        raise InputError(f"{name} names {places[outside][0]}, which is not there")


def _found(place: Mapping[tuple[int, int], int], key: tuple[int, int]) -> int:
    if key not in place:
        raise InputError(f"tree {key[0]} has no node {key[1]}")
    return place[key]


def _numbers(attributes: Attributes, name: str) -> Array:
    """A list of single precision numbers, or the tensor that is given in its place."""
    tensor = attributes.get(f"{name}_as_tensor")
    return np.array(attributes.get(name) or (), np.float32) if tensor is None else np.asarray(tensor)


def _flags(attributes: Attributes, count: int) -> Array:
    given = attributes.get("nodes_missing_value_tracks_true") or ()
    return np.array(given, bool) if given else np.zeros(count, bool)


def _padded(values: Array, count: int) -> Array:
    return np.concatenate([values, np.zeros(count, values.dtype)])


def _listed(
    nodes: int, voting: Sequence[int], targets: Sequence[int], weights: Array, n_targets: int
) -> tuple[Array, Array]:
    """The votes of each node, side by side; of one that votes several times for the only target, the first.

    onnxruntime does so, and what skl2onnx writes of the paths through a forest of several classes relies on it.
    """
    votes: list[list[tuple[int, float]]] = [[] for _ in range(nodes)]
    for node, target, weight in zip(voting, targets, weights.tolist(), strict=True):
        if not 0 <= target < n_targets:
            raise InputError(f"a leaf votes for target {target} of {n_targets}")
        if n_targets > 1 or not votes[node]:
            votes[node].append((target, weight))
    most = max(map(len, votes), default=0)
    ids, amounts = np.full((nodes, most), n_targets, np.intp), np.zeros((nodes, most))
    for node, each in enumerate(votes):
        for at, (target, weight) in enumerate(each):
            ids[node, at], amounts[node, at] = target, weight
    return ids, amounts


def _members(modes: Array, values: Any, nodes: int) -> Array:
    """The sets of the nodes that have one, which stand one after the other with a NaN behind each."""
    asking = np.flatnonzero(modes == _MEMBER)
    if not len(asking):
        return np.empty((nodes, 0))
    listed = np.asarray(() if values is None else values)
    ends = np.flatnonzero(np.isnan(listed))
    sets = [part[~np.isnan(part)] for part in np.split(listed, ends + 1)][: len(asking)]
    if len(sets) < len(asking):
        raise InputError(f"membership_values has {len(sets)} sets for {len(asking)} nodes that ask for membership")
    found = np.full((nodes, max(map(len, sets))), np.nan, listed.dtype)
    for node, each in zip(asking, sets, strict=True):
        found[node, : len(each)] = each
    return found
