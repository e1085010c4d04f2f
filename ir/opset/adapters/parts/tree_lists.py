"""Trees of ai.onnx.ml 3, where leaves are nodes, written as the lists of TreeEnsemble 5.

TreeEnsemble 5 keeps inner nodes and leaves in lists of their own, and a leaf has one target: a tree with leaves of
several targets is repeated once per target.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import onnx_ir as ir

from entrepot.ir.opset.builder import OpBuilder

MODES = {"BRANCH_LEQ": 0, "BRANCH_LT": 1, "BRANCH_GTE": 2, "BRANCH_GT": 3, "BRANCH_EQ": 4, "BRANCH_NEQ": 5}
AGGREGATES = {"AVERAGE": 0, "SUM": 1, "MIN": 2, "MAX": 3}
TRANSFORMS = {"NONE": 0, "SOFTMAX": 1, "LOGISTIC": 2, "SOFTMAX_ZERO": 3, "PROBIT": 4}
SHARING = 16
"""By what factor a tree may grow where branches share nodes, as in chains of comparisons with one value."""

Place: TypeAlias = tuple[int, int]
Votes: TypeAlias = Mapping[int, float]


class _Row(NamedTuple):
    feature: int
    mode: str
    true: int
    false: int
    split: float
    missing: int


@dataclass(frozen=True)
class Trees:
    """Nodes and what leaves add to which target, both by tree and node."""

    nodes: dict[Place, _Row]
    votes: dict[Place, dict[int, float]]

    def roots(self) -> list[Place]:
        """The first node of each tree."""
        return list({place[0]: place for place in reversed(self.nodes)}.values())[::-1]

    def children(self) -> set[Place]:
        """The nodes that other nodes lead to."""
        inner = {place: row for place, row in self.nodes.items() if row.mode != "LEAF"}
        return {(place[0], child) for place, row in inner.items() for child in (row.true, row.false)}

    def leaves(self, root: Place) -> list[Votes]:
        """What each leaf of a tree adds."""
        found: list[Votes] = []
        pending, seen = [root], set[Place]()
        while pending:
            place = pending.pop()
            if place in seen:
                continue
            seen.add(place)
            row = self.nodes[place]
            if row.mode == "LEAF":
                found.append(self.votes.get(place, {}))
            else:
                pending += [(place[0], row.true), (place[0], row.false)]
        return found


def trees_of(op: OpBuilder, prefix: str, *, targets: int = 0) -> Trees:
    """The trees of a node; ``prefix`` is what its leaves' attributes begin with, ``target`` or ``class``.

    A leaf may name a target several times. Its weights are added, except where there is one target in all: there
    onnxruntime reads the first, and what skl2onnx writes of the paths through a forest of classes relies on it.
    """
    names = ("treeids", "nodeids", "featureids", "modes", "truenodeids", "falsenodeids")
    columns = [op.attr(f"nodes_{name}") for name in names]
    missing = op.attr("nodes_missing_value_tracks_true") or [0] * len(columns[0])
    rows = zip(*columns, numbers(op, "nodes_values"), missing, strict=True)
    nodes = {(tree, node): _Row(*row) for tree, node, *row in rows}
    votes: dict[Place, dict[int, float]] = defaultdict(dict)
    places = [op.attr(f"{prefix}_{name}") for name in ("treeids", "nodeids", "ids")]
    for tree, node, target, weight in zip(*places, numbers(op, f"{prefix}_weights"), strict=True):
        if (tree, node) not in nodes or nodes[tree, node].mode != "LEAF":
            op.refuse(f"node {node} of tree {tree} has a weight but is not a leaf")
        given = votes[tree, node]
        if targets != 1 or not given:
            given[target] = given.get(target, 0.0) + weight
    return Trees(nodes, votes)


def numbers(op: OpBuilder, name: str) -> list[float]:
    """An attribute that is a list of floats, or a tensor of doubles in its place."""
    tensor = op.attr(f"{name}_as_tensor")
    if tensor is not None:
        return list(tensor.numpy().ravel().tolist())
    return list(op.attr(name, []))


@dataclass
class Lists:
    """The attributes of the new form while they grow."""

    inner: list[dict[str, float]] = field(default_factory=list)
    targets: list[int] = field(default_factory=list)
    weights: list[float] = field(default_factory=list)
    roots: list[int] = field(default_factory=list)

    def leaf(self, target: int, weight: float) -> int:
        """Add a leaf and return its number."""
        self.targets.append(target)
        self.weights.append(weight)
        return len(self.targets) - 1


def grown(op: OpBuilder, trees: Trees, aggregate: str = "SUM") -> Lists:
    """The lists of all trees; those with leaves of several targets once per target."""
    lists, roots = Lists(), trees.roots()
    if not trees.children().isdisjoint(roots):
        op.refuse("its trees do not begin with their roots")
    for root in roots:
        for target in _repeated(op, trees.leaves(root), aggregate):
            _plant(op, lists, trees, root, target)
    if aggregate == "AVERAGE" and len(lists.roots) != len(roots):  # it divides by the number of trees
        lists.weights = [weight * len(lists.roots) / len(roots) for weight in lists.weights]
    return lists


def _repeated(op: OpBuilder, leaves: list[Votes], aggregate: str) -> Iterator[int | None]:
    """The target of each copy of a tree; ``None`` for that of each leaf."""
    targets = sorted({target for votes in leaves for target in votes})
    apart = max(map(len, leaves)) > 1
    if aggregate in ("MIN", "MAX") and any(len(votes) != (len(targets) if apart else 1) for votes in leaves):
        op.refuse(f"leaves of only some targets have no newer form under {aggregate}", hint="convert to ai.onnx.ml 4")
    yield from targets if apart else [None]


def _plant(op: OpBuilder, lists: Lists, trees: Trees, root: Place, target: int | None) -> None:
    """Add one tree, walked with a stack, since trees may be deep."""
    lists.roots.append(len(lists.inner))
    most = len(lists.inner) + SHARING * len(trees.nodes)
    pending: list[tuple[Place, dict[str, float], str]] = [(root, {}, "")]
    while pending:
        place, parent, side = pending.pop()
        row = trees.nodes[place]
        if row.mode == "LEAF" and parent:
            parent[f"{side}nodeids"], parent[f"{side}leafs"] = _leaf(lists, trees, place, target), 1
            continue
        if len(lists.inner) > most:
            op.refuse("its nodes form no tree: branches meet again", hint="convert to ai.onnx.ml 4")
        parent[f"{side}nodeids"], parent[f"{side}leafs"] = len(lists.inner), 0
        here = {"featureids": row.feature, "splits": row.split, "modes": MODES.get(row.mode, 0), "missing": row.missing}
        lists.inner.append(here)
        if row.mode == "LEAF":  # a tree of one leaf: both branches lead there
            leaf = _leaf(lists, trees, place, target)
            here |= {"truenodeids": leaf, "falsenodeids": leaf, "trueleafs": 1, "falseleafs": 1}
        else:
            pending += [((place[0], row.false), here, "false"), ((place[0], row.true), here, "true")]


def _leaf(lists: Lists, trees: Trees, place: Place, target: int | None) -> int:
    votes = trees.votes.get(place, {})
    if target is None:
        target = next(iter(votes), 0)
    return lists.leaf(target, votes.get(target, 0.0))


def ensemble(op: OpBuilder, lists: Lists, targets: int, aggregate: str = "SUM", transform: str = "NONE") -> ir.Value:
    """The lists as a TreeEnsemble on the node's input, which is cast where TreeEnsemble does not take its type."""
    x, dtype = op.x(), op.need_dtype(op.x())
    if dtype == ir.DataType.INT32:
        x, dtype = op.standard.Cast(x, to=int(ir.DataType.DOUBLE)), ir.DataType.DOUBLE
    if not dtype.is_floating_point():
        op.refuse("TreeEnsemble takes floats only", hint="Cast its input")

    def column(name: str) -> list[Any]:
        return [row[name] for row in lists.inner]

    integers = {
        f"nodes_{name}": [int(item) for item in column(name)]
        for name in ("featureids", "truenodeids", "falsenodeids", "trueleafs", "falseleafs")
    }
    result: ir.Value = op.TreeEnsemble(
        x,
        **integers,
        nodes_splits=ir.tensor(np.array(column("splits"), dtype.numpy())),
        nodes_modes=ir.tensor(np.array(column("modes"), np.uint8)),
        nodes_missing_value_tracks_true=[int(item) for item in column("missing")],
        leaf_targetids=lists.targets,
        leaf_weights=ir.tensor(np.array(lists.weights, dtype.numpy())),
        tree_roots=lists.roots,
        n_targets=targets,
        aggregate_function=AGGREGATES[aggregate],
        post_transform=TRANSFORMS[transform],
    )
    return result
