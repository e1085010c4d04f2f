"""What If, Loop and Scan need of NumPy arrays."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Any

import numpy as np

from entrepot.ir.errors import ResourceLimitError
from entrepot.ir.limits import Limits
from entrepot.ir.typing.plain import Type
from entrepot.runtime.emitting.writer import Support
from entrepot.runtime.room import breathe, claim


def numpy_support(limits: Limits) -> Support:
    """Control flow over NumPy arrays, with loops bounded by ``limits``."""
    return Support(np.array(True), truth, number, trips_within(limits.loop_iterations), length, pick, stack)


def truth(condition: Any) -> bool:
    """A condition is one element of any rank."""
    return bool(np.asarray(condition).item())


def number(trip: int) -> np.ndarray[Any, Any]:
    """The iteration number that a loop body reads."""
    return np.array(trip, dtype=np.int64)


_SPENT: ContextVar[list[int]] = ContextVar("trips that the loops of this run have made")

_PACE = 64
"""Trips between two looks at the clock."""

_PAUSE = 0.05
"""Seconds between two looks at the memory: what bodies make adds up."""


def trips_within(limit: int) -> Callable[[Any], Iterator[int]]:
    """The range of a loop by its trip count, or ``None`` for one that only its condition ends; at most ``limit``."""

    def trips(count: Any) -> Iterator[int]:
        spent = _SPENT.get(None)
        if spent is None:  # a run has a context of its own, so this is its first loop
            _SPENT.set(spent := [0])
        looked = time.monotonic()
        wanted = sys.maxsize if count is None else int(np.asarray(count).item())
        for trip in range(wanted):
            if spent[0] >= limit:
                hint = "raise Limits(loop_iterations=...) if the model needs them"
                raise ResourceLimitError(f"its loops exceeded {limit} iterations", hint=hint)
            spent[0] += 1
            if trip % _PACE == _PACE - 1 and time.monotonic() - looked > _PAUSE:
                breathe()
                looked = time.monotonic()
            yield trip

    return trips


def length(*pairs: Any) -> int:
    """The common size of scanned arrays along their axes: ``length(x, axis, y, axis, ...)``."""
    sizes = {array.shape[axis] for array, axis in zip(pairs[::2], pairs[1::2], strict=True)}
    if len(sizes) != 1:
        raise ValueError(f"scanned inputs have different lengths: {sorted(sizes)}")
    return sizes.pop()


def pick(array: np.ndarray[Any, Any], index: int, axis: int) -> np.ndarray[Any, Any]:
    """One slice of a scanned input, an array also where it has no axes left."""
    return array[index, ...] if axis == 0 else array[(slice(None),) * (axis % array.ndim) + (index, ...)]


def stack(items: list[Any], axis: int, kind: Type | None) -> np.ndarray[Any, Any]:
    """A scan output; without iterations it is empty, its other sizes as declared and 0 where they are not."""
    if items:
        claim((len(items), items[0].nbytes), 1)
        return np.stack(items, axis)
    if kind is None or kind.numpy is None:
        raise ValueError("a loop ran no iteration, and the type of its scan output is not declared")
    shape = [dim if isinstance(dim, int) else 0 for dim in kind.shape or ()]
    shape.insert(axis % (len(shape) + 1), 0)
    return np.empty(shape, kind.numpy)
