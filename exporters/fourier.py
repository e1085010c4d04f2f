"""A Fourier transform along one axis of pairs of reals, for exporters that write nodes."""

from __future__ import annotations

from typing import Any

import numpy as np

from entrepot.exporters.building import Builder


def transformed(build: Builder, pairs: Any, axis: int, *, inverse: bool = False) -> Any:
    """One axis, in float64 unless its size is a power of two: onnxruntime (1.31) loses digits there.

    It also takes the first axis for that of a batch.

    Args:
        build: Writes the nodes.
        pairs: Real and imaginary parts along the last axis.
        axis: Not the last one.
        inverse: Whether it is the transform back, which divides by the size.
    """
    size = None if pairs.shape is None else pairs.shape[axis]
    exact = isinstance(size, int) and size & (size - 1) == 0
    given = build.op("Unsqueeze", pairs if exact else build.cast(pairs, np.float64), [0])
    found = build.op("DFT", given, None, build.constant(np.array(axis + 1)), inverse=int(inverse))
    return build.cast(build.op("Squeeze", found, [0]), pairs.dtype)
