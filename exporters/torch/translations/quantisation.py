"""Quantising and dequantising, as ONNX has it: operators of ours, and those that PT2E programs are made of.

torch.onnx (2.13) forgets the range of ``quantize_per_tensor``, and gives up where a scale is computed.
"""

from __future__ import annotations

from typing import Any

import torch
from onnxscript import opset20

from entrepot.exporters.torch.upstream import int8_product, integer_product, quantized_decomposed

op: Any = opset20

_library = torch.library.Library("entrepot", "FRAGMENT")
_library.define("quantise(Tensor x, Tensor scale, Tensor zero_point, int axis=0) -> Tensor")
_library.define("dequantise(Tensor x, Tensor scale, Tensor zero_point, int axis=0) -> Tensor")

BYTES = (torch.uint8, torch.int8)
"""What ONNX quantises to at the opset that we translate to."""


def quantise(x: torch.Tensor, scale: Any, zero_point: Any, kind: torch.dtype, axis: int = 0) -> torch.Tensor:
    """``x`` in steps, rounded; a scale and a zero point are numbers or tensors, for all of it or along an axis."""
    return torch.ops.entrepot.quantise(x, parameter(scale, torch.float32), parameter(zero_point, kind), axis)


def dequantise(x: torch.Tensor, scale: Any, zero_point: Any, axis: int = 0) -> torch.Tensor:
    """The numbers that quantised ones stand for."""
    return torch.ops.entrepot.dequantise(x, parameter(scale, torch.float32), parameter(zero_point, x.dtype), axis)


def parameter(given: Any, kind: torch.dtype) -> torch.Tensor:
    """A scale or a zero point as a tensor."""
    if not isinstance(given, torch.Tensor):
        return torch.full((), given, dtype=kind)
    return (given.reshape(()) if given.numel() == 1 else given).to(kind)


rounding: Any = torch.round
"""How eager quantising rounds; ``quantised.steps`` puts something else here for a while."""


def _quantise(x: torch.Tensor, scale: torch.Tensor, zero_point: torch.Tensor, axis: int = 0) -> torch.Tensor:
    limits = torch.iinfo(zero_point.dtype)
    steps = rounding(x / _along(scale, x, axis)) + _along(zero_point.to(torch.float32), x, axis)
    return steps.clamp(limits.min, limits.max).to(zero_point.dtype)


def _dequantise(x: torch.Tensor, scale: torch.Tensor, zero_point: torch.Tensor, axis: int = 0) -> torch.Tensor:
    return (x.to(torch.float32) - _along(zero_point.to(torch.float32), x, axis)) * _along(scale, x, axis)


def _along(parameter: torch.Tensor, x: torch.Tensor, axis: int) -> torch.Tensor:
    return parameter.reshape([-1 if at == axis else 1 for at in range(x.dim())]) if parameter.dim() else parameter


def _quantised_shape(x: torch.Tensor, scale: torch.Tensor, zero_point: torch.Tensor, axis: int = 0) -> torch.Tensor:
    return torch.empty_like(x, dtype=zero_point.dtype)


def _plain_shape(x: torch.Tensor, scale: torch.Tensor, zero_point: torch.Tensor, axis: int = 0) -> torch.Tensor:
    return torch.empty_like(x, dtype=torch.float32)


_library.impl("quantise", _quantise, "CompositeExplicitAutograd")
_library.impl("dequantise", _dequantise, "CompositeExplicitAutograd")
torch.library.register_fake("entrepot::quantise", _quantised_shape, lib=_library)
torch.library.register_fake("entrepot::dequantise", _plain_shape, lib=_library)


def _translate_quantise(x: Any, scale: Any, zero_point: Any, axis: int = 0) -> Any:
    return op.QuantizeLinear(x, scale, zero_point, **_by_axis(scale, axis))


def _translate_dequantise(x: Any, scale: Any, zero_point: Any, axis: int = 0) -> Any:
    return op.DequantizeLinear(x, scale, zero_point, **_by_axis(scale, axis))


def _by_axis(scale: Any, axis: int) -> dict[str, int]:
    return {"axis": axis} if len(scale.shape) else {}


def _translate_int_mm(self: Any, mat2: Any) -> Any:
    return op.MatMulInteger(self, mat2)


TRANSLATIONS = {
    integer_product.default: _translate_int_mm,
    torch.ops.entrepot.quantise.default: _translate_quantise,
    torch.ops.entrepot.dequantise.default: _translate_dequantise,
}


# --- PT2E


