"""RNN, GRU and LSTM: one scan over time, three cells.

Everything is computed time-major, in float32 at least; ``layout=1`` only moves axes at both ends.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from entrepot.ir.errors import InputError
from entrepot.runtime.kernels.axes import lengths_within
from entrepot.runtime.kernels.backend import Array, Backend, HostArray
from entrepot.runtime.kernels.precision import narrow, widen
from entrepot.runtime.kernels.recurrent_activation import Activation, activations
from entrepot.runtime.kernels.recurrent_weights import check_state, check_weights
from entrepot.runtime.kernels.table import shared

State: TypeAlias = tuple[Array, ...]
Step: TypeAlias = Callable[[Array, State], State]


@dataclass(frozen=True)
class Weights:
    """One direction's parameters, transposed for ``x @ W``; absent ones are zeros or None."""

    W: Array
    R: Array
    Wb: Array
    Rb: Array
    P: Array | None = None


@dataclass(frozen=True)
class Cell:
    """What the operator's attributes say about one step."""

    functions: Sequence[Activation]
    clip: float | None = None
    linear_before_reset: int = 0
    input_forget: int = 0


@shared("RNN", 22)
def rnn(
    xp: Backend,
    X: Array,
    W: Array,
    R: Array,
    B: Array | None = None,
    sequence_lens: HostArray | None = None,
    initial_h: Array | None = None,
    *,
    activation_alpha: Sequence[float] | None = None,
    activation_beta: Sequence[float] | None = None,
    activations: Sequence[str] = ("Tanh", "Tanh"),
    clip: float | None = None,
    direction: str = "forward",
    hidden_size: int | None = None,
    layout: int = 0,
) -> tuple[Array, Array]:
    """Iterate h' = f(x W + h R + b) along a sequence, in one or both directions."""
    check_weights(1, hidden_size, *_shapes(xp, W, R, B))
    chosen = (activations, activation_alpha, activation_beta)
    cells = _cells(xp, R, ("Tanh",), *chosen, clip)
    y, (h,) = _run(xp, rnn_step, cells, X, W, R, B, None, sequence_lens, (initial_h,), direction, layout)
    return y, h


@shared("GRU", 22)
def gru(
    xp: Backend,
    X: Array,
    W: Array,
    R: Array,
    B: Array | None = None,
    sequence_lens: HostArray | None = None,
    initial_h: Array | None = None,
    *,
    activation_alpha: Sequence[float] | None = None,
    activation_beta: Sequence[float] | None = None,
    activations: Sequence[str] | None = None,
    clip: float | None = None,
    direction: str = "forward",
    hidden_size: int | None = None,
    layout: int = 0,
    linear_before_reset: int = 0,
) -> tuple[Array, Array]:
    """A gated recurrence: h' = (1 - z) g + z h, with update gate z and reset gate r."""
    check_weights(3, hidden_size, *_shapes(xp, W, R, B))
    chosen = (activations, activation_alpha, activation_beta)
    cells = _cells(xp, R, ("Sigmoid", "Tanh"), *chosen, clip, linear_before_reset=linear_before_reset)
    y, (h,) = _run(xp, gru_step, cells, X, W, R, B, None, sequence_lens, (initial_h,), direction, layout)
    return y, h


@shared("LSTM", 22)
def lstm(
    xp: Backend,
    X: Array,
    W: Array,
    R: Array,
    B: Array | None = None,
    sequence_lens: HostArray | None = None,
    initial_h: Array | None = None,
    initial_c: Array | None = None,
    P: Array | None = None,
    *,
    activation_alpha: Sequence[float] | None = None,
    activation_beta: Sequence[float] | None = None,
    activations: Sequence[str] | None = None,
    clip: float | None = None,
    direction: str = "forward",
    hidden_size: int | None = None,
    input_forget: int = 0,
    layout: int = 0,
) -> tuple[Array, Array, Array]:
    """A long short-term memory with input, output and forget gates and optional peepholes."""
    check_weights(4, hidden_size, *_shapes(xp, W, R, B, P))
    chosen = (activations, activation_alpha, activation_beta)
    cells = _cells(xp, R, ("Sigmoid", "Tanh", "Tanh"), *chosen, clip, input_forget=input_forget)
    initial = (initial_h, initial_c)
    y, (h, c) = _run(xp, lstm_step, cells, X, W, R, B, P, sequence_lens, initial, direction, layout)
    return y, h, c


