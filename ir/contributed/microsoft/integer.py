"""Products of integers that come back as floats."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir

from entrepot.ir.contributed.table import spelled
from entrepot.ir.opset.builder import OpBuilder

Value = ir.Value | None


def integer_product(op: OpBuilder, a: Any, b: Any, a_zero: Value, b_zero: Value, factors: Any) -> Any:
    """(a - its zero) @ (b - its zero) in integers, times the scales of both."""
    product = op.MatMulInteger(a, b, a_zero, b_zero)
    return op.Mul(op.Cast(product, to=int(op.need_dtype(factors))), factors)


@spelled("MatMulIntegerToFloat")
def matmul_integer_to_float(
    op: OpBuilder,
    A: Value,
    B: Value,
    a_scale: Value,
    b_scale: Value,
    a_zero_point: Value = None,
    b_zero_point: Value = None,
    bias: Value = None,
) -> Any:
    """A product of integers, scaled, and a bias."""
    made = integer_product(op, A, B, a_zero_point, b_zero_point, op.Mul(a_scale, b_scale))
    return made if bias is None else op.Add(made, bias)


@spelled("DynamicQuantizeMatMul", rounds=True)
def dynamic_quantize_matmul(
    op: OpBuilder, A: Value, B: Value, b_scale: Value, b_zero_point: Value = None, bias: Value = None
) -> Any:
    """The same after A was quantised by what it holds."""
    quantised, scale, zero = op.DynamicQuantizeLinear(A, n_outputs=3)
    made = integer_product(op, quantised, B, zero, b_zero_point, op.Mul(scale, b_scale))
    return made if bias is None else op.Add(made, bias)


@spelled("QGemm", rounds=True)
def quantised_gemm(
    op: OpBuilder,
    A: Value,
    a_scale: Value,
    a_zero_point: Value,
    B: Value,
    b_scale: Value,
    b_zero_point: Value,
    C: Value = None,
    y_scale: Value = None,
    y_zero_point: Value = None,
    *,
    alpha: float = 1.0,
    transA: int = 0,
    transB: int = 0,
) -> Any:
    """Gemm of integers; C counts in units of both scales, and the result is quantised where it has a scale."""
    left = op.Transpose(A, perm=[1, 0]) if transA else A
    right = op.Transpose(B, perm=[1, 0]) if transB else B
    product = op.MatMulInteger(left, right, a_zero_point, b_zero_point)
    product = product if C is None else op.Add(product, C)
    factors = op.Mul(a_scale, b_scale)
    if alpha != 1.0:
        factors = op.Mul(factors, op.const(alpha, like=factors))
    made = op.Mul(op.Cast(product, to=int(op.need_dtype(a_scale))), factors)
    return made if y_scale is None else op.QuantizeLinear(made, y_scale, y_zero_point)
