"""Sums, means and extremes over constant axes: one call of a ufunc's reduction."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from entrepot.runtime.node_view import NodeView
from entrepot.runtime.providers.cpu.prepared.constants import BLAS_TYPES, Array, constant
from entrepot.runtime.providers.cpu.table import prepared

Kernel = Callable[..., Any]
_sum: Callable[..., Any] = np.add.reduce  # NumPy's stubs want a literal for ``keepdims``


def _axes(node: NodeView) -> tuple[int, ...] | None:
    """The constant axes to reduce; ``None`` when they are not constant, or mean something special."""
    axes = constant(node, 1)
    if axes is None or axes.size == 0:
        return None
    return tuple(axes.tolist())


def _is_plain(node: NodeView) -> bool:
    """Whether sums are taken in the data's own type."""
    return node.inputs[0] is not None and node.inputs[0].dtype in BLAS_TYPES


@prepared("ReduceSum", 13)
def reduce_sum(node: NodeView) -> Kernel | None:
    """The sum, for float32 and float64."""
    axes, keepdims = _axes(node), bool(node.attributes.get("keepdims", 1))
    if axes is None or not _is_plain(node):
        return None
    return lambda data, axes_: _sum(data, axes, keepdims=keepdims)


@prepared("ReduceMean", 18)
def reduce_mean(node: NodeView) -> Kernel | None:
    """The mean, for float32 and float64."""
    axes, keepdims = _axes(node), bool(node.attributes.get("keepdims", 1))
    if axes is None or not _is_plain(node):
        return None

    def kernel(data: Array, axes_: Array) -> Array:
        count = math.prod([data.shape[axis] for axis in axes])
        return _sum(data, axes, keepdims=keepdims) / data.dtype.type(count)

    return kernel
