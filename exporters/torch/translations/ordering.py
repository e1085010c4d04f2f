"""Sorting and searching that torch.onnx (2.13) does not translate."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir
import torch
from onnxscript import opset20

op: Any = opset20


def translate_stable_sort(x: Any, stable: bool = False, dim: int = -1, descending: bool = False) -> tuple[Any, Any]:
    """TopK of everything: ONNX gives equal values in the order of their indices, which is what stable means."""
    if len(x.shape) == 0:
        return op.Identity(x), op.Constant(value_int=0)
    axis = dim % len(x.shape)
    everything = op.Shape(x, start=axis, end=axis + 1)
    is_bool = x.dtype is ir.DataType.BOOL  # which TopK does not take
    numbers = op.Cast(x, to=ir.DataType.INT32) if is_bool else x
    values, indices = op.TopK(numbers, everything, axis=axis, largest=int(descending), sorted=1)
    return op.Cast(values, to=ir.DataType.BOOL) if is_bool else values, indices


def translate_sort(x: Any, dim: int = -1, descending: bool = False) -> tuple[Any, Any]:
    """In any order of equal values, hence in theirs."""
    return translate_stable_sort(x, stable=True, dim=dim, descending=descending)


def searchsorted(
    sorted_sequence: torch.Tensor,
    input: torch.Tensor | float,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: torch.Tensor | None = None,
) -> torch.Tensor:
    """How many elements of each sorted row come before each value."""
    values = torch.as_tensor(input, dtype=None if isinstance(input, torch.Tensor) else sorted_sequence.dtype)
    if sorter is not None:
        sorted_sequence = sorted_sequence.gather(-1, sorter)
    rows, values_ = sorted_sequence.unsqueeze(-2), values.unsqueeze(-1)
    after = values_ < rows if right or side == "right" else values_ <= rows  # a NaN comes after everything
    return (~after).sum(-1).reshape(values.shape).to(torch.int32 if out_int32 else torch.int64)


def bucketize(
    input: torch.Tensor | float, boundaries: torch.Tensor, *, out_int32: bool = False, right: bool = False
) -> torch.Tensor:
    """The bucket of each value between sorted boundaries."""
    return searchsorted(boundaries, input, out_int32=out_int32, right=right)


TRANSLATIONS = {torch.ops.aten.sort.stable: translate_stable_sort, torch.ops.aten.sort.default: translate_sort}
REPLACEMENTS = {torch.searchsorted: searchsorted, torch.bucketize: bucketize}
