"""Matrix products and convolutions with what was fused into them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import onnx_ir as ir

from entrepot.ir.contributed.microsoft.activation import activated
from entrepot.ir.contributed.table import spelled
from entrepot.ir.opset.builder import OpBuilder

Value = ir.Value | None


@spelled("FusedMatMul")
def fused_matmul(
    op: OpBuilder,
    A: Value,
    B: Value,
    *,
    alpha: float = 1.0,
    transA: int = 0,
    transB: int = 0,
    transBatchA: int = 0,
    transBatchB: int = 0,
) -> Any:
    """Alpha * A' @ B', each turned where asked."""
    product = op.MatMul(_turned(op, A, transA, transBatchA), _turned(op, B, transB, transBatchB))
    return product if alpha == 1.0 else op.Mul(product, op.const(alpha, like=A))


@spelled("TransposeMatMul")
def transpose_matmul(op: OpBuilder, A: Value, B: Value, *, alpha: float = 1.0, transA: int = 0, transB: int = 0) -> Any:
    """The older name of FusedMatMul."""
    return fused_matmul(op, A, B, alpha=alpha, transA=transA, transB=transB)


def _turned(op: OpBuilder, x: Value, matrix: int, batch: int) -> Any:
    """With the first axis behind the batch, and the last two exchanged, where asked."""
    if not (matrix or batch):
        return x
    rank = op.need_rank(x)
    axes = [*range(1, rank - 1), 0, rank - 1] if batch else [*range(rank)]
    if matrix and rank > 1:
        axes[-2:] = axes[:-3:-1]
    return op.Transpose(x, perm=axes)


@spelled("FusedGemm")
def fused_gemm(
    op: OpBuilder,
    A: Value,
    B: Value,
    C: Value = None,
    *,
    alpha: float = 1.0,
    beta: float = 1.0,
    transA: int = 0,
    transB: int = 0,
    activation: str | None = None,
    activation_alpha: float | None = None,
    activation_beta: float | None = None,
    activation_gamma: float | None = None,
) -> Any:
    """Gemm and an activation."""
    made = op.Gemm(A, B, C, alpha=alpha, beta=beta, transA=transA, transB=transB)
    numbers = (activation_alpha, activation_beta, activation_gamma)
    return activated(op, made, activation, [number for number in numbers if number is not None])


@spelled("GemmFastGelu")
def gemm_fast_gelu(op: OpBuilder, X: Value, W: Value, bias: Value = None) -> Any:
    """Gelu(X @ W + bias) with tanh in the place of erf."""
    product = op.MatMul(X, W)
    return op.Gelu(product if bias is None else op.Add(product, bias), approximate="tanh")


@spelled("FusedConv")
def fused_conv(
    op: OpBuilder,
    X: Value,
    W: Value,
    B: Value = None,
    Z: Value = None,
    *,
    activation: str | None = None,
    activation_params: Sequence[float] = (),
    auto_pad: str = "NOTSET",
    dilations: Sequence[int] | None = None,
    group: int = 1,
    kernel_shape: Sequence[int] | None = None,
    pads: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
) -> Any:
    """Conv, a sum with Z, and an activation."""
    made = op.Conv(
        X,
        W,
        B,
        auto_pad=auto_pad,
        dilations=dilations,
        group=group,
        kernel_shape=kernel_shape,
        pads=pads,
        strides=strides,
    )
    return activated(op, made if Z is None else op.Add(made, Z), activation, activation_params)
