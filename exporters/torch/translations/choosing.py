"""Elements under a mask, as many as there are; and places of elements that are not zero, as many as are asked for."""

from __future__ import annotations

from typing import Any

import torch
from onnxscript import opset20

op: Any = opset20
aten, prims = torch.ops.aten, torch.ops.prims


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
    aten.nonzero_static.default: translate_nonzero_static,
    prims.view_of.default: translate_view_of,
}
