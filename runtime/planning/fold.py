"""Steps that always give the same result are run once, when the session is made."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from entrepot.ir.typing import plain
from entrepot.ir.typing.plain import nbytes
from entrepot.runtime.arrays import array_of
from entrepot.runtime.memory import free_bytes
from entrepot.runtime.planning.plan import Step, Value, as_tuple
from entrepot.runtime.room import SMALL

MAX_BYTES = 1 << 24
"""A growing operator's result is folded up to this size."""

KERNEL_ERRORS = (ArithmeticError, AttributeError, LookupError, MemoryError, RuntimeError, TypeError, ValueError)
"""What a kernel given the wrong values raises."""


class Growth:
    """How much larger constants may become together: weights of a few bits, once unpacked, take eight times as much."""

    MOST = 1 << 33
    """Bytes; more is unpacked in each run, as is what would take more than a quarter of the memory that is left."""

    def __init__(self) -> None:
        self._grown = 0.0

    @functools.cached_property
    def _most(self) -> int:
        return min(self.MOST, free_bytes() // 4)

    def allows(self, step: Step) -> bool:
        """Whether there is room for what a step makes of its constants, of which as much is noted as is known."""
        made = sum(size for value in step.outputs if (size := _size(value)) != float("inf"))
        given = sum(value.constant.nbytes for value in step.inputs if value is not None)
        grown = self._grown + max(made - given, 0)
        if grown > SMALL and grown > self._most:
            return False
        self._grown = grown
        return True


def fold(step: Step, evaluate: Callable[[Step], Any], growth: Growth) -> bool:
    """Make the step's outputs constants, if they are the same in every run; whether that was done."""
    if not _foldable(step) or not growth.allows(step):
        return False
    try:
        results = as_tuple(evaluate(step))
    except KERNEL_ERRORS:
        return False  # reported when it runs, if it runs
    if any(isinstance(result, list) or result is None for result in results):
        return False  # sequences and optionals stay run-time values
    for output, result in zip(step.outputs, results, strict=False):
        if output is not None:
            _fix(output, array_of(result))
    return True


def _foldable(step: Step) -> bool:
    known = step.traits
    if not (known.repeats and step.inputs):
        return False
    if any(value is not None and not isinstance(value.constant, np.ndarray) for value in step.inputs):
        return False
    return not known.grows or _size(step.outputs[0]) <= MAX_BYTES


def _size(value: Value | None) -> float:
    kind = None if value is None else value.type
    return float("inf") if kind is None else nbytes(kind.dtype, kind.shape)


def _fix(output: Value, array: np.ndarray[Any, Any]) -> None:
    array = array.view()  # a view of a constant always has a base: a result without one is fresh
    array.flags.writeable = False
    output.constant = array
    output.type = plain.of_array(array)
