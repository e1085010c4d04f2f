"""What can be done to a fresh float32 result in place."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from entrepot.runtime.planning.plan import Step


@dataclass(frozen=True)
class Activation:
    """The end of a kernel.

    Attributes:
        change: Changes a tensor in place.
        post: What oneDNN calls it, with its numbers, where it computes the same of all that is not NaN.
        most: How far from zero its results are at most.
    """

    change: Callable[[Tensor], object]
    post: tuple[str, tuple[float, ...]] | None = None
    most: float = math.inf


def activation(step: Step) -> Activation | None:
    """A step as a change in place; ``None`` for what has no such form."""
    make = _MAKERS.get(step.op_type) if step.domain == "" else None
    known = None if step.outputs[0] is None else step.outputs[0].type
    if make is None or known is None or known.numpy != np.float32:
        return None
    return make(step)


def _clip(step: Step) -> Activation | None:
    """Clip to constant bounds, both present: ReLU6 as exporters write it."""
    bounds = [None if value is None else value.constant for value in step.inputs[1:]]
    if len(bounds) != 2 or not all(isinstance(bound, np.ndarray) and bound.size == 1 for bound in bounds):
        return None
    low, high = (float(bound.item()) for bound in bounds if bound is not None)

    def clip(x: Tensor) -> Tensor:
        return x.clamp_(low, high)

    return Activation(clip, ("hardtanh", (low, high)), max(-low, high)) if low <= high else Activation(clip)


def _swish(step: Step) -> Activation | None:
    return Activation(torch.ops.aten.silu_.default) if step.attributes.get("alpha", 1.0) == 1.0 else None


def _gelu(step: Step) -> Activation | None:
    approximate = step.attributes.get("approximate", "none")
    if approximate not in ("none", "tanh"):
        return None

    def gelu(x: Tensor) -> Tensor:
        return torch.ops.aten.gelu_.default(x, approximate=approximate)

    return Activation(gelu)


def _leaky_relu(step: Step) -> Activation:
    slope = step.attributes.get("alpha", 0.01)

    def leaky_relu(x: Tensor) -> Tensor:
        return torch.ops.aten.leaky_relu_.default(x, slope)

    return Activation(leaky_relu)


_MAKERS: dict[str, Callable[[Step], Activation | None]] = {
    "Relu": lambda step: Activation(torch.relu_, ("relu", ())),
    "Tanh": lambda step: Activation(torch.tanh_),
    "Sigmoid": lambda step: Activation(torch.sigmoid_),
    "HardSwish": lambda step: Activation(torch.ops.aten.hardswish_.default),
    "Clip": _clip,
    "Gelu": _gelu,
    "LeakyRelu": _leaky_relu,
    "Swish": _swish,
}
