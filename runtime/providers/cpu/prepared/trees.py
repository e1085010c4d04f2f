"""Ensembles of trees, read once: their attributes are the model's weights."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from entrepot.runtime.node_view import NodeView
from entrepot.runtime.providers.cpu.native.trees import ML, bound_classifier, bound_ensemble, bound_regressor
from entrepot.runtime.providers.cpu.table import prepared


@prepared("TreeEnsemble", 5, domain=ML)
def tree_ensemble(node: NodeView) -> Callable[..., Any]:
    """In the form of version 5."""
    return bound_ensemble(node.attributes)


@prepared("TreeEnsembleRegressor", 3, domain=ML)
def tree_ensemble_regressor(node: NodeView) -> Callable[..., Any]:
    """In the older form, for numbers."""
    return bound_regressor(node.attributes)


@prepared("TreeEnsembleClassifier", 3, domain=ML)
def tree_ensemble_classifier(node: NodeView) -> Callable[..., Any]:
    """In the older form, for classes."""
    return bound_classifier(node.attributes)
