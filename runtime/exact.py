"""Products of 8-bit integers by a constant matrix, exact in float32, which the libraries multiply fastest."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from entrepot.runtime.node_view import NodeView

Array: TypeAlias = np.ndarray[Any, Any]

_LARGEST = 255
"""An 8-bit integer less its zero point."""

_EXACT = 1 << 24
"""Up to here float32 holds every integer, so that sums of them are exact in any order."""


def constant_matrix(node: NodeView) -> Array | None:
    """The second operand of a ``MatMulInteger`` less its zero point, in float64; ``None`` where it is not constant."""
    given = [node.inputs[at] if len(node.inputs) > at else None for at in (1, 3)]
    if any(value is not None and value.constant is None for value in given):
        return None
    matrix, zero = (None if value is None else value.constant for value in given)
    if matrix is None or matrix.ndim != 2 or not matrix.size:
        return None
    wide: Array = matrix.astype(np.float64)
    if zero is None:
        return wide
    if zero.ndim > 1 or zero.size not in (1, wide.shape[1]):
        return None
    return wide - zero.reshape(-1).astype(np.float64)


def pieces(matrix: Array) -> list[tuple[slice, Array]]:
    """Rows of a matrix of whole numbers in float32, as many at a time as any 8-bit integers multiply exactly by.

    Args:
        matrix: [inner, outer], of numbers up to 255 in size.

    Returns:
        Which rows, and the rows. Most weights need one piece.
    """
    found, start, length = [], 0, len(matrix)
    while start < length:
        sums = np.abs(matrix[start:]).cumsum(0).max(1) * _LARGEST
        end = start + max(1, int(np.searchsorted(sums, _EXACT)))
        found.append((slice(start, end), np.ascontiguousarray(matrix[start:end], np.float32)))
        start = end
    return found
