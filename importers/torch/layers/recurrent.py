"""LSTM, GRU and RNN as layers of torch, which order gates another way."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from entrepot.importers.torch.dtypes import FLOATS
from entrepot.importers.torch.layers.layer import Array, Layer, keywords, positional
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
    if not weights[1].size:  # torch divides by the number of units
        return None
    two = op.attribute("direction") == "bidirectional"
    tensors = _tensors(kind, weights, two=two)
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


def stacked(op: Op) -> Layer:
    """Several of them, one above the other, which ``stacking`` found to be layers."""
    kind = op.step.op_type.removeprefix("Stacked")
    count, two = op.attribute("layers"), op.attribute("direction") == "bidirectional"
    weights = [[_constant(op, 3 + 3 * layer + at) for at in range(3)] for layer in range(count)]
    tensors: dict[str, Array] = {}
    for number, each in enumerate(weights):
        tensors |= _tensors(kind, each, number, two=two)
    size = positional(input_size=tensors["weight_ih_l0"].shape[-1], hidden_size=tensors["weight_hh_l0"].shape[-1])
    given: dict[str, object] = {"num_layers": count} if count > 1 else {}
    given |= {} if weights[0][2] is not None else {"bias": False}
    given |= {"bidirectional": True} if two else {}
    told = str(op.attribute("activations")).lower()  # torch's own, for ``recurrent`` found each to be a layer
    if kind == "RNN" and "relu" in told:
        given["nonlinearity"] = '"relu"'
    op.attribute("merged")
    op.see(1, 2, 3 + 3 * count)
    source = op.value(3)
    name = "" if source is None else source.name
    return Layer(kind, (*size, *keywords(**given)), tensors, call=_call_stack, source=name)


def _tensors(kind: str, weights: Sequence[Array | None], layer: int = 0, *, two: bool) -> dict[str, Array]:
    """What torch keeps of W, R and B, its gates in its order."""
    order, (W, R, B) = _ORDERS[kind], weights
    tensors: dict[str, Array] = {}
    assert W is not None
    assert R is not None
    for at in range(2 if two else 1):
        suffix = f"_l{layer}_reverse" if at else f"_l{layer}"
        tensors[f"weight_ih{suffix}"] = _reordered(W[at], order)
        tensors[f"weight_hh{suffix}"] = _reordered(R[at], order)
        if B is not None:
            left, right = np.split(B[at], 2)
            tensors[f"bias_ih{suffix}"] = _reordered(left, order)
            tensors[f"bias_hh{suffix}"] = _reordered(right, order)
    return tensors


def _constant(op: Op, position: int) -> Array | None:
    value = op.value(position)
    array = None if value is None else value.constant
    known = isinstance(array, np.ndarray) and ir.DataType.from_numpy(array.dtype) in FLOATS
    return array if known else None


def _activations(op: Op) -> tuple[str, ...]:
    given = op.attribute("activations")
    names = [item.decode() if isinstance(item, bytes) else item for item in given or ()]
    count, usual = 2 if op.attribute("direction") == "bidirectional" else 1, _ACTIVATIONS[op.step.op_type]
    # the schema's default for RNN has one for each of two directions, whether there are two or not
    return tuple(name.capitalize() for name in names[: count * len(usual)]) or usual * count


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
        and not op.has(7)
        and (kind != "GRU" or bool(op.attribute("linear_before_reset")))
        and op.rank(0) == 3
    )


def _reordered(array: Array, order: tuple[int, ...]) -> Array:
    gates = np.split(array, len(order))
    return np.concatenate([gates[place] for place in order])


def _applied(op: Op, layer: str, given: Sequence[str], lengths: int) -> str:
    """A layer applied to all of a sequence, or as far as the lengths of its rows say."""
    if not op.has(lengths):
        return f"{layer}({', '.join(given)})"
    x, *states = given
    return f"{op.writer.helper('packed')}({', '.join([layer, x, op[lengths], *states])})"


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
    op.writer.line(f"{steps}, {kept} = {_applied(op, layer, given, 4)}")
    apart = f"{steps}.unflatten(-1, (2, {hidden})).transpose(1, 2)" if two else f"{steps}.unsqueeze(1)"
    made = [apart, *([f"{kept}[0]", f"{kept}[1]"] if op.step.op_type == "LSTM" else [kept])]
    for value, text in zip(op.step.outputs, made, strict=False):
        if value is not None:
            op.writer.line(f"{op.writer.write(value)} = {text}")
    return ""


def _call_stack(op: Op, layer: str) -> str:
    """The states of single layers are rows of what torch returns."""
    count, two = op.attribute("layers"), op.attribute("direction") == "bidirectional"
    states = [op[at] for at in (1, 2) if op.has(at)]
    given = [op[0], *([f"({', '.join(states)})"] if len(states) > 1 else states)]
    kept = op.writer.names.fresh("state") if any(op.asked(at) for at in range(1, len(op.step.outputs))) else "_"
    read = op.step.outputs[0]
    merged = op.attribute("merged")
    steps = op.writer.names.fresh("steps") if read is None or not merged else op.writer.write(read)
    op.writer.line(f"{steps}, {kept} = {_applied(op, layer, given, 3 + 3 * count)}")
    apart = f".unflatten(-1, (2, {op.attribute('hidden_size')})).transpose(1, 2)" if two else ".unsqueeze(1)"
    lasts = [f"{kept}[0]", f"{kept}[1]"] if op.step.op_type == "StackedLSTM" else [kept, kept]
    each = 2 if two else 1
    rows = [f"{last}[{each * number}:{each * (number + 1)}]" for last in lasts for number in range(count)]
    made = [f"{steps}{apart}", *lasts, *(lasts if count == 1 else rows)]
    for value, text in zip(op.step.outputs, made, strict=False):
        if value is not None and not (merged and value is read):
            op.writer.line(f"{op.writer.write(value)} = {text}")
    return ""
