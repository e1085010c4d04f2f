"""Keys of random generators in a graph: the two words of a key are one number of 64 bits, so that it has its shape."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np


def is_key(array: Any) -> bool:
    """Whether an array, or an abstract one, holds keys."""
    dtype = getattr(array, "dtype", None)
    return dtype is not None and bool(jnp.issubdtype(dtype, jax.dtypes.prng_key))


def packed_key(array: Any) -> np.ndarray:
    """Keys as ``uint64``, the first word above."""
    words = np.asarray(jax.random.key_data(array)).astype(np.uint64)
    return (words[..., 0] << np.uint64(32)) | words[..., 1]
