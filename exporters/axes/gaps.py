"""Masks of ones with a gap: models skip a mask that leaves everything as it is, and then take one of any size."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from entrepot.exporters.arrays import Array, Arrays


def with_gaps(arrays: Arrays, tensors: Sequence[Array]) -> list[Array] | None:
    """The arrays, a zero at the beginning of those that may be masks; ``None`` if there are none.

    Args:
        arrays: The kind of the arrays.
        tensors: What a model takes.
    """
    found = [_with_gap(arrays, tensor) for tensor in tensors]
    if all(gapped is None for gapped in found):
        return None
    return [tensor if gapped is None else gapped for tensor, gapped in zip(tensors, found, strict=True)]


def _with_gap(arrays: Arrays, tensor: Array) -> Array | None:
    if len(tensor.shape) < 2 or arrays.kind(tensor) not in ("integer", "bool"):
        return None
    values = np.array(arrays.to_numpy(tensor))
    if values.size < 2 or not (values == 1).all():
        return None
    values.flat[0] = 0  # the one place that is there at every size
    return arrays.from_numpy(values)
