from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from entrepot.runtime.kernels.precision import accumulation_dtype
from entrepot.runtime.providers.cpu.native.quantized import exact_product, less_zero, requantized, single
from entrepot.runtime.providers.cpu.products import matmul as spread
from entrepot.runtime.providers.cpu.table import native

Array: TypeAlias = np.ndarray[Any, Any]


@native("MatMul", 13)
def matmul(A: Array, B: Array) -> Array:
    """The matrix product; float16 and bfloat16 are summed in float32, a stack by one matrix is one product."""
    dtype = accumulation_dtype(A.dtype)
    if dtype != A.dtype:
        return matmul(A.astype(dtype), B.astype(dtype)).astype(A.dtype)
    if B.ndim == 2 and A.ndim > 2 and A.flags.c_contiguous and A.size:
        return spread(A.reshape(-1, A.shape[-1]), B).reshape(*A.shape[:-1], B.shape[1])
    return spread(A, B)


@native("Gemm", 13)
def gemm(
    A: Array,
    B: Array,
    C: Array | None = None,
    *,
    alpha: float = 1.0,
    beta: float = 1.0,
    transA: int = 0,
    transB: int = 0,
) -> Array:
    """Return alpha * A' @ B' + beta * C, the sum made in place."""
    dtype = accumulation_dtype(A.dtype)
    a, b = A.astype(dtype, copy=False), B.astype(dtype, copy=False)
    y = spread(a.T if transA else a, b.T if transB else b)
    if alpha != 1.0:
        y *= dtype.type(alpha)
    if C is not None and beta != 0.0:
        y += C if beta == 1.0 else C.astype(dtype) * dtype.type(beta)
    return y.astype(A.dtype, copy=False)


@native("MatMulInteger", 10)
def matmul_integer(A: Array, B: Array, a_zero_point: Array | None = None, b_zero_point: Array | None = None) -> Array:
    """The exact product of 8-bit integers less their zero points, in int32."""
    return exact_product(less_zero(A, a_zero_point, (-1, 1)), less_zero(B, b_zero_point, (-1,)))


@native("QLinearMatMul", 21)
def qlinear_matmul(
    a: Array,
    a_scale: Array,
    a_zero_point: Array,
    b: Array,
    b_scale: Array,
    b_zero_point: Array,
    y_scale: Array,
    y_zero_point: Array,
) -> Array:
    """The product of two quantised matrices, quantised again."""
    total = spread(less_zero(a, a_zero_point, (-1, 1)), less_zero(b, b_zero_point, (-1,)))
    scale_a, scale_b, scale_y = (single(scale).astype(np.float32) for scale in (a_scale, b_scale, y_scale))
    rows = scale_a[:, None] if scale_a.ndim == 1 else scale_a
    return requantized(total, rows * scale_b / scale_y, single(y_zero_point))
