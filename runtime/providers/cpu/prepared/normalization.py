from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from entrepot.runtime.kernels.normalization import check_channels
from entrepot.runtime.node_view import NodeView
from entrepot.runtime.providers.cpu.prepared.constants import blas_constant
from entrepot.runtime.providers.cpu.table import prepared

Array: TypeAlias = np.ndarray[Any, Any]


@prepared("BatchNormalization", 15)
def batch_normalization(node: NodeView) -> Callable[..., tuple[Array, ...]] | None:
    """With constant statistics: one factor and one shift per channel."""
    known = [blas_constant(node, position) for position in range(1, 5)]
    scale, bias, mean, var = known
    if scale is None or bias is None or mean is None or var is None or node.attributes.get("training_mode"):
        return None
    if node.inputs[0] is None or node.inputs[0].dtype != scale.dtype:  # float16 may have float32 statistics
        return None
    with np.errstate(all="ignore"):
        wide = scale / np.sqrt(var.astype(np.float64) + node.attributes.get("epsilon", 1e-5))
        factor, shift = wide.astype(scale.dtype), (bias - mean * wide).astype(scale.dtype)
    if not (np.isfinite(factor).all() and np.isfinite(shift).all()):
        return None  # small inputs may bring it back into range, in the formula's own order
    columns: dict[int, tuple[Array, Array]] = {}

    def run(X: Array, *_: Array) -> tuple[Array, ...]:
        if factor.shape != X.shape[1:2] or X.ndim not in columns:
            check_channels(X.shape, scale.shape, bias.shape, mean.shape, var.shape)
            column = (-1, *[1] * max(X.ndim - 2, 0))
            columns[X.ndim] = factor.reshape(column), shift.reshape(column)
        by, plus = columns[X.ndim]
        y = X * by
        np.add(y, plus, out=y)
        return y, mean, var

    return run
