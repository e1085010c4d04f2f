"""Python numbers as tensors in full precision: torch.onnx (2.13) rounds them to float32 first."""

from __future__ import annotations

from typing import Any

import onnx_ir
import torch
from onnxscript import opset20

from entrepot.exporters.torch.upstream import aten_scalar_tensor

op: Any = opset20
aten = torch.ops.aten

_FLOAT = int(onnx_ir.DataType.FLOAT)


def translate_scalar_tensor(s: Any, dtype: int = _FLOAT, **_how: Any) -> Any:
    """A number as a tensor without axes."""
    kind = dtype if dtype != -1 else _FLOAT
    if onnx_ir.DataType(kind) in (onnx_ir.DataType.COMPLEX64, onnx_ir.DataType.COMPLEX128):
        return aten_scalar_tensor(s, kind)  # as a pair of reals
    return _number(s, kind)


def translate_full(size: Any, fill_value: Any, dtype: int = -1, **_how: Any) -> Any:
    """A tensor filled with one number; without a dtype, its type decides."""
    return op.Expand(_number(fill_value, dtype), op.Cast(size, to=int(onnx_ir.DataType.INT64)))


def translate_full_like(self: Any, fill_value: Any, dtype: int = -1, **_how: Any) -> Any:
    """One number in the shape of another tensor, and in its dtype unless another is named."""
    return op.Expand(_number(fill_value, _own(self, dtype)), op.Shape(self))


def translate_new_full(self: Any, size: Any, fill_value: Any, dtype: int = -1, **_how: Any) -> Any:
    """One number in the dtype of another tensor."""
    return op.Expand(_number(fill_value, _own(self, dtype)), op.Cast(size, to=int(onnx_ir.DataType.INT64)))


def translate_masked_fill(self: Any, mask: Any, value: Any) -> Any:
    """One number where a mask is true."""
    return op.Where(mask, _number(value, int(self.dtype)), self)


def translate_times(self: Any, other: Any) -> Any:
    """Times a number, which torch makes of the factor of whole numbers that is computed from sizes."""
    product = op.And if self.dtype == onnx_ir.DataType.BOOL else op.Mul
    return product(self, _number(other, int(self.dtype)))


def translate_less(self: Any, other: Any, alpha: Any = 1) -> Any:
    """Less a number, which may have a factor."""
    kind = int(self.dtype)
    number = _number(other, kind)
    return op.Sub(self, number if alpha == 1 else op.Mul(number, _number(alpha, kind)))


def _own(tensor: Any, dtype: int) -> int:
    return int(tensor.dtype) if dtype == -1 else dtype


def _number(value: Any, dtype: int) -> Any:
    if not isinstance(value, bool | int | float):
        return value if dtype == -1 else op.Cast(value, to=dtype)
    if dtype == -1:
        dtype = int(
            {bool: onnx_ir.DataType.BOOL, int: onnx_ir.DataType.INT64, float: onnx_ir.DataType.FLOAT}[type(value)]
        )
    return op.Constant(value=onnx_ir.tensor(value, dtype=onnx_ir.DataType(dtype)))


TRANSLATIONS = {
    aten.scalar_tensor.default: translate_scalar_tensor,
    aten.full.default: translate_full,
    aten.full_like.default: translate_full_like,
    aten.new_full.default: translate_new_full,
    aten.masked_fill.Scalar: translate_masked_fill,
    aten.mul.Scalar: translate_times,
    aten.sub.Scalar: translate_less,
}
