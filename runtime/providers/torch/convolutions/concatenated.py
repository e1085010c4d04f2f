"""A convolution over channels that come from two tensors: the sum of one over each, so that they are never copied."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from entrepot.runtime.node_view import InputView, NodeView
from entrepot.runtime.providers.torch.constants import float_constant
from entrepot.runtime.providers.torch.convolutions.convolution import Convolution, conv_with
from entrepot.runtime.providers.torch.convolutions.packed import LARGE
from entrepot.runtime.providers.torch.epilogues import Activation
from entrepot.runtime.providers.torch.measuring.chooser import Chooser


def conv_of_two(
    node: NodeView,
    channels: int,
    activation: Activation | None,
    *,
    is_told: tuple[bool, bool] = (False, False),
    chooser: Chooser | None = None,
) -> OfTwo | None:
    """``None`` where weights or bias are not constant float32.

    Args:
        node: The convolution.
        channels: How many channels the first tensor is declared to have.
        activation: Its end.
        is_told: Whether each tensor is the result of such a convolution as it left it.
        chooser: Measures which kernel is fastest; by default sizes decide.
    """
    weights, whole = float_constant(node, 1), conv_with(node, activation, chooser=chooser)
    if weights is None or whole is None or weights.ndim != 4 or node.attributes.get("group", 1) != 1:
        return None
    rest, start = _by(node, weights[:, channels:], node.inputs[2:]), _by(node, weights[:, :channels], ())
    second = conv_with(rest, None, is_told=(is_told[1], False), chooser=chooser)
    first = conv_with(start, activation, is_told=(is_told[0], True), chooser=chooser)
    if first is None or second is None:
        return None
    return OfTwo(whole, first.over_last(), second, channels, weights.shape[1] - channels)


class OfTwo:
    """It takes both tensors, then W and B.

    Args:
        whole: The convolution over the channels of both.
        first: Over those of the first tensor, onto what it is given last.
        second: Over those of the second.
        channels: How many channels the first tensor is declared to have.
        rest: How many the second has.
    """

    def __init__(self, whole: Convolution, first: Convolution, second: Convolution, channels: int, rest: int) -> None:
        self.__name__ = "concat_conv"
        self._whole, self._first, self._second, self._channels = whole, first, second, (channels, rest)

    def __call__(self, x: Tensor, z: Tensor, *_: Tensor | None) -> Tensor:
        """The result, which is memory of its own."""
        fits = (*x.shape[1:2], *z.shape[1:2]) == self._channels and x.shape[2:] == z.shape[2:]
        if not fits or x.shape[0] != z.shape[0] or x.numel() < LARGE:
            return self._whole(torch.cat((x, z), 1))
        return self._first(x, None, None, self._second(z))


def _by(node: NodeView, weights: Any, bias: tuple[InputView | None, ...]) -> NodeView:
    """The same convolution by a part of its weights."""
    assert node.inputs[1] is not None
    part = replace(node.inputs[1], constant=weights, shape=weights.shape)
    return replace(node, inputs=(node.inputs[0], part, *bias))
