"""TreeEnsemble of ai.onnx.ml 5 as a TreeEnsembleRegressor, whose leaves are nodes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import onnx_ir as ir

from entrepot.ir.opset.adapters.parts.tree_lists import AGGREGATES, MODES, SHARING, TRANSFORMS
from entrepot.ir.opset.builder import OpBuilder
from entrepot.ir.opset.rules import Replacement, decomposition

ML = "ai.onnx.ml"
WHAT = ("treeids", "nodeids", "featureids", "modes", "values", "missing_value_tracks_true")
COLUMNS = (*WHAT, "truenodeids", "falsenodeids")
TRUE, FALSE = len(WHAT), len(WHAT) + 1
Branch: TypeAlias = tuple[bool, int]
"""Whether it is a leaf, and its number among leaves or inner nodes."""


class _Inner(NamedTuple):
    """A node that compares with one number, or with each of a set."""

    feature: int
    mode: str
    numbers: list[float]
    missing: int
    true: Branch
    false: Branch


@decomposition("TreeEnsemble", 5, domain=ML)
def ensemble_as_regressor(op: OpBuilder, _node: ir.Node) -> Replacement:
    """Write leaves as nodes, and membership of a set as one comparison after the other."""
    x, dtype = op.x(), op.need_dtype(op.x())
    aggregate, roots = list(AGGREGATES)[op.attr("aggregate_function", 1)], op.attr("tree_roots")
    _need_single(op, dtype, alone=len(roots) == 1 or aggregate in ("MIN", "MAX"))
    attributes = _written(op, roots)
    if dtype == ir.DataType.DOUBLE:
        for name in ("nodes_values", "target_weights"):
            attributes[f"{name}_as_tensor"] = ir.tensor(np.array(attributes.pop(name), np.float64))
    y = op.TreeEnsembleRegressor(
        op.standard.Cast(x, to=int(ir.DataType.FLOAT)) if dtype == ir.DataType.FLOAT16 else x,
        **attributes,
        n_targets=op.attr("n_targets", max(op.attr("leaf_targetids")) + 1),
        aggregate_function=aggregate,
        post_transform=list(TRANSFORMS)[op.attr("post_transform", 0)],
    )
    return y if dtype == ir.DataType.FLOAT else op.standard.Cast(y, to=int(dtype))


def _need_single(op: OpBuilder, dtype: ir.DataType, *, alone: bool) -> None:
    """A TreeEnsembleRegressor returns floats: doubles may pass only if they are exact floats and are not added up."""
    if dtype != ir.DataType.DOUBLE:
        return
    weights = op.attr("leaf_weights").numpy()
    if not alone or op.attr("post_transform", 0) or (weights.astype(np.float32) != weights).any():
        op.refuse("its doubles would become floats there", hint="Cast to float around it")


def _written(op: OpBuilder, roots: list[int]) -> dict[str, Any]:
    """The attributes of all trees."""
    rows: list[list[Any]] = []
    leaves: list[tuple[int, int, int]] = []
    inner = _inner(op)
    for tree, root in enumerate(roots):
        _plant(op, inner, (tree, root), rows, leaves)
    written = {f"nodes_{name}": list(column) for name, column in zip(COLUMNS, zip(*rows, strict=True), strict=True)}
    trees, nodes, numbers = (list(column) for column in zip(*leaves, strict=True))
    targets, weights = op.attr("leaf_targetids"), op.attr("leaf_weights").numpy().ravel().tolist()
    return written | {
        "target_treeids": trees,
        "target_nodeids": nodes,
        "target_ids": [targets[number] for number in numbers],
        "target_weights": [weights[number] for number in numbers],
    }


def _inner(op: OpBuilder) -> list[_Inner]:
    names = ("featureids", "truenodeids", "falsenodeids", "trueleafs", "falseleafs")
    features, true, false, true_leaf, false_leaf = (op.attr(f"nodes_{name}") for name in names)
    modes, splits = (op.attr(f"nodes_{name}").numpy().ravel().tolist() for name in ("modes", "splits"))
    missing = op.attr("nodes_missing_value_tracks_true") or [0] * len(features)
    sets = _sets(op)
    return [
        _Inner(
            feature=features[n],
            mode="BRANCH_EQ" if mode == len(MODES) else list(MODES)[mode],
            numbers=next(sets) if mode == len(MODES) else [splits[n]],
            missing=missing[n],
            true=(bool(true_leaf[n]), true[n]),
            false=(bool(false_leaf[n]), false[n]),
        )
        for n, mode in enumerate(modes)
    ]


def _sets(op: OpBuilder) -> Iterator[list[float]]:
    """The members of each set; a set without any equals nothing, as NaN does."""
    members: list[float] = []
    given = op.attr("membership_values")
    for member in [] if given is None else given.numpy().ravel().tolist():
        if np.isnan(member):
            yield members or [member]
            members = []
        else:
            members.append(member)


def _plant(
    op: OpBuilder,
    inner: list[_Inner],
    place: tuple[int, int],
    rows: list[list[Any]],
    leaves: list[tuple[int, int, int]],
) -> None:
    """Write one tree; all comparisons of a node that tests a set lead to the same place."""
    tree, root = place
    start = len(rows)
    pending: list[tuple[Branch, list[list[Any]], int]] = [((False, root), [], 0)]
    while pending:
        (is_leaf, number), parents, column = pending.pop()
        first = len(rows) - start
        for parent in parents:
            parent[column] = first
        if is_leaf:
            leaves.append((tree, first, number))
            rows.append([tree, first, 0, "LEAF", 0.0, 0, 0, 0])
            continue
        if first > SHARING * sum(len(node.numbers) + 1 for node in inner):
            op.refuse("its nodes form no trees: branches meet again")
        node = inner[number]
        chain = [
            [tree, first + n, node.feature, node.mode, value, node.missing, 0, first + n + 1]
            for n, value in enumerate(node.numbers)
        ]
        rows.extend(chain)
        pending += [(node.false, chain[-1:], FALSE), (node.true, chain, TRUE)]
