"""RNN, GRU and LSTM with constant weights: one product for all inputs, then steps that allocate nothing.

Sigmoid is taken as (1 + tanh(x / 2)) / 2, so that all gates of a step are one ``tanh``; the halves are folded into the
weights, which is exact. Features run along the first axis and samples along the second, so that gates are contiguous.
What the fast steps do not cover (sequence lengths, peepholes, clipping, other activations) is the shared meaning's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from entrepot.runtime import room
from entrepot.runtime.kernels.recurrent_weights import check_weights
from entrepot.runtime.node_view import NodeView
from entrepot.runtime.providers.cpu.prepared.constants import blas_constant, is_given
from entrepot.runtime.providers.cpu.prepared.recurrent_steps import Packed, gru_steps, lstm_steps, pack, rnn_steps
from entrepot.runtime.providers.cpu.products import ALONE, ALONE_BY_VECTOR, matmul
from entrepot.runtime.providers.cpu.table import prepared
from entrepot.runtime.threads import one_blas_thread

Array: TypeAlias = np.ndarray[Any, Any]
_GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
Steps: TypeAlias = Callable[[Packed, Array, Array, list[Array]], None]


@prepared("LSTM", 22)
def lstm(node: NodeView) -> Callable[..., tuple[Array, ...]] | None:
    """Gates input, output, forget, cell; computed with output first and cell last, next to the state."""
    weights = _weights(node)
    if weights is None or node.attributes.get("input_forget") or is_given(node, 7):
        return None
    if not _is_plain(node, ("sigmoid", "tanh", "tanh")):
        return None
    H = weights[0][1].shape[1]
    order = [slice(H, 2 * H), slice(0, H), slice(2 * H, 3 * H), slice(3 * H, 4 * H)]
    packed = [pack(W, R, B, order=order, halved=3 * H, doubled_state=True) for W, R, B in weights]
    return _bound(packed, _reversals(node), lstm_steps, states=2)


@prepared("GRU", 22)
def gru(node: NodeView) -> Callable[..., tuple[Array, ...]] | None:
    """Gates update, reset, hidden, with the reset after the product as PyTorch and cuDNN have it."""
    weights = _weights(node)
    if weights is None or not node.attributes.get("linear_before_reset") or not _is_plain(node, ("sigmoid", "tanh")):
        return None
    H = weights[0][1].shape[1]
    packed = [pack(W, R, B, order=[slice(None)], halved=2 * H, separate=2 * H) for W, R, B in weights]
    return _bound(packed, _reversals(node), gru_steps, states=1)


@prepared("RNN", 22)
def rnn(node: NodeView) -> Callable[..., tuple[Array, ...]] | None:
    """One gate: tanh of the sum."""
    weights = _weights(node)
    if weights is None or not _is_plain(node, ("tanh",)):
        return None
    packed = [pack(W, R, B, order=[slice(None)], halved=0) for W, R, B in weights]
    return _bound(packed, _reversals(node), rnn_steps, states=1)


def _weights(node: NodeView) -> list[tuple[Array, Array, Array | None]] | None:
    """W, R and B of each direction; ``None`` where they are not all constant floats."""
    W, R, B = (blas_constant(node, position) for position in (1, 2, 3))
    if W is None or R is None or (B is None and is_given(node, 3)):
        return None
    shapes = (W.shape, R.shape, None if B is None else B.shape)
    check_weights(_GATES[node.op_type], node.attributes.get("hidden_size"), *shapes)
    return [(W[d], R[d], None if B is None else B[d]) for d in range(W.shape[0])]


def _is_plain(node: NodeView, activations: Sequence[str]) -> bool:
    """Whether activations are the usual ones, and nothing is clipped, batch-first or of ragged length."""
    given = node.attributes
    expected = [*activations] * (2 if given.get("direction") == "bidirectional" else 1)
    names = [name.lower() for name in given.get("activations") or expected]
    usual = names[: len(expected)] == expected
    return usual and not given.get("clip") and not given.get("layout") and not is_given(node, 4)


def _reversals(node: NodeView) -> list[bool]:
    return {"reverse": [True], "bidirectional": [False, True]}.get(node.attributes.get("direction", "forward"), [False])


def _bound(
    directions: list[Packed], reversals: list[bool], steps: Steps, states: int
) -> Callable[..., tuple[Array, ...]]:
    H = directions[0].size

    def run(X: Array, W: Any, R: Any, B: Any = None, lens: Any = None, *initial: Array | None) -> tuple[Array, ...]:
        time, batch, _ = X.shape
        y = room.empty((time, len(directions), batch, H), X.dtype)
        finals = [np.empty((len(directions), batch, H), X.dtype) for _ in range(states)]
        for d, (packed, backwards) in enumerate(zip(directions, reversals, strict=True)):
            state = [_initial(initial[k] if k < len(initial) else None, d, H, batch, X.dtype) for k in range(states)]
            inputs = _projected(packed, X)
            out = room.empty((time, *state[0].shape), X.dtype)
            order = slice(None, None, -1 if backwards else 1)
            if packed.R.size < ALONE_BY_VECTOR and packed.R.size * batch <= ALONE:
                steps(packed, inputs[order], out[order], state)
            else:
                with one_blas_thread:
                    steps(packed, inputs[order], out[order], state)
            _unpacked(out, y[:, d])
            for final, value in zip(finals, state, strict=True):
                _unpacked(value, final[d])
        return y, *finals

    return run


def _initial(given: Array | None, d: int, H: int, batch: int, dtype: np.dtype[Any]) -> Array:
    """(features, samples), or only features for a single sample: a vector's product is BLAS's gemv."""
    shape = (H,) if batch == 1 else (H, batch)
    if given is None:
        return np.zeros(shape, dtype)
    return np.array(given[d].T.reshape(shape), order="C")


def _projected(packed: Packed, X: Array) -> Array:
    """(time, gates, samples): everything that does not depend on the state."""
    time, batch, size = X.shape
    flat = matmul(X.reshape(time * batch, size), packed.W)
    flat += packed.bias
    if batch == 1:
        return flat
    return np.ascontiguousarray(flat.reshape(time, batch, packed.W.shape[1]).transpose(0, 2, 1))


def _unpacked(value: Array, into: Array) -> None:
    """From (..., features, samples) to (..., samples, features)."""
    if into.shape[-2] == 1:
        into[..., 0, :] = value
    else:
        into[...] = value.swapaxes(-1, -2)