def rnn_step(xp: Backend, cell: Cell, weights: Weights) -> Step:
    """One step of RNN, given the projected input."""
    (f,) = cell.functions

    def step(projected: Array, state: State) -> State:
        return (f(_clipped(xp, projected + xp.matmul(state[0], weights.R) + weights.Rb, cell.clip)),)

    return step


def gru_step(xp: Backend, cell: Cell, weights: Weights) -> Step:
    """One step of GRU; gates in ONNX's order: update, reset, hidden."""
    f, g = cell.functions
    size = xp.shape(weights.R)[0]
    R_gates, R_hidden = weights.R[:, : 2 * size], weights.R[:, 2 * size :]
    b_gates, b_hidden = weights.Rb[: 2 * size], weights.Rb[2 * size :]

    def step(projected: Array, state: State) -> State:
        (h,) = state
        gates = f(_clipped(xp, projected[:, : 2 * size] + xp.matmul(h, R_gates) + b_gates, cell.clip))
        update, reset = gates[:, :size], gates[:, size:]
        if cell.linear_before_reset:
            recurrent = reset * (xp.matmul(h, R_hidden) + b_hidden)
        else:
            recurrent = xp.matmul(reset * h, R_hidden) + b_hidden
        candidate = g(_clipped(xp, projected[:, 2 * size :] + recurrent, cell.clip))
        return ((xp.scalar(1.0, like=h) - update) * candidate + update * h,)

    return step


def lstm_step(xp: Backend, cell: Cell, weights: Weights) -> Step:
    """One step of LSTM; gates in ONNX's order: input, output, forget, cell; peepholes: input, output, forget."""
    f, g, h_function = cell.functions
    size = xp.shape(weights.R)[0]
    peepholes = None if weights.P is None else [weights.P[k * size : (k + 1) * size] for k in range(3)]

    def peep(gate: Array, which: int, c: Array) -> Array:
        return gate if peepholes is None else gate + peepholes[which] * c

    def step(projected: Array, state: State) -> State:
        h, c = state
        gates = projected + xp.matmul(h, weights.R) + weights.Rb
        i, o, forget, candidate = (gates[:, k * size : (k + 1) * size] for k in range(4))
        i = f(_clipped(xp, peep(i, 0, c), cell.clip))
        forget = xp.scalar(1.0, like=i) - i if cell.input_forget else f(_clipped(xp, peep(forget, 2, c), cell.clip))
        c = forget * c + i * g(_clipped(xp, candidate, cell.clip))
        o = f(_clipped(xp, peep(o, 1, c), cell.clip))
        return o * h_function(c), c

    return step


def _clipped(xp: Backend, x: Array, clip: float | None) -> Array:
    if not clip:
        return x
    return xp.maximum(xp.minimum(x, xp.scalar(clip, like=x)), xp.scalar(-clip, like=x))


def _shapes(xp: Backend, *arrays: Array | None) -> list[Sequence[int] | None]:
    return [None if array is None else xp.shape(array) for array in arrays]


def _cells(
    xp: Backend,
    R: Array,
    usual: Sequence[str],
    names: Sequence[str] | None,
    alphas: Sequence[float] | None,
    betas: Sequence[float] | None,
    clip: float | None,
    **options: int,
) -> list[Cell]:
    """One cell per direction; ``usual`` are the activations of one where none are named."""
    directions, per_direction = xp.shape(R)[0], len(usual)
    names = names or [*usual] * directions
    needed = per_direction * directions
    if len(names) < needed:
        raise InputError(f"{directions} direction(s) take {needed} activations, not {len(names)}: {list(names)}")
    functions = activations(xp, names[:needed], alphas, betas)
    chunks = [functions[k * per_direction : (k + 1) * per_direction] for k in range(directions)]
    return [Cell(chunk, clip, **options) for chunk in chunks]


