"""Operators of TorchScript for which torch.onnx (2.13) has no symbolic function, or one that its own folding breaks.

Cells of recurrent networks, ``in`` for lists of numbers, which those cells ask about their inputs, and ``unbind``,
whose parts would keep the axis: without them few loops over a length are translated.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import torch
from onnx import TensorProto
from torch.onnx import symbolic_helper

from entrepot.ir.errors import ConversionError


@contextlib.contextmanager
def more_symbolics(opset: int) -> Iterator[None]:
    """Inside, torch.onnx knows them, for graphs of this opset."""
    for name, function in _SYMBOLICS.items():
        torch.onnx.register_custom_op_symbolic(name, function, opset)  # type: ignore[attr-defined]
    try:
        yield
    finally:
        for name in _SYMBOLICS:
            torch.onnx.unregister_custom_op_symbolic(name, opset)  # type: ignore[attr-defined]


def _contains(g: Any, items: Any, element: Any) -> Any:
    """``element in items``, of integers."""
    made = items.node()
    if made.kind() == "prim::ListConstruct":
        one = g.op("Constant", value_t=torch.tensor([1]))
        items = g.op("Concat", *(g.op("Reshape", each, one) for each in made.inputs()), axis_i=0)
    elif made.kind() != "onnx::Constant":
        raise ConversionError("torch.onnx cannot translate 'in' for a list that is computed")
    same = g.op("Cast", g.op("Equal", items, element), to_i=TensorProto.INT64)
    return g.op("Cast", g.op("ReduceMax", same, keepdims_i=0), to_i=TensorProto.BOOL)


@symbolic_helper.parse_args("v", "i", "i")
def _unbind(g: Any, x: Any, dim: int = 0, count: int | None = None) -> Any:
    """Slices without the axis; ``keepdims`` is not heeded where their sizes are given."""
    if count is None:
        return g.op("SplitToSequence", x, axis_i=dim, keepdims_i=0)
    parts = g.op("Split", x, axis_i=dim, num_outputs_i=count, outputs=count)
    axes = g.op("Constant", value_t=torch.tensor([dim]))
    return [g.op("Squeeze", part, axes) for part in ([parts] if count == 1 else parts)]


def _gru_cell(g: Any, x: Any, state: Any, w_x: Any, w_state: Any, b_x: Any, b_state: Any) -> Any:
    own, kept = (
        g.op("Split", part, axis_i=-1, num_outputs_i=3, outputs=3)
        for part in (_linear(g, x, w_x, b_x), _linear(g, state, w_state, b_state))
    )
    reset, update = (g.op("Sigmoid", g.op("Add", own[gate], kept[gate])) for gate in range(2))
    new = g.op("Tanh", g.op("Add", own[2], g.op("Mul", reset, kept[2])))
    return g.op("Add", new, g.op("Mul", update, g.op("Sub", state, new)))


def _rnn_cell(activation: str) -> Callable[..., Any]:
    def cell(g: Any, x: Any, state: Any, w_x: Any, w_state: Any, b_x: Any, b_state: Any) -> Any:
        return g.op(activation, g.op("Add", _linear(g, x, w_x, b_x), _linear(g, state, w_state, b_state)))

    return cell


def _linear(g: Any, x: Any, weight: Any, bias: Any) -> Any:
    product = g.op("MatMul", x, g.op("Transpose", weight, perm_i=[1, 0]))
    return product if bias.node().mustBeNone() else g.op("Add", product, bias)


_SYMBOLICS: dict[str, Callable[..., Any]] = {
    "aten::__contains_": _contains,
    "aten::gru_cell": _gru_cell,
    "aten::unbind": _unbind,
    "aten::rnn_tanh_cell": _rnn_cell("Tanh"),
    "aten::rnn_relu_cell": _rnn_cell("Relu"),
}
