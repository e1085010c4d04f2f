"""Torch's own functions without anything around them, where the element type is one that it computes with."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch
from torch.nn import functional

from entrepot.runtime.node_view import NodeView
from entrepot.runtime.planning.growth import may_outgrow
from entrepot.runtime.providers.torch.table import prepared

_FLOATS = frozenset(np.dtype(kind) for kind in (np.float16, np.float32, np.float64))
_NUMBERS = _FLOATS | {np.dtype(kind) for kind in (np.int8, np.int16, np.int32, np.int64, np.uint8)}


def _known(node: NodeView, kinds: frozenset[np.dtype[Any]]) -> bool:
    return all(given is not None and given.dtype in kinds for given in node.inputs)


def _direct(function: Callable[..., Any], kinds: frozenset[np.dtype[Any]]) -> Callable[[NodeView], Any]:
    """A rule that takes the function as it is for these types; operands that outgrow each other ask for room first."""

    def rule(node: NodeView) -> Callable[..., Any] | None:
        shapes = [None if given is None else given.shape for given in node.inputs]
        alone = len(shapes) == 1 or not may_outgrow(shapes)
        return function if alone and _known(node, kinds) else None

    return rule


prepared("Add", 14)(_direct(torch.add, _NUMBERS))
prepared("Sub", 14)(_direct(torch.sub, _NUMBERS))
prepared("Mul", 14)(_direct(torch.mul, _NUMBERS))
prepared("Div", 14)(_direct(torch.div, _FLOATS))
prepared("Abs", 13)(_direct(torch.abs, _NUMBERS))
prepared("Greater", 13)(_direct(torch.gt, _NUMBERS))
prepared("GreaterOrEqual", 16)(_direct(torch.ge, _NUMBERS))
prepared("Less", 13)(_direct(torch.lt, _NUMBERS))
prepared("LessOrEqual", 16)(_direct(torch.le, _NUMBERS))
prepared("HardSwish", 22)(_direct(functional.hardswish, frozenset({np.dtype(np.float32)})))


@prepared("Gelu", 20)
def gelu(node: NodeView) -> Callable[..., Any] | None:
    """The function itself for its usual form."""
    return functional.gelu if not node.attributes and _known(node, _FLOATS) else None


@prepared("Swish", 24)
def swish(node: NodeView) -> Callable[..., Any] | None:
    """The function itself for its usual form."""
    return functional.silu if node.attributes.get("alpha", 1.0) == 1.0 and _known(node, _FLOATS) else None


@prepared("Reshape", 25)
def reshape(node: NodeView) -> Callable[..., Any] | None:
    """To a shape that is known and copies no axis."""
    given = node.inputs[1]
    wanted = None if given is None or given.constant is None else given.constant.tolist()
    if wanted is None or 0 in wanted or min(wanted, default=0) < -1 or wanted.count(-1) > 1:
        return None
    target = tuple(wanted)

    def to_shape(data: torch.Tensor, shape: Any) -> torch.Tensor:
        return data.reshape(target)

    return to_shape


@prepared("Transpose", 25)
def transpose(node: NodeView) -> Callable[..., Any] | None:
    """In an order that is known."""
    order = node.attributes.get("perm")
    return None if order is None else partial(torch.permute, dims=tuple(order))


@prepared("Softmax", 13)
def softmax(node: NodeView) -> Callable[..., Any] | None:
    """Along an axis that is known to be one."""
    given, axis = node.inputs[0], node.attributes.get("axis", -1)
    if given is None or given.shape is None or not -len(given.shape) <= axis < len(given.shape):
        return None
    return partial(torch.softmax, dim=axis)