def _run(
    xp: Backend,
    make_step: Callable[[Backend, Cell, Weights], Step],
    cells: Sequence[Cell],
    X: Array,
    W: Array,
    R: Array,
    B: Array | None,
    P: Array | None,
    sequence_lens: HostArray | None,
    initial: Sequence[Array | None],
    direction: str,
    layout: int,
) -> tuple[Array, list[Array]]:
    """Every direction's scan, stacked: Y (time, directions, batch, hidden) and the last states."""
    reversals = {"forward": [False], "reverse": [True], "bidirectional": [False, True]}.get(direction)
    if reversals is None or len(reversals) != xp.shape(W)[0]:
        raise InputError(f"direction {direction!r} does not fit the {xp.shape(W)[0]} direction(s) of W")
    if len(xp.shape(X)) != 3:
        raise InputError(f"X of shape {tuple(xp.shape(X))} is not a sequence of batches")
    dtype = xp.dtype(X)
    x = _swapped(xp, widen(xp, X), layout)
    lengths = None if sequence_lens is None else lengths_within(xp, sequence_lens, *xp.shape(x)[:2])
    outputs, finals = [], []
    for d, backwards in enumerate(reversals):
        weights = _weights(xp, W, R, B, P, d)
        states = tuple(_initial(xp, _swapped(xp, state, layout), x, weights, d) for state in initial)
        order = _reversal(xp, lengths, xp.shape(x)[:2]) if backwards else None
        projected = xp.matmul(_picked(xp, x, order), weights.W) + weights.Wb
        y, last = _scan(xp, make_step(xp, cells[d], weights), projected, states, lengths)
        outputs.append(_picked(xp, y, order))
        finals.append(last)
    y = xp.stack(outputs, 1)
    stacked = [xp.stack([last[k] for last in finals], 0) for k in range(len(initial))]
    y = xp.transpose(y, (2, 0, 1, 3)) if layout else y
    return narrow(xp, y, dtype), [narrow(xp, _swapped(xp, state, layout), dtype) for state in stacked]


def _swapped(xp: Backend, x: Array | None, layout: int) -> Array:
    return xp.transpose(x, (1, 0, 2)) if layout and x is not None else x


def _weights(xp: Backend, W: Array, R: Array, B: Array | None, P: Array | None, d: int) -> Weights:
    w, r = widen(xp, W[d]), widen(xp, R[d])
    rows = xp.shape(w)[0]
    bias = xp.full((2 * rows,), 0.0, xp.dtype(w)) if B is None else widen(xp, B[d])
    peepholes = None if P is None else widen(xp, P[d])
    return Weights(xp.transpose(w), xp.transpose(r), bias[:rows], bias[rows:], peepholes)


def _initial(xp: Backend, given: Array | None, x: Array, weights: Weights, d: int) -> Array:
    if given is not None:
        check_state(xp.shape(given), xp.shape(x)[1], xp.shape(weights.R)[0])
        return widen(xp, given[d])
    return xp.full((xp.shape(x)[1], xp.shape(weights.R)[0]), 0.0, xp.dtype(x))


def _reversal(xp: Backend, lengths: Array | None, shape: Sequence[int]) -> Array:
    """(time, batch): where step t of a reversed sequence reads; padding stays in place."""
    int64 = np.dtype(np.int64)
    time = xp.reshape(xp.arange(0, shape[0], 1, int64), (-1, 1))
    if lengths is None:
        return xp.broadcast_to(shape[0] - 1 - time, tuple(shape))
    ends = xp.reshape(xp.astype(lengths, int64), (1, -1))
    return xp.where(time < ends, ends - 1 - time, time)


def _picked(xp: Backend, x: Array, order: Array | None) -> Array:
    if order is None:
        return x
    return xp.take_along_axis(x, xp.broadcast_to(xp.expand_dims(order, 2), xp.shape(x)), 0)


def _scan(xp: Backend, step: Step, projected: Array, state: State, lengths: Array | None) -> tuple[Array, State]:
    """Outputs past a sequence's end are zero, and its state stays what it was there."""
    outputs = []
    ends = None if lengths is None else xp.reshape(lengths, (-1, 1))
    for t in range(xp.shape(projected)[0]):
        new = step(projected[t], state)
        if ends is None:
            state = new
            outputs.append(new[0])
        else:
            alive = ends > t
            state = tuple(xp.where(alive, after, before) for after, before in zip(new, state, strict=True))
            outputs.append(xp.where(alive, new[0], xp.scalar(0.0, like=new[0])))
    if not outputs:
        return xp.full((0, *xp.shape(state[0])), 0.0, xp.dtype(projected)), state
    return xp.stack(outputs, 0), state
