from __future__ import annotations

import numpy as np

from entrepot.runtime.kernels.backend import Array, Backend
from entrepot.runtime.kernels.precision import narrow, widen
from entrepot.runtime.kernels.table import shared


@shared("MatMul", 13)
def matmul(xp: Backend, A: Array, B: Array) -> Array:
    """The matrix product of the last two axes, the others broadcast."""
    return narrow(xp, xp.matmul(widen(xp, A), widen(xp, B)), xp.dtype(A))


@shared("Gemm", 13)
def gemm(
    xp: Backend,
    A: Array,
    B: Array,
    C: Array | None = None,
    *,
    alpha: float = 1.0,
    beta: float = 1.0,
    transA: int = 0,
    transB: int = 0,
) -> Array:
    """Return alpha * A' @ B' + beta * C, with A' and B' transposed where asked."""
    a, b = widen(xp, A), widen(xp, B)
    y = xp.matmul(xp.transpose(a) if transA else a, xp.transpose(b) if transB else b)
    if alpha != 1.0:
        y = y * xp.scalar(alpha, like=y)  # a Python float must not promote float16
    if C is not None and beta != 0.0:
        c = widen(xp, C)
        y = y + (c if beta == 1.0 else c * xp.scalar(beta, like=c))
    return narrow(xp, y, xp.dtype(A))


@shared("MatMulInteger", 10)
def matmul_integer(
    xp: Backend, A: Array, B: Array, a_zero_point: Array | None = None, b_zero_point: Array | None = None
) -> Array:
    """The exact product of 8-bit integers less their zero points, in int32."""
    int32 = np.dtype(np.int32)
    a, b = xp.astype(A, int32), xp.astype(B, int32)
    if a_zero_point is not None:  # one per row of A, where it is not a scalar
        zero = xp.astype(a_zero_point, int32)
        a = a - (xp.expand_dims(zero, -1) if len(xp.shape(zero)) == 1 and xp.shape(zero) != (1,) else zero)
    if b_zero_point is not None:  # one per column of B
        b = b - xp.astype(b_zero_point, int32)
    return xp.matmul(a, b)


@shared("Einsum", 28)
def einsum(xp: Backend, *Inputs: Array, equation: str) -> Array:
    """The sum over every index that the right-hand side of ``equation`` does not name."""
    dtype = xp.dtype(Inputs[0])
    return narrow(xp, xp.einsum(equation.replace(" ", ""), [widen(xp, x) for x in Inputs]), dtype)
