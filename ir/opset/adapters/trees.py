"""Tree ensembles of ai.onnx.ml 3 in the form of version 5.

TreeEnsemble 5 keeps inner nodes and leaves in lists of their own, and a leaf has one target: a tree whose leaves have
several is repeated once per target. TreeEnsembleClassifier stays: what a runtime makes of two classes with one score
was never written down.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import onnx_ir as ir

from entrepot.ir.opset.builder import OpBuilder
from entrepot.ir.opset.rules import Replacement, adapter, impossible

ML = "ai.onnx.ml"
MODES = {"BRANCH_LEQ": 0, "BRANCH_LT": 1, "BRANCH_GTE": 2, "BRANCH_GT": 3, "BRANCH_EQ": 4, "BRANCH_NEQ": 5}
AGGREGATES = {"AVERAGE": 0, "SUM": 1, "MIN": 2, "MAX": 3}
Node: TypeAlias = tuple[int, int]

impossible(
    "TreeEnsembleClassifier",
    3,
    5,
    "it was deprecated without a form that is defined for every case",
    hint="convert to ai.onnx.ml 4, which differs in nothing else",
    domain=ML,
)
for _name in ("TreeEnsembleClassifier", "TreeEnsembleRegressor"):
    impossible(_name, 5, 3, f"{_name} 5 is deprecated and not in use", domain=ML)


@dataclass
class _Lists:
    """The attributes of the new form while they grow."""

    inner: list[dict[str, float]] = field(default_factory=list)
    targets: list[int] = field(default_factory=list)
    weights: list[float] = field(default_factory=list)
    roots: list[int] = field(default_factory=list)

    def leaf(self, target: int, weight: float) -> int:
        self.targets.append(target)
        self.weights.append(weight)
        return len(self.targets) - 1


@adapter("TreeEnsembleRegressor", 3, 5, domain=ML)
def regressor_up(op: OpBuilder, _node: ir.Node) -> Replacement:
    """Sort inner nodes from leaves; the base values are added behind."""
    transform, base = op.attr("post_transform", "NONE"), _numbers(op, "base_values")
    if transform != "NONE":
        op.refuse(f"post_transform='{transform}' has no exact newer form", hint="convert to ai.onnx.ml 4")
    leaves = _leaves(op)
    aggregate = op.attr("aggregate_function", "SUM")
    if aggregate != "SUM" and max(map(len, leaves.values())) > 1:
        op.refuse(f"leaves of several targets under {aggregate} have no newer form", hint="convert to ai.onnx.ml 4")
    y = _ensemble(op, _grow(op, leaves), AGGREGATES[aggregate])
    if base is not None:
        y = op.standard.Add(y, op.const(base, like=op.x()))
    return y if op.need_dtype(op.x()) == ir.DataType.FLOAT else op.standard.Cast(y, to=int(ir.DataType.FLOAT))


def _numbers(op: OpBuilder, name: str) -> np.ndarray[Any, Any] | None:
    tensor = op.attr(f"{name}_as_tensor")
    if tensor is not None:
        return np.asarray(tensor.numpy())
    values = op.attr(name)
    return None if values is None else np.array(values, np.float32)


def _leaves(op: OpBuilder) -> dict[Node, dict[int, float]]:
    """(tree, node) to the weight of each of its targets."""
    found: dict[Node, dict[int, float]] = defaultdict(dict)
    weights = _numbers(op, "target_weights")
    places = zip(op.attr("target_treeids"), op.attr("target_nodeids"), op.attr("target_ids"), strict=True)
    for place, weight in zip(places, [] if weights is None else weights.tolist(), strict=True):
        found[place[:2]][place[2]] = found[place[:2]].get(place[2], 0.0) + weight
    return found


def _grow(op: OpBuilder, leaves: dict[Node, dict[int, float]]) -> _Lists:
    names = ("treeids", "nodeids", "featureids", "modes", "truenodeids", "falsenodeids")
    columns = [op.attr(f"nodes_{name}") for name in names]
    splits = _numbers(op, "nodes_values")
    missing = op.attr("nodes_missing_value_tracks_true") or [0] * len(columns[0])
    rows = zip(*columns, [] if splits is None else splits.tolist(), missing, strict=True)
    nodes = {(tree, node): row for tree, node, *row in rows}
    lists = _Lists()
    children = {(tree, child) for (tree, _), row in nodes.items() if row[1] != "LEAF" for child in row[2:4]}
    for root in [place for place in nodes if place not in children]:
        targets = sorted({t for place, given in leaves.items() if place[0] == root[0] for t in given})
        for target in targets:
            _plant(lists, nodes, leaves, root, target)
    return lists


def _plant(
    lists: _Lists, nodes: dict[Node, list[Any]], leaves: dict[Node, dict[int, float]], root: Node, target: int
) -> None:
    """Add one tree for one target; walked with a stack, since trees may be deep."""
    lists.roots.append(len(lists.inner))
    pending: list[tuple[Node, dict[str, float] | None, str]] = [(root, None, "")]
    while pending:
        place, parent, side = pending.pop()
        feature, mode, true, false, split, missing = nodes[place]
        weight = leaves.get(place, {}).get(target, 0.0)
        if mode == "LEAF" and parent is not None:
            parent[f"{side}nodeids"], parent[f"{side}leafs"] = lists.leaf(target, weight), 1
            continue
        row = {"featureids": feature, "splits": split, "modes": MODES.get(mode, 0), "missing": missing}
        if parent is not None:
            parent[f"{side}nodeids"], parent[f"{side}leafs"] = len(lists.inner), 0
        lists.inner.append(row)
        if mode == "LEAF":  # a tree of one leaf: both ways lead there
            leaf = lists.leaf(target, weight)
            row |= {"truenodeids": leaf, "falsenodeids": leaf, "trueleafs": 1, "falseleafs": 1}
        else:
            pending += [((place[0], false), row, "false"), ((place[0], true), row, "true")]


def _ensemble(op: OpBuilder, lists: _Lists, aggregate: int) -> ir.Value:
    x = op.x()
    dtype = op.need_dtype(x)
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
        n_targets=op.attr("n_targets"),
        aggregate_function=aggregate,
        post_transform=0,
    )
    return result
