"""One call of ``tf.raw_ops``, as data; TensorFlow is imported when it is judged."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

CASES: list[RawCase] = []
"""Filled by ``add``, in the order in which the files of the corpus are imported."""

_COUNTS: Counter[str] = Counter()
_RANDOM = np.random.default_rng(0)


@dataclass(frozen=True)
class RawCase:
    """One operator with attributes and inputs.

    Attributes:
        name: ``reductions/Sum_3``: the file, the operator, and its number in the file.
        op: The operator.
        inputs: Arrays, or lists of them, by their names.
        attributes: By their names.
        known: Inputs that are constants of the graph.
        tolerance: Relative; ``None`` is that of the type.
        results: How many results count; others are unspecified.
        closed: Inputs whose sizes the graph states.
        steps: Inputs that are quantised, with their types.
        corpus: Always ``"raw_ops"``.
    """

    name: str
    op: str
    inputs: Mapping[str, Any]
    attributes: Mapping[str, Any] = field(default_factory=dict)
    known: frozenset[str] = frozenset()
    tolerance: float | None = None
    results: int | None = None
    closed: frozenset[str] = frozenset()
    steps: Mapping[str, str] = field(default_factory=dict)
    corpus: str = "raw_ops"


def add(
    op: str,
    attributes: Mapping[str, Any] | None = None,
    known: str = "",
    tolerance: float | None = None,
    results: int | None = None,
    closed: str = "",
    steps: Mapping[str, str] | None = None,
    **inputs: Any,
) -> None:
    """Enter a case of the file that calls this."""
    family = Path(sys._getframe(1).f_code.co_filename).stem
    _COUNTS[op] += 1
    names, sized = frozenset(known.split()), frozenset(closed.split())
    CASES.append(
        RawCase(
            f"{family}/{op}_{_COUNTS[op]}", op, inputs, attributes or {}, names, tolerance, results, sized, steps or {}
        )
    )


def normal(*shape: int, dtype: Any = np.float32) -> Any:
    """Numbers of a normal distribution."""
    return _RANDOM.standard_normal(shape).astype(dtype)


def share(*shape: int) -> Any:
    """Numbers between 0 and 1."""
    return _RANDOM.random(shape).astype(np.float32)


def whole(low: int, high: int, shape: Any, dtype: Any = np.int32) -> Any:
    """Whole numbers."""
    return _RANDOM.integers(low, high, shape).astype(dtype)


def ints(*values: Any) -> Any:
    """An int32 tensor."""
    return np.array(values[0] if len(values) == 1 and isinstance(values[0], list) else values, np.int32)
