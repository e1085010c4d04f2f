"""Recurrences with constant weights, whose gates are put in torch's order once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from entrepot.runtime.node_view import NodeView
from entrepot.runtime.providers.torch.native import recurrent as native
from entrepot.runtime.providers.torch.prepared.constants import constant, float_constant, is_given, own_tensor
from entrepot.runtime.providers.torch.table import prepared

_Cell = Callable[..., tuple[Tensor, ...]]


@prepared("LSTM", 22)
def lstm(node: NodeView) -> _Cell | None:
    """Without peepholes, sequence lengths or a coupled forget gate."""
    special = (is_given(node, 4), is_given(node, 7), node.attributes.get("input_forget"))
    return _bound(node, torch.lstm, native.lstm, native.LSTM_ORDER, ("sigmoid", "tanh", "tanh"), *special)


@prepared("GRU", 22)
def gru(node: NodeView) -> _Cell | None:
    """With the reset gate after the product, as frameworks have it."""
    special = (is_given(node, 4), not node.attributes.get("linear_before_reset"))
    return _bound(node, torch.gru, native.gru, native.GRU_ORDER, ("sigmoid", "tanh"), *special)


@prepared("RNN", 22)
def rnn(node: NodeView) -> _Cell | None:
    """With tanh."""
    return _bound(node, torch.rnn_tanh, native.rnn, (0,), ("tanh",), is_given(node, 4))


def _bound(
    node: NodeView, function: _Cell, plain: _Cell, order: Sequence[int], usual: Sequence[str], *special: Any
) -> _Cell | None:
    given = node.attributes
    W, R, B = (float_constant(node, position) for position in (1, 2, 3))
    if W is None or R is None or (B is None and is_given(node, 3)) or constant(node, 0) is not None:
        return None
    direction = given.get("direction", "forward")
    if not native.is_usual(direction, given.get("activations"), usual, given.get("clip"), *special):
        return None
    weights = native.flat_weights(own_tensor(W), own_tensor(R), None if B is None else own_tensor(B), order)
    biased, layout, attributes = B is not None, given.get("layout", 0), dict(given)
    states = 2 if len(usual) == 3 else 1

    def run(X: Tensor, *others: Any) -> tuple[Tensor, ...]:
        if not X.numel():
            return plain(X, *others, **attributes)
        initial = [*others[4 : 4 + states], *[None] * (states - len(others[4 : 4 + states]))]
        return native.scanned(function, X, weights, initial, biased, layout)

    return run
