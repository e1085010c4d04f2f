"""Sizes that a model's weights fix although its inputs name them: channels, features."""

from __future__ import annotations

from collections.abc import Callable

import onnx_ir as ir

from entrepot.ir.model import Model

_RECURRENT = ("LSTM", "GRU", "RNN")


def by_weights(model: Model) -> dict[str, int]:
    """Symbols that only one size can have, and these: what convolves or multiplies an input as it comes.

    Exporters that are told nothing, or too much, name such axes like any other.
    """
    inputs = set(model.ir.graph.inputs)
    found: dict[str, int] = {}
    for node in model.ir.graph:
        rule = _RULES.get(node.op_type) if node.domain in ("", "ai.onnx") else None
        wanted = None if rule is None else rule(node)
        if wanted is None or node.inputs[0] is None:
            continue
        source, axis = _before(node.inputs[0], wanted[0])
        shape = source.shape
        if source in inputs and shape is not None and axis < len(shape):
            dim = shape[axis]
            name = dim.value if isinstance(dim, ir.SymbolicDim) else None
            if name is not None:
                found.setdefault(name, wanted[1])
    return found


def _before(value: ir.Value, axis: int) -> tuple[ir.Value, int]:
    """Where an axis comes from, before axes were put in another order."""
    node = value.producer()
    while node is not None and node.op_type in ("Transpose", "Identity") and node.inputs[0] is not None:
        order = node.attributes.get_ints("perm", ())
        if node.op_type == "Transpose" and axis >= len(order):
            break
        value, axis = node.inputs[0], order[axis] if node.op_type == "Transpose" else axis
        node = value.producer()
    return value, axis


def _sizes(node: ir.Node, rank: int) -> tuple[int, ...]:
    """The shape of a node's weights, if they have that rank; else nothing."""
    weights = node.inputs[1] if len(node.inputs) > 1 else None
    if weights is None or weights.const_value is None or len(weights.const_value.shape) < rank:
        return ()
    return tuple(int(size) for size in weights.const_value.shape.numpy())


def _conv(node: ir.Node) -> tuple[int, int] | None:
    sizes = _sizes(node, 3)
    return (1, sizes[1] * node.attributes.get_int("group", 1)) if sizes else None


def _conv_transpose(node: ir.Node) -> tuple[int, int] | None:
    sizes = _sizes(node, 3)
    return (1, sizes[0]) if sizes else None


def _recurrent(node: ir.Node) -> tuple[int, int] | None:
    sizes = _sizes(node, 3)
    return (2, sizes[2]) if sizes else None


def _matmul(node: ir.Node) -> tuple[int, int] | None:
    sizes = _sizes(node, 2)
    left = None if node.inputs[0] is None else node.inputs[0].shape
    return (len(left) - 1, sizes[-2]) if sizes and left is not None and len(left) else None


def _gemm(node: ir.Node) -> tuple[int, int] | None:
    sizes = _sizes(node, 2)
    if not sizes:
        return None
    return 0 if node.attributes.get_int("transA", 0) else 1, sizes[1 if node.attributes.get_int("transB", 0) else 0]


_RULES: dict[str, Callable[[ir.Node], tuple[int, int] | None]] = {
    "Conv": _conv,
    "ConvTranspose": _conv_transpose,
    "Gemm": _gemm,
    "MatMul": _matmul,
    **dict.fromkeys(_RECURRENT, _recurrent),
}
"""The axis of the first operand, and its size."""
