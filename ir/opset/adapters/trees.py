"""Tree ensembles of ai.onnx.ml 3 in the form of version 5, and back.

| version | change |
|---|---|
| 5 | TreeEnsemble replaces TreeEnsembleRegressor and TreeEnsembleClassifier |

A classifier is an ensemble, the class of the largest score and the label of the class, as TreeEnsemble's description
says. Where a class has no score, or there are two classes only, runtimes do something else that was never written down.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from entrepot.ir.opset.adapters.parts.tree_lists import (
    AGGREGATES,
    TRANSFORMS,
    Trees,
    ensemble,
    grown,
    numbers,
    trees_of,
)
from entrepot.ir.opset.builder import OpBuilder
from entrepot.ir.opset.rules import Replacement, adapter, impossible

ML = "ai.onnx.ml"
SPELT = ("LOGISTIC", "SOFTMAX")
"""Transforms written as operators of their own: onnxruntime 1.31 confuses the two, if it has them at all."""
STAY = "convert to ai.onnx.ml 4, which differs in nothing else"

for _name in ("TreeEnsembleClassifier", "TreeEnsembleRegressor"):
    impossible(_name, 5, 3, f"{_name} 5 is deprecated and not in use", domain=ML)


@adapter("TreeEnsembleRegressor", 3, 5, domain=ML)
def regressor_up(op: OpBuilder, _node: ir.Node) -> Replacement:
    """Separate inner nodes from leaves; base values and some transforms become operators after it."""
    aggregate, transform = op.attr("aggregate_function", "SUM"), op.attr("post_transform", "NONE")
    if aggregate not in AGGREGATES or transform not in TRANSFORMS:
        op.refuse(f"aggregate_function='{aggregate}' or post_transform='{transform}' is not known")
    targets, base = op.attr("n_targets"), _base(op)
    inside = transform if targets == 1 or transform not in SPELT else "NONE"
    if inside != "NONE" and base is not None:
        op.refuse(f"base_values under post_transform='{transform}' have no newer form", hint=STAY)
    y = ensemble(op, grown(op, trees_of(op, "target", targets=targets), aggregate), targets, aggregate, inside)
    y = y if base is None else _with(op, y, base)
    return _in_single(op, y if inside == transform else _transformed(op, y, transform))


def _base(op: OpBuilder) -> np.ndarray[Any, Any] | None:
    values = numbers(op, "base_values")
    return np.array(values) if values else None


def _with(op: OpBuilder, y: ir.Value, base: np.ndarray[Any, Any]) -> ir.Value:
    result: ir.Value = op.standard.Add(y, op.const(base, dtype=_computed(op)))
    return result


def _computed(op: OpBuilder) -> ir.DataType:
    """The type of an ensemble's result: its input's, or double where that is an integer."""
    dtype = op.need_dtype(op.x())
    return dtype if dtype.is_floating_point() else ir.DataType.DOUBLE


def _in_single(op: OpBuilder, y: ir.Value) -> ir.Value:
    result: ir.Value = y if _computed(op) == ir.DataType.FLOAT else op.standard.Cast(y, to=int(ir.DataType.FLOAT))
    return result


@adapter("TreeEnsembleClassifier", 3, 5, domain=ML)
def classifier_up(op: OpBuilder, node: ir.Node) -> Replacement:
    """The scores of an ensemble, and the label of the class with the largest."""
    labels = op.attr("classlabels_strings") or op.attr("classlabels_int64s") or []
    transform = op.attr("post_transform", "NONE")
    if transform not in ("NONE", *SPELT):
        op.refuse(f"post_transform='{transform}' of a classifier has no newer form", hint=STAY)
    trees, base = trees_of(op, "class"), _base(op)
    _need_scores(op, trees, base, len(labels))
    scores = ensemble(op, grown(op, trees), len(labels))
    if base is not None:
        scores = _with(op, scores, base)
    label = _label(op, op.standard.ArgMax(scores, axis=1, keepdims=0), labels) if op.used(0) else None
    return [label, _in_single(op, _transformed(op, scores, transform))][: len(node.outputs)]


def _need_scores(op: OpBuilder, trees: Trees, base: np.ndarray[Any, Any] | None, classes: int) -> None:
    """Refuse where a class may have no score, or where two classes are decided in another way."""
    if base is not None and len(base) != classes:
        op.refuse(f"{len(base)} base_values for {classes} classes are not defined")
    leaves = [trees.leaves(root) for root in trees.roots()]
    scored = {index for each in leaves for index in range(classes) if all(index in votes for votes in each)}
    if classes < 2 or (classes == 2 and (op.used(0) or base is not None or len(scored) < classes)):
        op.refuse("what runtimes do with one or two classes was never specified", hint=STAY)
    positive = all(weight > 0 for votes in trees.votes.values() for weight in votes.values())
    if base is None and len(scored) < classes and not (positive and any(all(each) for each in leaves)):
        op.refuse("which class wins where one has no score was never specified", hint=STAY)


def _transformed(op: OpBuilder, scores: ir.Value, transform: str) -> ir.Value:
    if transform == "LOGISTIC":
        scores = op.standard.Sigmoid(scores)
    elif transform == "SOFTMAX":
        scores = op.standard.Softmax(scores, axis=1)
    return scores


def _label(op: OpBuilder, index: ir.Value, labels: list[Any]) -> ir.Value:
    places = list(range(len(labels)))
    if labels == places:
        return index
    values = {"values_strings" if isinstance(labels[0], str) else "values_int64s": labels}
    label: ir.Value = op.LabelEncoder(index, keys_int64s=places, **values)
    return label
