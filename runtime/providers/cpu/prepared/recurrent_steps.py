"""The loops over time: every operation writes into memory that exists already."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy import add, dot, multiply, subtract, tanh

Array: TypeAlias = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Packed:
    """One direction's weights as the steps want them.

    Attributes:
        W: (inputs, gates).
        R: (gates, features).
        bias: (gates,): what is added to the projected input.
        state_bias: (gates that are not summed with the input's, 1) to be added to the state's product, or ``None``.
        size: Features of the state.
    """

    W: Array
    R: Array
    bias: Array
    state_bias: Array | None
    size: int


def pack(
    W: Array,
    R: Array,
    B: Array | None,
    *,
    order: Sequence[slice],
    halved: int,
    separate: int | None = None,
    doubled_state: bool = False,
) -> Packed:
    """Reorder gates, halve what a sigmoid's tanh takes, and join the biases.

    Args:
        W: (gates, inputs).
        R: (gates, features).
        B: Both biases, one after the other.
        order: The gates' rows in the order wanted.
        halved: The leading gates (after reordering) that are sigmoids.
        separate: From this gate on, R's bias belongs to R's product (GRU) and that product is halved.
        doubled_state: The step keeps twice the state (LSTM), so R is halved throughout.
    """
    rows = W.shape[0]
    both = np.zeros(2 * rows, W.dtype) if B is None else B
    w, r, wb, rb = (np.concatenate([part[s] for s in order]) for part in (W, R, both[:rows], both[rows:]))
    scale = np.ones(rows, W.dtype)
    scale[:halved] = 0.5
    bias, state_bias = wb + rb, None
    r_scale = scale * (0.5 if doubled_state else 1)
    if separate is not None:
        bias[separate:] = wb[separate:]
        r_scale[separate:] = 0.5
        state_bias = rb[separate:] * W.dtype.type(0.5)
    return Packed(
        np.ascontiguousarray((w * scale[:, None]).T),
        r * r_scale[:, None].astype(W.dtype),
        bias * scale,
        state_bias,
        R.shape[1],
    )


def lstm_steps(packed: Packed, inputs: Array, out: Array, state: list[Array]) -> None:
    """``state`` is h and c and is left at its last value; ``out`` gets every h.

    Gates stand as o, i, f, g and then c, so that (i, f) * (g, c) is one product; h is kept doubled meanwhile.
    """
    H, tail = packed.size, state[0].shape[1:]
    memory = np.empty((5 * H, *tail), out.dtype)
    gates, sigmoids, o, i_and_f = memory[: 4 * H], memory[: 3 * H], memory[:H], memory[H : 3 * H]
    g_and_c, c = memory[3 * H :], memory[4 * H :]
    products, bent = np.empty((2 * H, *tail), out.dtype), np.empty((H, *tail), out.dtype)
    product_i, product_f = products[:H], products[H:]
    ones, half = np.ones_like(sigmoids), np.full_like(c, 0.5)
    h, c[...] = state[0] * 2, state[1]
    R = packed.R
    for x, y in zip(inputs, out, strict=True):
        dot(R, h, gates)
        add(gates, x, gates)
        tanh(gates, gates)
        add(sigmoids, ones, sigmoids)
        multiply(i_and_f, g_and_c, products)
        add(product_i, product_f, c)
        multiply(c, half, c)
        tanh(c, bent)
        multiply(o, bent, y)
        h = y
    multiply(out, out.dtype.type(0.5), out)
    state[1][...] = c
    if len(out):
        state[0][...] = out[-1]


def gru_steps(packed: Packed, inputs: Array, out: Array, state: list[Array]) -> None:
    """Update and reset gates, then the candidate: h' = n + z (h - n)."""
    H, tail = packed.size, state[0].shape[1:]
    memory = np.empty((3 * H, *tail), out.dtype)
    gates, update, reset, candidate = memory[: 2 * H], memory[:H], memory[H : 2 * H], memory[2 * H :]
    ones, half = np.ones_like(gates), np.full_like(update, 0.5)
    h, R = state[0], packed.R
    assert packed.state_bias is not None
    state_bias = np.broadcast_to(packed.state_bias.reshape(H, *[1] * len(tail)), (H, *tail)).copy()
    for x, y in zip(inputs, out, strict=True):
        dot(R, h, memory)
        add(gates, x[: 2 * H], gates)
        tanh(gates, gates)
        add(gates, ones, gates)
        add(candidate, state_bias, candidate)
        multiply(candidate, reset, candidate)
        add(candidate, x[2 * H :], candidate)
        tanh(candidate, candidate)
        subtract(h, candidate, y)
        multiply(update, half, update)
        multiply(y, update, y)
        add(y, candidate, y)
        h = y
    state[0][...] = h


def rnn_steps(packed: Packed, inputs: Array, out: Array, state: list[Array]) -> None:
    """Iterate h' = tanh(x + R h)."""
    h, R = state[0], packed.R
    for x, y in zip(inputs, out, strict=True):
        dot(R, h, y)
        add(y, x, y)
        tanh(y, y)
        h = y
    state[0][...] = h
