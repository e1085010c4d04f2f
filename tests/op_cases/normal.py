"""Arrays of normally distributed float32 that depend on their shape and name only, not on what was drawn before."""

from __future__ import annotations

import zlib

import numpy as np


def normal(*shape: int, of: str = "") -> np.ndarray:
    """The same each time; arrays of one shape that must not be equal have different names."""
    seed = zlib.crc32(f"{of}{shape}".encode())
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)
