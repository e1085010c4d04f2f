"""A recurrent network whose products are made on integers, quantised anew in each turn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import onnx_ir as ir

from entrepot.ir.contributed.microsoft.integer import dynamic_quantize_matmul
from entrepot.ir.contributed.table import spelled
from entrepot.ir.opset.builder import OpBuilder

Value = ir.Value | None
_USUAL = ("sigmoid", "tanh", "tanh")
_DIRECTIONS = {"forward": (0,), "reverse": (1,), "bidirectional": (0, 1)}


@spelled("DynamicQuantizeLSTM", rounds=True)
def dynamic_quantize_lstm(
    op: OpBuilder,
    X: Value,
    W: Value,
    R: Value,
    B: Value,
    sequence_lens: Value,
    initial_h: Value,
    initial_c: Value,
    P: Value,
    W_scale: Value,
    W_zero_point: Value,
    R_scale: Value,
    R_zero_point: Value,
    *,
    hidden_size: int,
    direction: str = "forward",
    activations: Sequence[str] | None = None,
    activation_alpha: Sequence[float] | None = None,
    activation_beta: Sequence[float] | None = None,
    clip: float | None = None,
    input_forget: int = 0,
) -> Any:
    """LSTM with its input quantised as a whole, and its state in each turn."""
    ways = _DIRECTIONS[direction]
    usual = not activations or [each.lower() for each in activations] == [*_USUAL] * len(ways)
    if sequence_lens is not None or P is not None or input_forget or clip or not usual:
        op.refuse(
            "rows of different lengths, peepholes, bounds and other activations are no part of what it means here"
        )
    recurrent = op.shape(R) or [None] * 3
    if recurrent[1] not in (None, hidden_size):
        op.refuse(f"hidden_size={hidden_size} disagrees with R of shape {recurrent}")
    made = []
    for at, backwards in enumerate(ways):
        part = [_of_direction(op, each, at) for each in (W, W_scale, W_zero_point, R, R_scale, R_zero_point, B)]
        states = [_state(op, X, each, at, R) for each in (initial_h, initial_c)]
        made.append(_one_way(op, X, part, states, backwards))
    y, h, c = ([op.Unsqueeze(way[at], op.ints(axis)) for way in made] for at, axis in ((2, 1), (0, 0), (1, 0)))
    return op.Concat(*y, axis=1), op.Concat(*h, axis=0), op.Concat(*c, axis=0)


def _of_direction(op: OpBuilder, x: Value, at: int) -> Any:
    return None if x is None else op.Gather(x, op.const(at, dtype=ir.DataType.INT64), axis=0)


def _state(op: OpBuilder, x: Value, given: Value, at: int, R: Value) -> Any:
    if given is not None:
        return _of_direction(op, given, at)
    return op.Expand(op.const(0.0, like=x), op.Concat(op.Shape(x, start=1, end=2), op.Shape(R, start=1, end=2), axis=0))


def _one_way(op: OpBuilder, x: Value, part: Sequence[Any], states: Sequence[Any], backwards: int) -> Any:
    """The last state, the last cell, and the state of every turn."""
    w, w_scale, w_zero, *recurrent, bias = part
    gates = dynamic_quantize_matmul(op, x, w, w_scale, w_zero)
    if bias is not None:
        gates = op.Add(gates, op.Add(*op.Split(bias, axis=0, num_outputs=2, n_outputs=2)))
    return op.Scan(
        *states,
        gates,
        body=_turn(op, recurrent),
        num_scan_inputs=1,
        scan_input_directions=[backwards],
        scan_output_directions=[backwards],
        n_outputs=3,
    )


def _turn(op: OpBuilder, recurrent: Sequence[Any]) -> ir.Graph:
    """State, cell and what the input says of the gates, to the next state and cell, and the state once more."""
    kind = ir.TensorType(ir.DataType.FLOAT)
    state, cell, said = (ir.Value(name=op.fresh_name(name), type=kind) for name in ("state", "cell", "said"))
    inner = OpBuilder(op.node, op.version, op.around)
    r, scale, zero = recurrent
    gates = inner.Add(said, dynamic_quantize_matmul(inner, state, r, scale, zero))
    i, o, f, c = inner.Split(gates, axis=-1, num_outputs=4, n_outputs=4)
    kept = inner.Add(inner.Mul(inner.Sigmoid(f), cell), inner.Mul(inner.Sigmoid(i), inner.Tanh(c)))
    shown = inner.Mul(inner.Sigmoid(o), inner.Tanh(kept))
    outputs = [shown, kept, inner.Identity(shown)]
    return ir.Graph([state, cell, said], outputs, nodes=inner.emitted, name=op.fresh_name("turn"))
