"""Reductions and selections that torch.onnx (2.13) does not translate."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from onnxscript import opset20

op: Any = opset20


def translate_prod(x: Any, dims: Any = None, *, output_dtype: Any = None) -> Any:
    """ReduceProd; what ``cumprod`` comes down to as well."""
    if output_dtype is not None and output_dtype != -1:
        x = op.Cast(x, to=int(output_dtype))
    if dims is None:
        return op.ReduceProd(x, keepdims=0)
    return op.ReduceProd(x, op.Constant(value_ints=list(dims)), keepdims=0)


def masked_select(input: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """The elements under the mask, in order; the two broadcast."""
    values, chosen = torch.broadcast_tensors(input, mask)
    return values[chosen]


def _extreme_of_all(reduce: Callable[..., torch.Tensor]) -> Callable[..., Any]:
    """Name the axes where torch means all of them; torch.onnx (2.13) requires them inside loops and branches."""

    def decomposition(input: torch.Tensor, dim: Sequence[int] = (), keepdim: bool = False) -> Any:
        if dim or not input.dim():
            return NotImplemented
        return reduce(input, list(range(input.dim())), keepdim)

    return decomposition


def any_of(input: torch.Tensor, dim: Any = None, keepdim: bool = False) -> torch.Tensor:
    """Whether any element is true, counted: the largest of none, which torch.onnx takes, is not 0."""
    return input.to(torch.bool).to(torch.int64).sum(dim, keepdim) > 0


DECOMPOSITIONS = {
    torch.ops.aten.any.default: any_of,
    torch.ops.aten.any.dim: any_of,
    torch.ops.aten.any.dims: any_of,
    torch.ops.aten.amax.default: _extreme_of_all(torch.amax),
    torch.ops.aten.amin.default: _extreme_of_all(torch.amin),
}
TRANSLATIONS = {torch.ops.prims.prod.default: translate_prod}
REPLACEMENTS = {torch.masked_select: masked_select, torch.Tensor.masked_select: masked_select}
