"""Operators given a size where torch.onnx (2.13) takes a constant: ``x.clamp(0.5, x.shape[1])``, ``F.elu(x, n)``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

aten = torch.ops.aten


def _varies(value: Any) -> bool:
    return isinstance(value, torch.SymInt | torch.SymFloat)


def _tensor(value: Any, dtype: torch.dtype) -> torch.Tensor:
    return torch.scalar_tensor(value, dtype=dtype)


def clamp(input: torch.Tensor, min: Any = None, max: Any = None) -> Any:
    """Between numbers of which one is a size, or that make floats of whole numbers."""
    widens = not input.is_floating_point() and any(isinstance(each, float) for each in (min, max))
    if not (widens or _varies(min) or _varies(max)):
        return NotImplemented
    kinds = [torch.result_type(input, each) for each in (min, max) if each is not None]
    kind = kinds[0] if len(kinds) == 1 else torch.promote_types(*kinds)
    result = input.to(kind)
    if min is not None:
        result = torch.maximum(result, _tensor(min, kind))
    return result if max is None else torch.minimum(result, _tensor(max, kind))


def elu(input: torch.Tensor, alpha: Any = 1, scale: Any = 1, input_scale: Any = 1) -> torch.Tensor:
    """What is negative, bent towards a size."""
    return torch.where(input > 0, input * scale, torch.expm1(input * input_scale) * (alpha * scale))


def celu(input: torch.Tensor, alpha: Any = 1.0) -> torch.Tensor:
    """What is negative, bent towards a size as smoothly as it comes."""
    return torch.where(input > 0, input, torch.expm1(input / alpha) * alpha)


def leaky_relu(input: torch.Tensor, negative_slope: Any = 0.01) -> torch.Tensor:
    """With a slope that is made of a size."""
    return torch.where(input > 0, input, input * negative_slope)


def addmm(input: torch.Tensor, mat1: torch.Tensor, mat2: torch.Tensor, *, beta: Any = 1, alpha: Any = 1) -> Any:
    """A product that is weighed by a size, or one of whole numbers, for which onnxruntime (1.31) has no ``Gemm``."""
    if input.is_floating_point() and not (_varies(beta) or _varies(alpha)):
        return NotImplemented
    return input * beta + (mat1 @ mat2) * alpha


def addcmul(input: torch.Tensor, tensor1: torch.Tensor, tensor2: torch.Tensor, *, value: Any = 1) -> torch.Tensor:
    """A product of elements that is weighed by a size."""
    return input + tensor1 * tensor2 * value


def addcdiv(input: torch.Tensor, tensor1: torch.Tensor, tensor2: torch.Tensor, *, value: Any = 1) -> torch.Tensor:
    """A quotient that is weighed by a size."""
    return input + tensor1 / tensor2 * value


def scatter(input: torch.Tensor, dim: int, index: torch.Tensor, value: Any, **how: Any) -> torch.Tensor:
    """A size, put at places."""
    return torch.scatter(input, dim, index, _tensor(value, input.dtype).expand(index.shape), **how)


def hardtanh(input: torch.Tensor, min_val: Any = -1, max_val: Any = 1) -> Any:
    """Cut off at sizes."""
    return clamp(input, min_val, max_val)


def softplus(input: torch.Tensor, beta: Any = 1, threshold: Any = 20) -> torch.Tensor:
    """As steep as a size."""
    steep = input * beta
    return torch.where(steep > threshold, input, torch.log1p(torch.exp(steep.clamp(max=threshold))) / beta)


def of_tensors(function: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    """An operator of two operands, one of them a size, as that of two tensors."""

    def with_tensors(input: Any, other: Any) -> torch.Tensor:
        kind = torch.result_type(input, other)
        first, second = (
            each.to(kind) if isinstance(each, torch.Tensor) else _tensor(each, kind) for each in (input, other)
        )
        return function(first, second)

    return with_tensors


def _of_sizes(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same for numbers that vary; constants are left to torch."""

    def decomposed(*args: Any, **how: Any) -> Any:
        return function(*args, **how) if any(map(_varies, (*args, *how.values()))) else NotImplemented

    return decomposed


def _shift(function: Callable[..., torch.Tensor]) -> Callable[..., Any]:
    """A shift by a tensor or a number; what torch.onnx (2.13) gets right is left to it."""

    def decomposed(input: Any, other: Any) -> Any:
        if torch.result_type(input, other) == torch.uint8:  # it takes bytes for signed ones
            few = other.clamp(max=8).to(torch.int32) if isinstance(other, torch.Tensor) else min(other, 8)
            wide = input.to(torch.int32) if isinstance(input, torch.Tensor) else input
            return (function(wide, few) & 255).to(torch.uint8)
        return of_tensors(function)(input, other) if _varies(input) or _varies(other) else NotImplemented

    return decomposed


_SIZED: Sequence[tuple[Any, Callable[..., Any]]] = (
    (aten.addcdiv.default, addcdiv),
    (aten.addcmul.default, addcmul),
    (aten.celu.default, celu),
    (aten.elu.default, elu),
    (aten.leaky_relu.default, leaky_relu),
    (aten.hardtanh.default, hardtanh),
    (aten.softplus.default, softplus),
    (aten.scatter.value, scatter),
    (aten.scatter.value_reduce, scatter),
)
_OF_PYTHON: Sequence[tuple[Any, Callable[..., torch.Tensor]]] = (
    (aten.__lshift__.Tensor, torch.bitwise_left_shift),
    (aten.__rshift__.Tensor, torch.bitwise_right_shift),
    (aten.__and__.Scalar, torch.bitwise_and),
    (aten.__or__.Scalar, torch.bitwise_or),
    (aten.__xor__.Scalar, torch.bitwise_xor),
)
"""What Python's own operators are called; torch.onnx (2.13) knows some of these names only."""
_OF_TWO: Sequence[tuple[Any, Callable[..., torch.Tensor]]] = (
    (aten.bitwise_and.Scalar, torch.bitwise_and),
    (aten.bitwise_or.Scalar, torch.bitwise_or),
    (aten.bitwise_xor.Scalar, torch.bitwise_xor),
    (aten.fmod.Scalar, torch.fmod),
    (aten.pow.Scalar, torch.pow),
)
_SHIFTS = ("Tensor", "Tensor_Scalar", "Scalar_Tensor")
_LEFT = (aten.__lshift__.Scalar, *(getattr(aten.bitwise_left_shift, name) for name in _SHIFTS))
_RIGHT = (aten.__rshift__.Scalar, *(getattr(aten.bitwise_right_shift, name) for name in _SHIFTS))
DECOMPOSITIONS = {
    aten.addmm.default: addmm,
    aten.clamp.default: clamp,
    **{operator: _of_sizes(function) for operator, function in _SIZED},
    **{operator: of_tensors(function) for operator, function in _OF_PYTHON},
    **{operator: _of_sizes(of_tensors(function)) for operator, function in _OF_TWO},
    **{operator: _shift(torch.bitwise_left_shift) for operator in _LEFT},
    **{operator: _shift(torch.bitwise_right_shift) for operator in _RIGHT},
}
