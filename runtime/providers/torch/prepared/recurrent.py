"""Recurrences by constant weights, which are brought into torch's order once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from entrepot.runtime.kernels.recurrent_weights import check_weights
from entrepot.runtime.node_view import NodeView
from entrepot.runtime.providers.torch.dtypes import tensor_of
from entrepot.runtime.providers.torch.native import recurrent
from entrepot.runtime.providers.torch.table import prepared


def _bound(
    node: NodeView,
    function: Callable[..., Any],
    general: Callable[..., Any],
    usual: Sequence[str],
    order: Sequence[int],
    states: Sequence[int],
) -> Callable[..., Any] | None:
    """The cell with its weights, for the usual activations; ``general`` takes what torch's ``function`` does not.

    ``states`` are the places of the initial states.
    """
    given = node.attributes
    X, W, R, B, lengths = (*node.inputs, None, None)[:5]
    peepholes = node.inputs[7] if len(node.inputs) > 7 else None
    special = (lengths, given.get("clip"), given.get("input_forget"), peepholes)
    if not recurrent.is_usual(given.get("direction", "forward"), given.get("activations"), usual, *special):
        return None
    weights = [each for each in (W, R, B) if each is not None]
    if X is None or X.dtype != np.float32 or any(each.constant is None or each.dtype != X.dtype for each in weights):
        return None
    tensors: list[Tensor | None] = [None if each is None else tensor_of(each.constant) for each in (W, R, B)]  # type: ignore[arg-type]
    assert tensors[0] is not None
    assert tensors[1] is not None
    check_weights(len(order), given.get("hidden_size"), *[None if each is None else each.shape for each in tensors])
    flat = [each.contiguous() for each in recurrent.flat_weights(tensors[0], tensors[1], tensors[2], order)]
    biased, layout = B is not None, given.get("layout", 0)
    there = {torch.device("cpu"): flat}

    def run(*inputs: Tensor | None) -> tuple[Tensor, ...]:
        initial = [inputs[place] if place < len(inputs) else None for place in states]
        assert inputs[0] is not None
        if not recurrent.plain(inputs[0], flat[1]):
            return general(*inputs, **given)
        device = inputs[0].device
        if device not in there:
            there[device] = [each.to(device) for each in flat]
        return recurrent.scanned(function, inputs[0], there[device], initial, biased, layout)

    return run


@prepared("LSTM", 22)
def lstm(node: NodeView) -> Callable[..., Any] | None:
    """A long short-term memory."""
    return _bound(node, torch.lstm, recurrent.lstm, ("sigmoid", "tanh", "tanh"), recurrent.LSTM_ORDER, (5, 6))


@prepared("GRU", 22)
def gru(node: NodeView) -> Callable[..., Any] | None:
    """A gated recurrence that resets after its product, as torch does."""
    if not node.attributes.get("linear_before_reset", 0):
        return None
    return _bound(node, torch.gru, recurrent.gru, ("sigmoid", "tanh"), recurrent.GRU_ORDER, (5,))
