"""What can be done to a fresh float32 result in place.

OneDNN would do some of these inside its kernels, and turn NaN into 0 there; a pass over what was just written costs
little.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import torch
from torch import Tensor

from entrepot.runtime.plan import Step

Activation: TypeAlias = Callable[[Tensor], object]
"""Changes a tensor in place."""


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

    return clip


def _swish(step: Step) -> Activation | None:
    return torch.ops.aten.silu_.default if step.attributes.get("alpha", 1.0) == 1.0 else None


def _gelu(step: Step) -> Activation | None:
    approximate = step.attributes.get("approximate", "none")
    if approximate not in ("none", "tanh"):
        return None

    def gelu(x: Tensor) -> Tensor:
        return torch.ops.aten.gelu_.default(x, approximate=approximate)

    return gelu


def _leaky_relu(step: Step) -> Activation:
    slope = step.attributes.get("alpha", 0.01)

    def leaky_relu(x: Tensor) -> Tensor:
        return torch.ops.aten.leaky_relu_.default(x, slope)

    return leaky_relu


_MAKERS: dict[str, Callable[[Step], Activation | None]] = {
    "Relu": lambda step: torch.relu_,
    "Tanh": lambda step: torch.tanh_,
    "Sigmoid": lambda step: torch.sigmoid_,
    "HardSwish": lambda step: torch.ops.aten.hardswish_.default,
    "Clip": _clip,
    "Gelu": _gelu,
    "LeakyRelu": _leaky_relu,
    "Swish": _swish,
}
