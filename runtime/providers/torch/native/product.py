"""Products of matrices, in torch's libraries; the narrow floats are summed in float32."""

from __future__ import annotations

import torch
from torch import Tensor

from entrepot.runtime.kernels import matmul as shared
from entrepot.runtime.providers.torch.backend import TORCH
from entrepot.runtime.providers.torch.moving import claim_product
from entrepot.runtime.providers.torch.table import native

_PLAIN = frozenset({torch.float32, torch.float64})


@native("MatMul", 13)
def matmul(A: Tensor, B: Tensor) -> Tensor:
    """The matrix product of the last two axes, the others broadcast."""
    if not A.is_floating_point():
        return shared.matmul(TORCH, A, B)
    claim_product(A, B)
    return torch.matmul(A, B)


@native("Gemm", 13)
def gemm(
    A: Tensor,
    B: Tensor,
    C: Tensor | None = None,
    *,
    alpha: float = 1.0,
    beta: float = 1.0,
    transA: int = 0,
    transB: int = 0,
) -> Tensor:
    """Return alpha * A' @ B' + beta * C, with A' and B' transposed where asked."""
    if A.dtype not in _PLAIN:
        return shared.gemm(TORCH, A, B, C, alpha=alpha, beta=beta, transA=transA, transB=transB)
    a, b = A.t() if transA else A, B.t() if transB else B
    claim_product(a, b)
    if C is None or beta == 0.0:
        y = torch.mm(a, b)
        return y if alpha == 1.0 else y * alpha
    return torch.addmm(C, a, b, beta=beta, alpha=alpha)
