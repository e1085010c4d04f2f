"""Weights drawn by NumPy, as variables with names."""

from __future__ import annotations

import numpy as np
import tensorflow as tf


class Weights:
    """Variables, the same at every time.

    Args:
        seed: Where the generator starts.
    """

    def __init__(self, seed: int = 0) -> None:
        self._random = np.random.default_rng(seed)

    def __call__(self, name: str, *shape: int) -> tf.Variable:
        """A variable whose products keep their size."""
        scale = np.sqrt(np.prod(shape[:-1])) or 1.0
        return tf.Variable((self._random.standard_normal(shape) / scale).astype(np.float32), name=name)


def rows(*shape: int, seed: int = 1) -> np.ndarray:
    """An input."""
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def tokens(*shape: int, high: int = 20, seed: int = 1) -> np.ndarray:
    """Numbers of tokens."""
    return np.random.default_rng(seed).integers(0, high, shape).astype(np.int32)
