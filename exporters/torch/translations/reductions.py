"""Reductions and selections where torch.onnx (2.13) lacks the operator, tensors without axes, or all axes at once."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from onnxscript import opset20

from entrepot.exporters.torch.upstream import is_uncounted

op: Any = opset20
aten = torch.ops.aten


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


def _extreme(reduce: Callable[..., torch.Tensor]) -> Callable[..., Any]:
    """Name the axes where torch means all of them; torch.onnx (2.13) requires them inside loops and branches."""

    def decomposition(input: torch.Tensor, dim: Sequence[int] = (), keepdim: bool = False) -> Any:
        if not input.dim():
            return input.clone()
        return NotImplemented if dim else reduce(input, list(range(input.dim())), keepdim)

    return decomposition


def any_of(input: torch.Tensor, dim: Any = None, keepdim: bool = False) -> torch.Tensor:
    """Whether any element is true, counted: the largest of none, which torch.onnx takes, is not 0."""
    return input.to(torch.bool).to(torch.int64).sum(dim, keepdim) > 0


def all_true(input: torch.Tensor) -> torch.Tensor:
    """What checks of values that torch is told of come down to."""
    return torch.all(input)


def any_true(input: torch.Tensor) -> torch.Tensor:
    """The same for one that asks for any."""
    return any_of(input)


def prod(input: torch.Tensor, dim: int, keepdim: bool = False, *, dtype: torch.dtype | None = None) -> Any:
    """The product along an axis."""
    return NotImplemented if input.dim() else torch.prod(input, dtype=dtype)


def topk(input: torch.Tensor, k: Any, dim: int = -1, largest: bool = True, sorted: bool = True) -> Any:
    """The largest elements; one of a tensor without axes."""
    if input.dim():
        return NotImplemented
    return input.clone(), torch.zeros((), dtype=torch.int64)


def mean(input: torch.Tensor, dim: Any = None, keepdim: bool = False, *, dtype: torch.dtype | None = None) -> Any:
    """The mean of what may be nothing, by its sum: NaN then, where onnxruntime (1.31) has 0 and ONNX no answer."""
    axes = [axis % input.dim() for axis in dim or range(input.dim())]
    count: Any = math.prod(input.shape[axis] for axis in axes)
    kind = dtype or input.dtype
    if not is_uncounted(count) or not kind.is_floating_point:
        return NotImplemented
    wide = torch.float32 if kind in (torch.float16, torch.bfloat16) else kind
    return (input.sum(axes, keepdim, dtype=wide) / count).to(kind)


def mean_of_all(input: torch.Tensor, *, dtype: torch.dtype | None = None) -> Any:
    """The same along all axes."""
    return mean(input, dtype=dtype)


def vector_norm(
    input: torch.Tensor, ord: Any = 2.0, dim: Any = None, keepdim: bool = False, *, dtype: torch.dtype | None = None
) -> Any:
    """The norm along some axes, or along all, which torch.onnx then forgets to keep; powers of halves are too large."""
    if input.dtype in (torch.float16, torch.bfloat16) and dtype is None and ord not in (0, 1, 2, math.inf, -math.inf):
        return torch.linalg.vector_norm(input.float(), ord, dim, keepdim).to(input.dtype)
    if not input.dim():
        return aten.linalg_vector_norm(input.reshape(1), ord, [0], False, dtype=dtype)
    if dim is not None and len(dim):
        return NotImplemented
    return aten.linalg_vector_norm(input, ord, list(range(input.dim())), keepdim, dtype=dtype)


DECOMPOSITIONS = {
    aten._is_all_true.default: all_true,  # noqa: SLF001 - its name
    aten._is_any_true.default: any_true,  # noqa: SLF001
    aten.any.default: any_of,
    aten.any.dim: any_of,
    aten.any.dims: any_of,
    aten.amax.default: _extreme(torch.amax),
    aten.amin.default: _extreme(torch.amin),
    aten.mean.default: mean_of_all,
    aten.mean.dim: mean,
    aten.prod.dim_int: prod,
    aten.topk.default: topk,
    aten.linalg_vector_norm.default: vector_norm,
}
TRANSLATIONS = {torch.ops.prims.prod.default: translate_prod}
REPLACEMENTS = {torch.masked_select: masked_select, torch.Tensor.masked_select: masked_select}
