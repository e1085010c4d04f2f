"""LSTM, GRU and RNN as layers of torch, which order gates another way."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from entrepot.importers.torch.dtypes import FLOATS
from entrepot.importers.torch.layer import Array, Layer, keywords, positional
from entrepot.importers.torch.op import Op

_ORDERS = {"LSTM": (0, 2, 3, 1), "GRU": (1, 0, 2), "RNN": (0,)}
"""For each gate of torch, its place in ONNX: iofc and ifgo, zrh and rzn."""

_ACTIVATIONS = {"LSTM": ("Sigmoid", "Tanh", "Tanh"), "GRU": ("Sigmoid", "Tanh"), "RNN": ("Tanh",)}


def recurrent(op: Op) -> Layer | None:
    """A recurrent layer that does what torch's does: its activations, all steps of the sequence, nothing clipped."""
    kind = op.step.op_type
    weights = [_constant(op, position) for position in (1, 2, 3)]
    if weights[0] is None or weights[1] is None or (op.has(3) and weights[2] is None) or not _plain(op):
        return None
    order = _ORDERS[kind]
    two = op.attribute("direction") == "bidirectional"
    tensors: dict[str, Array] = {}
    for at in range(2 if two else 1):
        suffix = "_l0_reverse" if at else "_l0"
        tensors[f"weight_ih{suffix}"] = _reordered(weights[0][at], order)
        tensors[f"weight_hh{suffix}"] = _reordered(weights[1][at], order)
        if weights[2] is not None:
            left, right = np.split(weights[2][at], 2)
            tensors[f"bias_ih{suffix}"], tensors[f"bias_hh{suffix}"] = (
                _reordered(left, order),
                _reordered(right, order),
            )
    hidden = weights[1].shape[-1]
    given: dict[str, object] = {} if weights[2] is not None else {"bias": False}
    given |= {"bidirectional": True} if two else {}
    if kind == "RNN" and _activations(op)[0] == "Relu":
        given["nonlinearity"] = '"relu"'
    value = op.value(1)
    return Layer(
        kind,
        (*positional(input_size=weights[0].shape[-1], hidden_size=hidden), *keywords(**given)),
        tensors,
        call=_call,
        source="" if value is None else value.name,
    )


def _constant(op: Op, position: int) -> Array | None:
    value = op.value(position)
    array = None if value is None else value.constant
    known = isinstance(array, np.ndarray) and ir.DataType.from_numpy(array.dtype) in FLOATS
    return array if known else None


def _activations(op: Op) -> tuple[str, ...]:
    given = op.attribute("activations")
    names = [item.decode() if isinstance(item, bytes) else item for item in given or ()]
    return tuple(name.capitalize() for name in names) or _ACTIVATIONS[op.step.op_type] * (
        2 if op.attribute("direction") == "bidirectional" else 1
    )


def _plain(op: Op) -> bool:
    kind = op.step.op_type
    count = 2 if op.attribute("direction") == "bidirectional" else 1
    kinds = {_ACTIVATIONS[kind] * count} | ({("Relu",) * count} if kind == "RNN" else set())
    return (
        op.attribute("direction") != "reverse"
        and _activations(op) in kinds
        and op.attribute("clip") is None
        and not op.attribute("input_forget")
        and not op.attribute("layout")
        and not op.has(4)
        and not op.has(7)
        and (kind != "GRU" or bool(op.attribute("linear_before_reset")))
        and op.rank(0) == 3
    )


def _reordered(array: Array, order: tuple[int, ...]) -> Array:
    gates = np.split(array, len(order))
    return np.concatenate([gates[place] for place in order])


def _call(op: Op, layer: str) -> str:
    """ONNX keeps the directions apart from the features; nothing is left to be assigned."""
    two = op.attribute("direction") == "bidirectional"
    given = [op[0]]
    if op.step.op_type == "LSTM" and (op.has(5) or op.has(6)):
        states = [op[at] if op.has(at) else f"torch.zeros_like({op[5 if at == 6 else 6]})" for at in (5, 6)]
        given.append(f"({', '.join(states)})")
    elif op.has(5):
        given.append(op[5])
    kept = op.writer.names.fresh("state") if any(op.asked(at) for at in (1, 2)) else "_"
    hidden = op.attribute("hidden_size") or (op.shape(2) or (0, 0, 0))[2]
    steps = op.writer.names.fresh("steps")
    op.writer.line(f"{steps}, {kept} = {layer}({', '.join(given)})")
    apart = f"{steps}.unflatten(-1, (2, {hidden})).transpose(1, 2)" if two else f"{steps}.unsqueeze(1)"
    made = [apart, *([f"{kept}[0]", f"{kept}[1]"] if op.step.op_type == "LSTM" else [kept])]
    for value, text in zip(op.step.outputs, made, strict=False):
        if value is not None:
            op.writer.line(f"{op.writer.write(value)} = {text}")
    return ""
