"""Products of 8-bit integers by a constant matrix."""

from __future__ import annotations

import functools
from collections.abc import Callable

import torch
from torch import Tensor

from entrepot.runtime.exact import constant_shape, pieces
from entrepot.runtime.node_view import NodeView
from entrepot.runtime.providers.torch.linear import by_constant
from entrepot.runtime.providers.torch.native import quantized as native
from entrepot.runtime.providers.torch.table import prepared


@prepared("MatMulInteger", 10)
def matmul_integer(node: NodeView) -> Callable[..., Tensor] | None:
    """Exactly in float32 on the host, piece by piece where sums are too large for it."""
    shape = constant_shape(node)
    if shape is None:
        return None
    inner, outer = shape

    @functools.cache
    def products() -> list[tuple[slice, Callable[..., Tensor]]]:
        return [(some, by_constant(part, None)) for some, part in pieces(node)]  # not on a device, which needs none

    def run(A: Tensor, B: Tensor, a_zero_point: Tensor | None = None, b_zero_point: Tensor | None = None) -> Tensor:
        is_plain = A.device.type == "cpu" and torch.get_float32_matmul_precision() == "highest"
        if not (is_plain and A.ndim and A.shape[-1] == inner and A.numel()):
            return native.matmul_integer(A, B, a_zero_point, b_zero_point)
        left = A.to(torch.float32)
        if a_zero_point is not None:
            zero = native.single(a_zero_point).to(torch.float32)
            left = left - (zero.reshape(-1, 1) if zero.ndim == 1 else zero)
        rows = left.reshape(-1, inner)
        some, first = products()[0]
        total = first(rows[:, some]).to(torch.int32)
        for some, product in products()[1:]:
            total += product(rows[:, some]).to(torch.int32)
        return total.reshape(*A.shape[:-1], outer)

    return run
