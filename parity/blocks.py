"""Arrays of any size, read piece by piece, so that a comparison needs little memory."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

BLOCK = 1 << 17
"""Elements per piece: its float64 temporaries (1 MiB each) stay in the cache."""


def blocks(*arrays: np.ndarray) -> Iterator[tuple[np.ndarray, ...]]:
    """Equal pieces of arrays of one size, each flat and in C order."""
    flat = [array.reshape(-1) if array.flags.c_contiguous else array.flat for array in arrays]
    for start in range(0, arrays[0].size, BLOCK):
        yield tuple(array[start : start + BLOCK] for array in flat)
