"""Remainders and quotients rounded down, from the exact remainder as in torch.

The textbook formula ``x - floor(x / y) * y`` is off where ``x / y`` rounds up to an integer, underflows or overflows.
"""

from __future__ import annotations

from typing import Any

import torch

aten = torch.ops.aten


def remainder(input: Any, other: Any) -> Any:
    """With the sign of the divisor."""
    x, y = _floats(input, other)
    if x is None:
        return _of_wholes(input, other)
    if isinstance(other, int | float) and other == 1:
        return x - x.floor()
    rest = torch.fmod(x, y)
    return torch.where(_is_beyond(rest, y, other), rest + y, rest)


def floor_divide(input: Any, other: Any) -> Any:
    """The whole number below the quotient."""
    x, y = _floats(input, other)
    if x is None:
        if not isinstance(input, torch.Tensor):  # torch.onnx (2.13) asks a number for its dtype
            return torch.floor_divide(torch.scalar_tensor(input, dtype=torch.result_type(input, other)), other)
        return _whole_below(input, other) if type(other) is int and other else NotImplemented
    rest = torch.fmod(x, y)
    quotient = (x - rest) / y
    quotient = torch.where(_is_beyond(rest, y, other), quotient - 1, quotient)
    below = quotient.floor()
    whole = torch.where(quotient - below > 0.5, below + 1, below)
    plain = x / y
    return torch.where(y == 0, plain, torch.where(quotient == 0, plain * 0, whole))


def divide(input: Any, other: Any, *, rounding_mode: str | None = None) -> Any:
    """``torch.div``; torch.onnx (2.13) rounds whole numbers to single precision first."""
    if rounding_mode == "floor":
        return torch.floor_divide(input, other)
    return _quotient(input, other) if rounding_mode == "trunc" and _are_whole(input, other) else NotImplemented


def fmod(input: Any, other: Any) -> Any:
    """With the sign of what is divided; of whole numbers exactly, where onnxruntime (1.31) asks double precision."""
    if not _are_whole(input, other):
        return NotImplemented
    return input - _quotient(input, other) * other


def _whole_below(input: torch.Tensor, number: int) -> torch.Tensor:
    """The quotient of whole numbers, less 1 where it is too large: a product with the divisor does not overflow."""
    quotient = _quotient(input, number)
    if not quotient.dtype.is_signed:
        return quotient
    product = quotient * number
    beyond = input < product if number > 0 else input > product
    return quotient - beyond.to(quotient.dtype)


def _are_whole(*numbers: Any) -> bool:
    kind = torch.result_type(*numbers)
    return not kind.is_floating_point and not kind.is_complex and kind != torch.bool


def _quotient(input: Any, other: Any) -> Any:
    """Of whole numbers, towards zero, as ONNX divides them."""
    kind = torch.result_type(input, other)
    first, second = (
        each.to(kind) if isinstance(each, torch.Tensor) else torch.full((), each, dtype=kind) for each in (input, other)
    )
    return torch.ops.prims.div(*torch.broadcast_tensors(first, second))


def _of_wholes(input: Any, other: Any) -> Any:
    """Of whole numbers, one of which may be a size: torch.onnx (2.13) takes it for a constant."""
    if not isinstance(input, torch.SymInt) and not isinstance(other, torch.SymInt):
        return NotImplemented
    kind = torch.result_type(input, other)
    first, second = (
        each if isinstance(each, torch.Tensor) else torch.scalar_tensor(each, dtype=kind) for each in (input, other)
    )
    return torch.remainder(first, second)


def _is_beyond(rest: torch.Tensor, divisor: torch.Tensor, given: Any) -> torch.Tensor:
    """Whether a rest has not the sign of the divisor, which is known of a number."""
    if isinstance(given, int | float):
        return rest > 0 if given < 0 else rest < 0
    return (rest != 0) & ((rest < 0) != (divisor < 0))


def _floats(input: Any, other: Any) -> tuple[Any, Any]:
    """Both as tensors of the dtype that torch computes in; ``None`` for integers."""
    kind = torch.result_type(input, other)
    if not kind.is_floating_point:
        return None, None
    first, second = (
        each.to(kind) if isinstance(each, torch.Tensor) else torch.full((), each, dtype=kind) for each in (input, other)
    )
    return first, second


DECOMPOSITIONS = {
    aten.remainder.Tensor: remainder,
    aten.remainder.Scalar: remainder,
    aten.remainder.Scalar_Tensor: remainder,
    aten.floor_divide.default: floor_divide,
    aten.floor_divide.Scalar: floor_divide,
    aten.div.Tensor_mode: divide,
    aten.div.Scalar_mode: divide,
    aten.fmod.Tensor: fmod,
    aten.fmod.Scalar: fmod,
}