def quantize_range(
    input: torch.Tensor, scale: Any, zero_point: Any, low: Any, high: Any, dtype: torch.dtype, axis: int = 0
) -> torch.Tensor:
    """In steps from ``low`` to ``high``; by arithmetic where ONNX does not quantise to that type."""
    if dtype in BYTES and isinstance(low, int) and isinstance(high, int):
        steps = quantise(input.to(torch.float32), scale, zero_point, dtype, axis)
        limits = torch.iinfo(dtype)
        return steps if low <= limits.min and high >= limits.max else steps.clamp(low, high)
    scale, offset = (_along(parameter(each, torch.float32), input, axis) for each in (scale, zero_point))
    return (torch.round(input.to(torch.float32) / scale) + offset).clamp(low, high).to(dtype)


def dequantize_range(
    input: torch.Tensor, scale: Any, zero_point: Any, axis: int = 0, out_dtype: torch.dtype | None = None
) -> torch.Tensor:
    """The numbers that steps stand for."""
    zero_point = 0 if zero_point is None else zero_point
    if input.dtype in BYTES:
        found = dequantise(input, scale, zero_point, axis)
    else:
        scale, offset = (_along(parameter(each, torch.float32), input, axis) for each in (scale, zero_point))
        found = (input.to(torch.float32) - offset) * scale
    return found if out_dtype is None else found.to(out_dtype)


def quantize_per_channel(
    input: torch.Tensor,
    scales: torch.Tensor,
    zero_points: torch.Tensor,
    axis: int,
    quant_min: int,
    quant_max: int,
    dtype: torch.dtype,
) -> torch.Tensor:
    """With a scale for each index along one axis."""
    return quantize_range(input, scales, zero_points, quant_min, quant_max, dtype, axis % input.dim())


def dequantize_per_tensor(
    input: torch.Tensor,
    scale: Any,
    zero_point: Any,
    quant_min: Any,
    quant_max: Any,
    dtype: torch.dtype,
    *,
    out_dtype: torch.dtype | None = None,
) -> torch.Tensor:
    """The range says nothing about the result."""
    return dequantize_range(input, scale, zero_point, out_dtype=out_dtype)


def dequantize_per_channel(
    input: torch.Tensor,
    scales: torch.Tensor,
    zero_points: torch.Tensor | None,
    axis: int,
    quant_min: int,
    quant_max: int,
    dtype: torch.dtype,
    *,
    out_dtype: torch.dtype | None = None,
) -> torch.Tensor:
    """With a scale for each index along one axis."""
    return dequantize_range(input, scales, zero_points, axis % input.dim(), out_dtype)


def choose_qparams(
    input: torch.Tensor, quant_min: int, quant_max: int, eps: float, dtype: torch.dtype
) -> tuple[torch.Tensor, torch.Tensor]:
    """The step and the zero point for the range of a tensor."""
    low, high = input.amin().clamp(max=0.0), input.amax().clamp(min=0.0)
    scale = ((high - low) / float(quant_max - quant_min)).clamp(min=eps)
    zero_point = (quant_min - torch.round(low / scale)).clamp(quant_min, quant_max)
    return scale.to(torch.float64).reshape(1), zero_point.to(torch.int64).reshape(1)


def choose_qparams_symmetric(
    input: torch.Tensor, quant_min: int, quant_max: int, eps: float, dtype: torch.dtype
) -> tuple[torch.Tensor, torch.Tensor]:
    """The step for the range of a tensor, on both sides of zero."""
    most = torch.maximum(-input.amin().clamp(max=0.0), input.amax().clamp(min=0.0))
    scale = (most / (float(quant_max - quant_min) / 2)).clamp(min=eps)
    zero_point = torch.full((1,), 128 if dtype in (torch.quint8, torch.uint8) else 0, dtype=torch.int64)
    return scale.to(torch.float64).reshape(1), zero_point


def weight_int8pack_mm(self: torch.Tensor, mat2: torch.Tensor, scales: torch.Tensor) -> torch.Tensor:
    """A product with a weight of eight bits, a scale for each of its rows."""
    weight = dequantise(mat2, scales, torch.zeros_like(scales, dtype=torch.int8))
    return torch.nn.functional.linear(self, weight.to(self.dtype))


DECOMPOSITIONS = {
    int8_product.default: weight_int8pack_mm,
    quantized_decomposed.choose_qparams.tensor: choose_qparams,
    quantized_decomposed.choose_qparams_symmetric.tensor: choose_qparams_symmetric,
    quantized_decomposed.quantize_per_tensor.default: quantize_range,
    quantized_decomposed.quantize_per_tensor.tensor: quantize_range,
    quantized_decomposed.quantize_per_tensor.tensor2: quantize_range,
    quantized_decomposed.quantize_per_channel.default: quantize_per_channel,
    quantized_decomposed.dequantize_per_tensor.default: dequantize_per_tensor,
    quantized_decomposed.dequantize_per_tensor.tensor: dequantize_per_tensor,
    quantized_decomposed.dequantize_per_tensor.tensor2: dequantize_per_tensor,
    quantized_decomposed.dequantize_per_channel.default: dequantize_per_channel,
}
