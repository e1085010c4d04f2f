"""Activations, alone and after what they were fused with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import onnx_ir as ir

from entrepot.ir.contributed.table import spelled
from entrepot.ir.opset.builder import OpBuilder

Value = ir.Value | None


@spelled("Gelu")
def gelu(op: OpBuilder, X: Value) -> Any:
    """As Gelu of the standard."""
    return op.Gelu(X)


@spelled("BiasGelu")
def bias_gelu(op: OpBuilder, A: Value, B: Value) -> Any:
    """Gelu(A + B)."""
    return op.Gelu(op.Add(A, B))


@spelled("FastGelu")
def fast_gelu(op: OpBuilder, X: Value, bias: Value = None) -> Any:
    """Gelu with tanh in the place of erf."""
    return op.Gelu(X if bias is None else op.Add(X, bias), approximate="tanh")


@spelled("QuickGelu")
def quick_gelu(op: OpBuilder, X: Value, *, alpha: float = 1.702) -> Any:
    """X * sigmoid(alpha * X)."""
    return op.Mul(X, op.Sigmoid(op.Mul(X, op.const(alpha, like=X))))


@spelled("BiasSplitGelu")
def bias_split_gelu(op: OpBuilder, X: Value, bias: Value) -> Any:
    """The first half of X + bias, times Gelu of the second."""
    left, right = op.Split(op.Add(X, bias), axis=-1, num_outputs=2, n_outputs=2)
    return op.Mul(left, op.Gelu(right))


@spelled("BiasAdd")
def bias_add(op: OpBuilder, X: Value, bias: Value, skip: Value) -> Any:
    """X + bias + skip."""
    return op.Add(op.Add(X, bias), skip)


def softmax_from(op: OpBuilder, x: Value, axis: int) -> Any:
    """Softmax over all axes from one on, as up to opset 12."""
    rank = op.rank(x)
    if axis == -1 or (rank is not None and axis == rank - 1):
        return op.Softmax(x, axis=-1)
    return op.Reshape(op.Softmax(op.Flatten(x, axis=axis), axis=-1), op.Shape(x))


def activated(op: OpBuilder, x: Any, activation: str | None, numbers: Sequence[float]) -> Any:
    """What a fused operator applies to its result, with the numbers in the order of onnxruntime."""
    if not activation:
        return x
    if activation not in _ACTIVATIONS:
        op.refuse(f"nobody has said what its activation '{activation}' means")
    return _ACTIVATIONS[activation](op, x, *numbers)


def _clip(op: OpBuilder, x: Any, low: float, high: float) -> Any:
    return op.Clip(x, op.const(low, like=x), op.const(high, like=x))


_ACTIVATIONS: dict[str, Callable[..., Any]] = {
    "Relu": lambda op, x: op.Relu(x),
    "Tanh": lambda op, x: op.Tanh(x),
    "Sigmoid": lambda op, x: op.Sigmoid(x),
    "LeakyRelu": lambda op, x, alpha=0.01: op.LeakyRelu(x, alpha=alpha),
    "HardSigmoid": lambda op, x, alpha=0.2, beta=0.5: op.HardSigmoid(x, alpha=alpha, beta=beta),
    "Clip": _clip,
}
