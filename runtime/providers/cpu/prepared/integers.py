"""Products of 8-bit integers by a constant matrix."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from entrepot.runtime.exact import constant_shape, pieces
from entrepot.runtime.node_view import NodeView
from entrepot.runtime.providers.cpu.native import matmul as native
from entrepot.runtime.providers.cpu.native.quantized import single
from entrepot.runtime.providers.cpu.products import matmul as spread
from entrepot.runtime.providers.cpu.table import prepared

Array: TypeAlias = np.ndarray[Any, Any]


@prepared("MatMulInteger", 10)
def matmul_integer(node: NodeView) -> Callable[..., Array] | None:
    """Exactly in float32, piece by piece where sums are too large for it."""
    shape = constant_shape(node)
    if shape is None:
        return None
    (inner, outer), parts = shape, pieces(node)

    def by_constant(A: Array, B: Array, a_zero_point: Array | None = None, b_zero_point: Array | None = None) -> Array:
        if not A.ndim or A.shape[-1] != inner or not A.size:
            return native.matmul_integer(A, B, a_zero_point, b_zero_point)
        left = A.astype(np.float32)
        if a_zero_point is not None:
            zero = single(a_zero_point).astype(np.float32)
            left = left - (zero.reshape(-1, 1) if zero.ndim == 1 else zero)
        rows = left.reshape(-1, inner)
        total: Array = sum(spread(rows[:, some], part).astype(np.int32) for some, part in parts)  # type: ignore[assignment]
        return total.reshape(*A.shape[:-1], outer)

    return by_constant
