"""Random operators: NumPy's generators, seeded per call.

With a ``seed`` attribute a node gives the same numbers at every run, so a run can be repeated; without one, other
numbers each time. The specification leaves the generator open: two runtimes never agree on the values, only on their
distribution.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from entrepot.runtime import room
from entrepot.runtime.providers.cpu.table import native

Array = np.ndarray[Any, Any]


@native("RandomNormal", 22)
def random_normal(
    *, shape: list[int], dtype: int = 1, mean: float = 0.0, scale: float = 1.0, seed: float | None = None
) -> Array:
    """Draws from a normal distribution of the given mean and standard deviation."""
    room.claim(shape)
    return _cast(_generator(seed).normal(mean, scale, shape), dtype)


@native("RandomUniform", 22)
def random_uniform(
    *, shape: list[int], dtype: int = 1, low: float = 0.0, high: float = 1.0, seed: float | None = None
) -> Array:
    """Draws from ``low`` (inclusive) to ``high`` (exclusive)."""
    room.claim(shape)
    return _cast(_generator(seed).uniform(low, high, shape), dtype)


@native("RandomNormalLike", 22)
def random_normal_like(
    input: Array,
    *,
    dtype: int | None = None,
    mean: float = 0.0,
    scale: float = 1.0,
    seed: float | None = None,
) -> Array:
    """``RandomNormal`` in the shape of ``input``, and in its element type unless ``dtype`` says otherwise."""
    return _cast(np.asarray(_generator(seed).normal(mean, scale, input.shape)), dtype, input.dtype)


@native("RandomUniformLike", 22)
def random_uniform_like(
    input: Array,
    *,
    dtype: int | None = None,
    high: float = 1.0,
    low: float = 0.0,
    seed: float | None = None,
) -> Array:
    """``RandomUniform`` in the shape of ``input``, and in its element type unless ``dtype`` says otherwise."""
    return _cast(np.asarray(_generator(seed).uniform(low, high, input.shape)), dtype, input.dtype)


@native("Bernoulli", 22)
def bernoulli(input: Array, *, dtype: int | None = None, seed: float | None = None) -> Array:
    """1 with the probability that ``input`` gives, else 0."""
    draws = _generator(seed).uniform(0.0, 1.0, input.shape)
    return _cast(draws < input.astype(np.float64), dtype, input.dtype)


@native("Multinomial", 22)
def multinomial(
    input: Array,
    *,
    dtype: int = 6,
    sample_size: int = 1,
    seed: float | None = None,
) -> Array:
    """Class indices drawn from the unnormalised log-probabilities of each row (by the Gumbel-max rule)."""
    batch, classes = input.shape
    room.claim((batch, sample_size, classes))
    noise = _generator(seed).gumbel(size=(batch, sample_size, classes))
    return _cast(np.argmax(input[:, None, :].astype(np.float64) + noise, axis=-1), dtype)


def _generator(seed: float | None) -> np.random.Generator:
    # the attribute is a float: its bit pattern is the seed, so 0.1 and 0.2 differ
    return np.random.default_rng(None if seed is None else int(np.float32(seed).view(np.uint32)))


def _cast(values: Array, dtype: int | None, default: np.dtype[Any] | None = None) -> Array:
    if dtype is None:
        assert default is not None
        return values.astype(default)
    return values.astype(ir.DataType(dtype).numpy())
