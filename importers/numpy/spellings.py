"""Operators that NumPy itself has: written as a reader would write them, where what they depend on is known."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from entrepot.runtime.planning.plan import Call, Spelling, Step, Value

_NUMPY = ("import numpy as np",)


def spelled(step: Step, call: Call) -> Call:
    """The same call, with a spelling if NumPy has one for it."""
    find = _SPELLINGS.get(step.op_type) if step.domain == "" and len(step.outputs) == 1 else None
    spelling = None if find is None else find(step)
    return call if spelling is None else replace(call, spelling=spelling)


def _constant(step: Step, position: int) -> np.ndarray | None:
    value: Value | None = step.inputs[position] if position < len(step.inputs) else None
    return None if value is None or not isinstance(value.constant, np.ndarray) else value.constant


def _reshape(step: Step) -> Spelling | None:
    """NumPy has no 0 for "as it was"."""
    shape = _constant(step, 1)
    if shape is None or 0 in shape.tolist():
        return None
    return Spelling("np.reshape({0}, {1})", _NUMPY, frozenset({1}))


def _transpose(step: Step) -> Spelling:
    return Spelling("np.transpose({0}, {perm})" if step.attributes.get("perm") else "np.transpose({0})", _NUMPY)


def _concat(step: Step) -> Spelling | None:
    if len(step.inputs) < 2:
        return None
    places = ", ".join(f"{{{place}}}" for place in range(len(step.inputs)))
    return Spelling(f"np.concatenate(({places}), {{axis}})", _NUMPY)


def _axes(function: str) -> Callable[[Step], Spelling | None]:
    def spelling(step: Step) -> Spelling | None:
        return None if _constant(step, 1) is None else Spelling(f"np.{function}({{0}}, {{1}})", _NUMPY, frozenset({1}))

    return spelling


_SPELLINGS: dict[str, Callable[[Step], Spelling | None]] = {
    "Reshape": _reshape,
    "Transpose": _transpose,
    "Concat": _concat,
    "Squeeze": _axes("squeeze"),
    "Unsqueeze": _axes("expand_dims"),
}
