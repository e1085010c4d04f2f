"""A convolution over channels that come from two tensors: the sum of one over each, so that they are never copied."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from entrepot.runtime.node_view import InputView, NodeView
from entrepot.runtime.providers.torch.constants import float_constant
from entrepot.runtime.providers.torch.convolution import LARGE, conv_with
from entrepot.runtime.providers.torch.epilogues import Activation


def conv_of_two(node: NodeView, channels: int, activate: Activation | None) -> Callable[..., Tensor] | None:
    """The callable takes both tensors, then W and B; ``None`` where weights or bias are not constant float32.

    Args:
        node: The convolution.
        channels: How many channels the first tensor is declared to have.
        activate: Changes the result in place.
    """
    weights, whole = float_constant(node, 1), conv_with(node, activate)
    if weights is None or whole is None or weights.ndim != 4 or node.attributes.get("group", 1) != 1:
        return None
    second = conv_with(_by(node, weights[:, channels:], node.inputs[2:]), None)
    first = conv_with(_by(node, weights[:, :channels], ()), activate, onto=True)
    if first is None or second is None:
        return None
    rest = weights.shape[1] - channels

    def run(x: Tensor, z: Tensor, *_: Tensor | None) -> Tensor:
        fits = x.shape[1:2] == (channels,) and z.shape[1:2] == (rest,) and x.shape[2:] == z.shape[2:]
        if not fits or x.shape[0] != z.shape[0] or x.numel() < LARGE:
            return whole(torch.cat((x, z), 1))
        return first(x, None, None, second(z))

    return run


def _by(node: NodeView, weights: Any, bias: tuple[InputView | None, ...]) -> NodeView:
    """The same convolution by a part of its weights."""
    assert node.inputs[1] is not None
    part = replace(node.inputs[1], constant=weights, shape=weights.shape)
    return replace(node, inputs=(node.inputs[0], part, *bias))
