"""Products of 8-bit integers by a constant matrix, exact in float32, which the libraries multiply fastest."""

from __future__ import annotations

import itertools
from typing import Any, TypeAlias

import numpy as np

from entrepot.runtime.node_view import NodeView

Array: TypeAlias = np.ndarray[Any, Any]

_LARGEST = 255
"""An 8-bit integer less its zero point."""

_EXACT = 1 << 24
"""Up to here float32 holds every integer, so that sums of them are exact in any order."""

_ROWS = 128
"""Rows that are always exact together, whatever is in them."""


def constant_shape(node: NodeView) -> tuple[int, int] | None:
    """The shape of the second operand of a ``MatMulInteger``; ``None`` where it or its zero point is not constant."""
    matrix, zero = (node.inputs[at] if len(node.inputs) > at else None for at in (1, 3))
    if matrix is None or matrix.constant is None or matrix.constant.ndim != 2 or not matrix.constant.size:
        return None
    inner, outer = matrix.constant.shape
    if zero is not None and (zero.constant is None or zero.constant.ndim > 1 or zero.constant.size not in (1, outer)):
        return None
    return inner, outer


def pieces(node: NodeView) -> list[tuple[slice, Array]]:
    """That operand less its zero point, as pieces that any 8-bit integers multiply exactly by.

    Args:
        node: With a ``constant_shape``.

    Returns:
        Which rows, and the rows in float32. Most weights are one piece.
    """
    matrix, zero = (node.inputs[at] if len(node.inputs) > at else None for at in (1, 3))
    assert matrix is not None
    assert matrix.constant is not None
    wide: Array = matrix.constant.astype(np.float32)
    if zero is not None and zero.constant is not None:
        wide -= zero.constant.reshape(-1).astype(np.float32)
    return [(rows, wide[rows]) for rows in exact_rows(wide)]


def exact_rows(matrix: Array) -> list[slice]:
    """As many rows at a time as no sum of leaves what float32 holds.

    Args:
        matrix: [inner, outer], of whole numbers up to 255 in size.
    """
    starts, sums = [0], np.zeros(matrix.shape[1])
    for start in range(0, len(matrix), _ROWS):
        own = np.abs(matrix[start : start + _ROWS]).sum(0)
        sums = sums + own
        if sums.max() * _LARGEST > _EXACT:
            starts.append(start)
            sums = own
    return [slice(*ends) for ends in itertools.pairwise([*starts, len(matrix)])]
