"""What can be done to a fresh result in place, while it is in cache."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from entrepot.runtime.planning.plan import Step
from entrepot.runtime.providers.cpu.blocks import SMALL

Array: TypeAlias = np.ndarray[Any, Any]
Activation: TypeAlias = Callable[[Array], object]
"""Changes an array in place."""

Epilogue: TypeAlias = Callable[[Array, "Array | None"], object]
"""Changes a tile of a result in place, given the same tile of what is added to it."""


def activation(step: Step) -> Activation | None:
    """A step as a change in place; ``None`` for what has no such form."""
    make = _MAKERS.get(step.op_type) if step.domain == "" else None
    return None if make is None or step.outputs[0] is None else make(step)


def of_tile(with_residual: bool, activate: Activation | None) -> Epilogue:
    """An addition and an activation as one epilogue."""

    def plain(tile: Array, residual: Array | None) -> None:
        assert activate is not None
        activate(tile)

    def add(tile: Array, residual: Array | None) -> None:
        np.add(tile, residual, tile)  # type: ignore[arg-type] # it is given where one was asked for

    def add_and_activate(tile: Array, residual: Array | None) -> None:
        np.add(tile, residual, tile)  # type: ignore[arg-type] # it is given where one was asked for
        assert activate is not None
        activate(tile)

    if not with_residual:
        return plain
    return add if activate is None else add_and_activate


def floor(step: Step) -> Array | None:
    """The 0-d zero that a Relu takes the maximum with; ``None`` for other steps and unknown element types."""
    known = None if step.outputs[0] is None or step.outputs[0].type is None else step.outputs[0].type.numpy
    return None if not step.is_a("Relu") or known is None or known.kind != "f" else np.zeros((), known)


def _relu(step: Step) -> Activation | None:
    zero = floor(step)
    if zero is None:
        return None

    highest = np.array(np.inf, zero.dtype)

    def relu(x: Array) -> None:
        if x.size > SMALL:
            x.clip(zero, highest, out=x)  # vectorised, unlike the maximum with a scalar
        else:
            np.maximum(x, zero, out=x)

    return relu


def _tanh(step: Step) -> Activation:
    def tanh(x: Array) -> None:
        np.tanh(x, x)

    return tanh


def _clip(step: Step) -> Activation | None:
    """Clip to constant bounds, both present: ReLU6 as exporters write it."""
    bounds = [None if value is None else value.constant for value in step.inputs[1:]]
    if len(bounds) != 2 or not all(isinstance(bound, np.ndarray) for bound in bounds):
        return None
    low: Any
    high: Any
    low, high = bounds

    def clip(x: Array) -> None:
        if x.size > SMALL:
            x.clip(low, high, out=x)
        else:
            np.minimum(np.maximum(x, low, out=x), high, out=x)

    return clip


_MAKERS: dict[str, Callable[[Step], Activation | None]] = {"Relu": _relu, "Tanh": _tanh, "Clip": _clip}
