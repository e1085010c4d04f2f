"""Products of tensors, which torch.onnx (2.13) translates for operands of one type."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import torch

from entrepot.exporters.torch.upstream import is_uncounted

aten = torch.ops.aten


def einsum(equation: str, operands: Sequence[torch.Tensor], *, path: Sequence[int] | None = None) -> Any:
    """Operands of several types, where torch multiplies them element by element."""
    kinds = [each.dtype for each in operands]
    if len(set(kinds)) == 1:
        return NotImplemented
    common = functools.reduce(torch.promote_types, kinds)
    return torch.einsum(equation, *(each.to(common) for each in operands))


def matmul(input: torch.Tensor, other: torch.Tensor) -> Any:
    """Products of as many matrices as the data say, and one other: of none, onnxruntime (1.31) makes an error."""
    if not any(map(is_uncounted, (*input.shape[:-1], *other.shape[:-2]))):
        return NotImplemented
    if other.dim() == 1:
        return (input @ other.unsqueeze(-1)).squeeze(-1) if input.dim() > 1 else NotImplemented
    if input.dim() == 1:
        return (input.unsqueeze(0) @ other).squeeze(-2)
    if other.dim() == 2:  # its rows take part in one product with those of all matrices
        return NotImplemented
    count = max(input.dim(), other.dim()) - 2
    sizes = [[1] * (count + 2 - each.dim()) + [*each.shape[:-2]] for each in (input, other)]
    if all(_is_one(one) == _is_one(each) for one, each in zip(*sizes, strict=True)):
        return NotImplemented
    batch = [each if _is_one(one) else one for one, each in zip(*sizes, strict=True)]
    return input.expand(*batch, *input.shape[-2:]) @ other.expand(*batch, *other.shape[-2:])


def _is_one(size: Any) -> bool:
    return isinstance(size, int) and size == 1


def product_with_vector(input: torch.Tensor, vec: torch.Tensor) -> Any:
    """The same of as many rows as the data say, and a vector."""
    return matmul(input, vec)


DECOMPOSITIONS = {
    aten.einsum.default: einsum,
    aten.matmul.default: matmul,
    aten.mv.default: product_with_vector,
}
