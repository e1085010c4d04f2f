"""LSTM, GRU and RNN as single operators.

torch.export takes them apart into one step per time step, which fixes the length. While a module is captured, an
operator of ours replaces each call, and the translation turns it into ONNX's.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import torch
from onnxscript import opset20

from entrepot.exporters.torch.translations.one_more import with_one_more, without_it
from entrepot.exporters.torch.translations.projected import projected_lstm
from entrepot.exporters.torch.upstream import is_uncounted

op: Any = opset20

_library = torch.library.Library("entrepot", "DEF")
_library.define(
    "recurrence(Tensor x, Tensor[] states, Tensor[] weights, str kind, bool biases, int layers, bool bidirectional, "
    "bool batch_first, Tensor? lengths=None) -> Tensor[]"
)
_KINDS: dict[Any, str] = {torch.lstm: "lstm", torch.gru: "gru", torch.rnn_tanh: "rnn_tanh", torch.rnn_relu: "rnn_relu"}
_CALLS = {kind: function for function, kind in _KINDS.items()}


def _composite(function: Any, *args: Any, **kwargs: Any) -> Any:
    """One operator for a call over a whole sequence; packed sequences (another overload) are left alone."""
    kind = _KINDS[function]
    if kwargs or len(args) != 9 or not isinstance(args[8], bool):
        return function(*args, **kwargs)
    x, states, weights, biases, layers, dropout, train, bidirectional, batch_first = args
    if train and dropout and layers > 1:
        return _with_dropout(function, *args)
    axis = 0 if batch_first else 1
    if is_uncounted(x.shape[axis]):
        more = with_one_more(x, axis), _each(states, lambda state: with_one_more(state, 1))
        made, *finals = _composite(function, *more, *args[2:])
        return without_it(made, axis), *(without_it(final, 1) for final in finals)
    states = list(states) if kind == "lstm" else [states]
    if states[0].shape[-1] != states[-1].shape[-1]:
        return projected_lstm(x, states, weights, biases, bidirectional, batch_first)
    return tuple(
        torch.ops.entrepot.recurrence(x, states, list(weights), kind, biases, layers, bidirectional, batch_first)
    )


def _each(states: Any, change: Callable[[torch.Tensor], torch.Tensor]) -> Any:
    return change(states) if isinstance(states, torch.Tensor) else [change(state) for state in states]


def _with_dropout(
    function: Any,
    x: torch.Tensor,
    states: Any,
    weights: Sequence[torch.Tensor],
    biases: bool,
    layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
    batch_first: bool,
) -> Any:
    """Layer by layer, with dropout in between."""
    several = not isinstance(states, torch.Tensor)
    directions, per_layer = 2 if bidirectional else 1, len(weights) // layers
    finals: list[Any] = []
    for layer in range(layers):
        initial = [state[layer * directions : (layer + 1) * directions] for state in (states if several else [states])]
        own = weights[layer * per_layer : (layer + 1) * per_layer]
        given = tuple(initial) if several else initial[0]
        x = torch.nn.functional.dropout(x, dropout) if layer else x
        x, *final = _composite(function, x, given, own, biases, 1, 0.0, train, bidirectional, batch_first)
        finals.append(final)
    return (x, *(torch.cat(parts) for parts in zip(*finals, strict=True)))


REPLACEMENTS = {function: functools.partial(_composite, function) for function in _KINDS}


def _run(
    x: torch.Tensor,
    states: Sequence[torch.Tensor],
    weights: Sequence[torch.Tensor],
    kind: str,
    biases: bool,
    layers: int,
    bidirectional: bool,
    batch_first: bool,
    lengths: torch.Tensor | None = None,
) -> list[torch.Tensor]:
    if lengths is not None:
        raise NotImplementedError("it stands for a call on a packed sequence, and is not run")
    initial = tuple(states) if kind == "lstm" else states[0]
    return list(_CALLS[kind](x, initial, list(weights), biases, layers, 0.0, False, bidirectional, batch_first))


def _shapes(
    x: torch.Tensor,
    states: Sequence[torch.Tensor],
    weights: Sequence[torch.Tensor],
    kind: str,
    biases: bool,
    layers: int,
    bidirectional: bool,
    batch_first: bool,
    lengths: torch.Tensor | None = None,
) -> list[torch.Tensor]:
    width = states[0].shape[-1] * (2 if bidirectional else 1)
    return [x.new_empty((*x.shape[:-1], width)), *(state.new_empty(state.shape) for state in states)]


_library.impl("recurrence", _run, "CompositeExplicitAutograd")
torch.library.register_fake("entrepot::recurrence", _shapes, lib=_library)


_GATES = {"lstm": (0, 3, 1, 2), "gru": (1, 0, 2), "rnn_tanh": (0,), "rnn_relu": (0,)}
"""Where ONNX's gates (i o f c; z r h) are in torch's weights (i f c o; r z h)."""


def translate_recurrence(
    x: Any,
    states: Sequence[Any],
    weights: Sequence[Any],
    kind: str,
    biases: bool,
    layers: int,
    bidirectional: bool,
    batch_first: bool,
    lengths: Any = None,
) -> Sequence[Any]:
    """Layers of ONNX LSTM, GRU or RNN; ``x`` is [batch, length, width] or [length, batch, width]."""
    lengths = None if lengths is None else op.Cast(lengths, to=6)  # int32
    directions = 2 if bidirectional else 1
    per_cell = 4 if biases else 2
    y = op.Transpose(x, perm=[1, 0, 2]) if batch_first else x
    finals: list[list[Any]] = []
    for layer in range(layers):
        start = layer * directions
        cells = [weights[per_cell * cell : per_cell * (cell + 1)] for cell in range(start, start + directions)]
        initial = [op.Slice(state, _ints(start), _ints(start + directions), _ints(0)) for state in states]
        y, *final = _layer(y, lengths, initial, cells, kind, states[0].shape[-1])
        # [length, directions, batch, hidden] -> [length, batch, directions * hidden]
        y = op.Reshape(op.Transpose(y, perm=[0, 2, 1, 3]), _ints(0, 0, directions * int(states[0].shape[-1])))
        finals.append(final)
    y = op.Transpose(y, perm=[1, 0, 2]) if batch_first else y
    return [y, *(_join(parts) for parts in zip(*finals, strict=True))]


def _layer(
    x: Any, lengths: Any, initial: list[Any], cells: list[Sequence[Any]], kind: str, hidden: int
) -> tuple[Any, ...]:
    order = _GATES[kind]
    packed_w = _join([_reordered(cell[0], order, hidden) for cell in cells], stack=True)
    packed_r = _join([_reordered(cell[1], order, hidden) for cell in cells], stack=True)
    bias = None
    if len(cells[0]) == 4:
        halves = [[_reordered(cell[index], order, hidden) for index in (2, 3)] for cell in cells]
        bias = _join([op.Concat(*pair, axis=0) for pair in halves], stack=True)
    attributes: dict[str, Any] = {"hidden_size": hidden, "direction": "bidirectional" if len(cells) == 2 else "forward"}
    if kind == "lstm":
        return op.LSTM(x, packed_w, packed_r, bias, lengths, *initial, **attributes)
    if kind == "gru":
        return op.GRU(x, packed_w, packed_r, bias, lengths, *initial, linear_before_reset=1, **attributes)
    activations = [{"rnn_tanh": "Tanh", "rnn_relu": "Relu"}[kind]] * len(cells)
    return op.RNN(x, packed_w, packed_r, bias, lengths, *initial, activations=activations, **attributes)


def _reordered(weight: Any, order: Sequence[int], hidden: int) -> Any:
    if len(order) == 1:
        return weight
    return op.Concat(
        *(op.Slice(weight, _ints(gate * hidden), _ints((gate + 1) * hidden), _ints(0)) for gate in order), axis=0
    )


def _join(parts: Sequence[Any], *, stack: bool = False) -> Any:
    parts = [op.Unsqueeze(part, _ints(0)) for part in parts] if stack else parts
    return parts[0] if len(parts) == 1 else op.Concat(*parts, axis=0)


def _ints(*values: int) -> Any:
    return op.Constant(value_ints=list(values))


TRANSLATIONS = {torch.ops.entrepot.recurrence.default: translate_recurrence}
