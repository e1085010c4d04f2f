"""Bounds and powers, with operators that keep NaNs and infinities.

onnxruntime (1.31) gives Clip with one bound the largest finite number as the other, and computes Pow of one half
as C defines it, which is infinite at minus infinity, where torch takes the root.
"""

from __future__ import annotations

from typing import Any

import onnx_ir
import torch
from onnxscript import opset20

from entrepot.exporters.torch.upstream import aten_pow_tensor_scalar

op: Any = opset20
aten = torch.ops.aten


def translate_clamp(self: Any, min: Any = None, max: Any = None) -> Any:
    """Max or Min for one bound, Clip for two."""
    if min is None and max is None:
        return op.Identity(self)
    if max is None:
        return translate_clamp_min(self, min)
    if min is None:
        return translate_clamp_max(self, max)
    return op.Clip(self, _like(min, self), _like(max, self))


def translate_clamp_min(self: Any, min: Any) -> Any:
    """The larger of each element and a bound."""
    return op.Max(self, _like(min, self))


def translate_clamp_max(self: Any, max: Any) -> Any:
    """The smaller of each element and a bound."""
    return op.Min(self, _like(max, self))


def translate_power(self: Any, exponent: Any) -> Any:
    """A root if the exponent is 0.5 or -0.5, else Pow."""
    if self.dtype.is_floating_point() and exponent in (0.5, -0.5):
        root = op.Sqrt(self)
        return root if exponent > 0 else op.Reciprocal(root)
    return aten_pow_tensor_scalar(self, exponent)


def translate_power_of_tensors(self: Any, exponent: Any) -> Any:
    """Pow; of whole numbers, 0 to an exponent below 0 is 0, where runtimes make a whole number of infinity."""
    found = op.Pow(self, exponent)
    if exponent.dtype.is_floating_point() or self.dtype.is_floating_point() or not exponent.dtype.is_signed():
        return found
    zero = op.Constant(value=onnx_ir.tensor(0, dtype=self.dtype))
    beyond = op.And(op.Equal(self, zero), op.Less(exponent, _like(0, exponent)))
    return op.Where(beyond, zero, found)


def _like(number: Any, tensor: Any) -> Any:
    if isinstance(number, bool | int | float):
        return op.Constant(value=onnx_ir.tensor(number, dtype=tensor.dtype))
    return op.CastLike(number, tensor)


TRANSLATIONS = {
    aten.clamp.default: translate_clamp,
    aten.clamp_min.default: translate_clamp_min,
    aten.clamp_min.Tensor: translate_clamp_min,
    aten.clamp_max.default: translate_clamp_max,
    aten.clamp_max.Tensor: translate_clamp_max,
    aten.pow.Tensor_Scalar: translate_power,
    aten.pow.Tensor_Tensor: translate_power_of_tensors,
}
