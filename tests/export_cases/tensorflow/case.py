"""A function of TensorFlow, the sample that it is exported with, and others that it is called with."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tests.export_cases.case import Built, Case

CASES: list[FunctionCase] = []
"""Filled by ``add``, in the order in which the files of the corpus are imported."""

_RANDOM = np.random.default_rng(0)


@dataclass(frozen=True)
class FunctionCase(Case):
    """One export of something that TensorFlow calls.

    Attributes:
        call: What computes the expected results; ``None`` for the thing itself.
        steps: What a step is worth in results that are rounded to steps.
    """

    call: Callable[..., Any] | None = None
    steps: float = 0.0

    def build(self) -> Built:
        """The same function and calls at every time."""
        return self.make()


def add(name: str, function: Any, *calls: Any, steps: float = 0.0) -> None:
    """Enter a function with its calls: tuples of arguments, or the only one; ``steps`` as of ``FunctionCase``."""
    family = Path(sys._getframe(1).f_code.co_filename).stem
    given = tuple(call if isinstance(call, tuple) else (call,) for call in calls)
    CASES.append(FunctionCase(f"{family}/{name}", "tensorflow", lambda: Built(function, given), steps=steps))


def normal(*shape: int) -> Any:
    """Numbers of a normal distribution."""
    return _RANDOM.standard_normal(shape).astype(np.float32)


def share(*shape: int) -> Any:
    """Numbers between 0 and 1."""
    return _RANDOM.random(shape).astype(np.float32)


def whole(low: int, high: int, *shape: int, dtype: Any = np.int32) -> Any:
    """Whole numbers."""
    return _RANDOM.integers(low, high, shape).astype(dtype)


def two(shape: tuple[int, ...], other: tuple[int, ...]) -> tuple[Any, Any]:
    """Two calls with one array each."""
    return normal(*shape), normal(*other)
