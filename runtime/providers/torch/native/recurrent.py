"""RNN, GRU and LSTM of torch, for the usual activations and sequences of one length."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from entrepot.runtime.kernels import recurrent as shared
from entrepot.runtime.kernels.recurrent_weights import check_state, check_weights
from entrepot.runtime.providers.torch.backend import TorchBackend
from entrepot.runtime.providers.torch.table import native

_COUNTS = {"forward": 1, "bidirectional": 2}
LSTM_ORDER, GRU_ORDER = (0, 2, 3, 1), (1, 0, 2)
"""ONNX's gates in torch's order: input, forget, cell, output of input, output, forget, cell; reset, update, new."""


def is_usual(direction: str, names: Sequence[str] | None, usual: Sequence[str], *special: Any) -> bool:
    """Whether torch has the cell: activations as they are by default, nothing special, not backwards alone."""
    count = _COUNTS.get(direction)
    given = None if names is None else [name.lower() for name in names]
    return count is not None and given in (None, [*usual] * count) and not any(special)


def _shapes(*tensors: Tensor | None) -> list[Sequence[int] | None]:
    return [None if tensor is None else tensor.shape for tensor in tensors]


def flat_weights(W: Tensor, R: Tensor, B: Tensor | None, order: Sequence[int]) -> list[Tensor]:
    """Per direction the matrices and biases that torch takes."""
    made: list[Tensor] = []
    for d in range(W.shape[0]):
        made += [_reordered(W[d], order), _reordered(R[d], order)]
        if B is not None:
            made += [_reordered(half, order) for half in B[d].chunk(2)]
    return made


def _reordered(gates: Tensor, order: Sequence[int]) -> Tensor:
    parts = gates.chunk(len(order))
    return torch.cat([parts[place] for place in order]) if len(order) > 1 else gates


def scanned(
    function: Callable[..., tuple[Tensor, ...]],
    X: Tensor,
    weights: list[Tensor],
    states: Sequence[Tensor | None],
    biased: bool,
    layout: int,
) -> tuple[Tensor, ...]:
    """Y (time, directions, batch, hidden) and the last states."""
    count, hidden = len(weights) // (4 if biased else 2), weights[1].shape[1]
    x = X.transpose(0, 1) if layout else X
    initial = [_initial(state, x, count, hidden, layout) for state in states]
    y, *last = function(
        x, initial if len(initial) > 1 else initial[0], weights, biased, 1, 0.0, False, count == 2, False
    )
    y = y.reshape(*y.shape[:2], count, hidden)
    y = y.transpose(0, 1) if layout else y.transpose(1, 2)
    return (y, *(state.transpose(0, 1) for state in last)) if layout else (y, *last)


def _initial(state: Tensor | None, x: Tensor, count: int, hidden: int, layout: int) -> Tensor:
    if state is None:
        return torch.zeros(count, x.shape[1], hidden, dtype=x.dtype, device=x.device)
    initial = state.transpose(0, 1).contiguous() if layout else state
    check_state(initial.shape, x.shape[1], hidden)
    return initial


@native("RNN", 22)
def rnn(
    X: Tensor,
    W: Tensor,
    R: Tensor,
    B: Tensor | None = None,
    sequence_lens: np.ndarray | None = None,
    initial_h: Tensor | None = None,
    *,
    activation_alpha: Sequence[float] | None = None,
    activation_beta: Sequence[float] | None = None,
    activations: Sequence[str] = ("Tanh", "Tanh"),
    clip: float | None = None,
    direction: str = "forward",
    hidden_size: int | None = None,
    layout: int = 0,
) -> tuple[Tensor, ...]:
    """Iterate h' = f(x W + h R + b) along a sequence, in one or both directions."""
    check_weights(1, hidden_size, *_shapes(W, R, B))
    names = activations[: _COUNTS.get(direction, 1)]
    if plain(X, R) and is_usual(direction, names, ("tanh",), sequence_lens is not None, clip):
        return scanned(torch.rnn_tanh, X, flat_weights(W, R, B, (0,)), (initial_h,), B is not None, layout)
    return shared.rnn(
        TorchBackend(X.device), X, W, R, B, sequence_lens, initial_h, activation_alpha=activation_alpha,
        activation_beta=activation_beta, activations=activations, clip=clip, direction=direction,
        hidden_size=hidden_size, layout=layout,
    )  # fmt: skip


def plain(X: Tensor, R: Tensor) -> bool:
    """Whether torch's own cells compute with this type as exactly as is asked for, and there is anything to do.

    Without units torch divides by their number, which ends the process.
    """
    return X.dtype in (torch.float32, torch.float64) and X.ndim == 3 and X.numel() > 0 and R.numel() > 0


@native("GRU", 22)
def gru(
    X: Tensor,
    W: Tensor,
    R: Tensor,
    B: Tensor | None = None,
    sequence_lens: np.ndarray | None = None,
    initial_h: Tensor | None = None,
    *,
    activation_alpha: Sequence[float] | None = None,
    activation_beta: Sequence[float] | None = None,
    activations: Sequence[str] | None = None,
    clip: float | None = None,
    direction: str = "forward",
    hidden_size: int | None = None,
    layout: int = 0,
    linear_before_reset: int = 0,
) -> tuple[Tensor, ...]:
    """A gated recurrence: h' = (1 - z) g + z h, with update gate z and reset gate r."""
    check_weights(3, hidden_size, *_shapes(W, R, B))
    special = (sequence_lens is not None, clip, not linear_before_reset)
    if plain(X, R) and is_usual(direction, activations, ("sigmoid", "tanh"), *special):
        return scanned(torch.gru, X, flat_weights(W, R, B, GRU_ORDER), (initial_h,), B is not None, layout)
    return shared.gru(
        TorchBackend(X.device), X, W, R, B, sequence_lens, initial_h, activation_alpha=activation_alpha,
        activation_beta=activation_beta, activations=activations, clip=clip, direction=direction,
        hidden_size=hidden_size, layout=layout, linear_before_reset=linear_before_reset,
    )  # fmt: skip


@native("LSTM", 22)
def lstm(
    X: Tensor,
    W: Tensor,
    R: Tensor,
    B: Tensor | None = None,
    sequence_lens: np.ndarray | None = None,
    initial_h: Tensor | None = None,
    initial_c: Tensor | None = None,
    P: Tensor | None = None,
    *,
    activation_alpha: Sequence[float] | None = None,
    activation_beta: Sequence[float] | None = None,
    activations: Sequence[str] | None = None,
    clip: float | None = None,
    direction: str = "forward",
    hidden_size: int | None = None,
    input_forget: int = 0,
    layout: int = 0,
) -> tuple[Tensor, ...]:
    """A long short-term memory with input, output and forget gates and optional peepholes."""
    check_weights(4, hidden_size, *_shapes(W, R, B, P))
    special = (sequence_lens is not None, clip, P is not None, input_forget)
    if plain(X, R) and is_usual(direction, activations, ("sigmoid", "tanh", "tanh"), *special):
        states = (initial_h, initial_c)
        return scanned(torch.lstm, X, flat_weights(W, R, B, LSTM_ORDER), states, B is not None, layout)
    return shared.lstm(
        TorchBackend(X.device), X, W, R, B, sequence_lens, initial_h, initial_c, P, activation_alpha=activation_alpha,
        activation_beta=activation_beta, activations=activations, clip=clip, direction=direction,
        hidden_size=hidden_size, input_forget=input_forget, layout=layout,
    )  # fmt: skip
