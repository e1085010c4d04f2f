"""Run a builder reproducibly: Keras draws from Python's generator, and weights are set from one of their own."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np

from entrepot.models_zoo.registry import Built


def make(builder: Callable[..., Built], parameters: dict[str, Any]) -> Built:
    """Call ``builder``, and give its model weights and statistics that matter."""
    before = random.getstate()
    try:
        built = builder(**parameters)
    finally:
        random.setstate(before)
    draws = np.random.default_rng(20)
    for variable in built.module.variables:
        if variable.dtype.startswith("float"):
            variable.assign(_drawn(variable, draws))
    return built


def _drawn(variable: Any, draws: np.random.Generator) -> np.ndarray[Any, Any]:
    shape = tuple(variable.shape)
    if len(shape) < 2:  # scales, offsets and statistics
        return draws.uniform(0.5, 1.5, shape)
    return draws.standard_normal(shape) / np.prod(shape[:-1]) ** 0.5
