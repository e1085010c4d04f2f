"""Elements under a mask, as many as there are; and places of elements that are not zero, as many as are asked for."""

from __future__ import annotations

from typing import Any

import onnx_ir
import torch
from onnxscript import opset20

op: Any = opset20
aten, prims = torch.ops.aten, torch.ops.prims
_INT64, _BOOL = onnx_ir.DataType.INT64, onnx_ir.DataType.BOOL


def translate_masked_select(self: Any, mask: Any) -> Any:
    """The elements under a mask, of which one is broadcast to the other."""
    every, flat = op.Expand(mask, op.Shape(self)), op.Constant(value_ints=[-1])
    elements = op.Expand(self, op.Shape(every))
    return op.Compress(op.Reshape(elements, flat), op.Reshape(every, flat), axis=0)


def translate_nonzero_static(self: Any, size: int, fill_value: int = -1) -> Any:
    """The first ``size`` places; what is missing is filled up."""
    found = op.Transpose(op.NonZero(self), perm=[1, 0])
    rest = op.Expand(op.Constant(value_int=fill_value), op.Constant(value_ints=[size, len(self.shape)]))
    start, end = op.Constant(value_ints=[0]), op.Constant(value_ints=[size])
    return op.Slice(op.Concat(found, rest, axis=0), start, end, start)


def translate_nonzero(self: Any) -> Any:
    """Places of what is not zero; one of a number has no coordinates, about which runtimes disagree."""
    if len(self.shape):
        return op.Transpose(op.NonZero(self), perm=[1, 0])
    found = op.Transpose(op.NonZero(op.Reshape(self, op.Constant(value_ints=[1]))), perm=[1, 0])
    start = op.Constant(value_ints=[0])
    return op.Slice(found, start, start, op.Constant(value_ints=[1]))


def translate_unique_consecutive(
    self: Any, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> tuple[Any, Any, Any]:
    """What differs from what is before it, along an axis or in one line."""
    flat, zero, one = op.Constant(value_ints=[-1]), op.Constant(value_ints=[0]), op.Constant(value_ints=[1])
    x = op.Reshape(self, flat) if dim is None or not len(self.shape) else self
    axis = 0 if dim is None or not len(self.shape) else dim % len(self.shape)
    along, end = op.Constant(value_ints=[axis]), op.Constant(value_ints=[2**62])
    differs = op.Not(op.Equal(op.Slice(x, one, end, along), op.Slice(x, zero, flat, along)))
    others = [other for other in range(len(self.shape)) if other != axis] if dim is not None else []
    if others:
        differs = op.ReduceMax(op.Cast(differs, to=_INT64), op.Constant(value_ints=others), keepdims=0)
    size = op.Shape(x, start=axis, end=axis + 1)
    new = op.Concat(op.Constant(value_ints=[1]), op.Cast(differs, to=_INT64), axis=0)
    new = op.Slice(new, zero, size, zero)  # nothing is new where there is nothing
    chosen = op.Cast(new, to=_BOOL)
    inverse = op.Sub(op.CumSum(new, op.Constant(value_int=0)), one)
    starts = op.Compress(op.Range(op.Constant(value_int=0), op.Squeeze(size), op.Constant(value_int=1)), chosen, axis=0)
    counts = op.Sub(op.Slice(op.Concat(starts, size, axis=0), one, end, zero), starts)
    inverse = op.Reshape(inverse, op.Shape(self)) if dim is None else inverse
    return op.Compress(x, chosen, axis=axis), inverse, counts


def translate_view_of(a: Any) -> Any:
    """A graph has no views."""
    return op.Identity(a)


def translate_t(self: Any) -> Any:
    """Rows for columns; torch.onnx (2.13) gives a vector its own name back, which then has two."""
    return op.Transpose(self, perm=[1, 0]) if len(self.shape) == 2 else op.Identity(self)


def frexp(input: torch.Tensor) -> Any:
    """Mantissas in [0.5, 1) and exponents of 2; what is not finite, and zero, has exponent 0."""
    plain = (input == 0) | ~input.isfinite()
    size = torch.where(plain, 1.0, input.abs().to(torch.float64))
    exponent = size.log2().floor() + 1
    size = size * torch.exp2(-exponent)
    exponent = exponent + (size >= 1).to(size.dtype) - (size < 0.5).to(size.dtype)
    scaled = torch.where(plain, input.to(torch.float64), input.to(torch.float64) * torch.exp2(-exponent))
    return scaled.to(input.dtype), exponent.masked_fill(plain, 0).to(torch.int32)


DECOMPOSITIONS = {aten.frexp.Tensor: frexp}
TRANSLATIONS = {
    aten.t.default: translate_t,
    aten.masked_select.default: translate_masked_select,
    aten.nonzero.default: translate_nonzero,
    aten.unique_consecutive.default: translate_unique_consecutive,
    aten.nonzero_static.default: translate_nonzero_static,
    prims.view_of.default: translate_view_of,
}
