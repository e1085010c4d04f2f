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
    rest = torch.fmod(x, y)
    return torch.where(_is_beyond(rest, y, other), rest + y, rest)


def floor_divide(input: Any, other: Any) -> Any:
    """The whole number below the quotient."""
    x, y = _floats(input, other)
    if x is None:
        return NotImplemented
    rest = torch.fmod(x, y)
    quotient = (x - rest) / y
    quotient = torch.where(_is_beyond(rest, y, other), quotient - 1, quotient)
    below = quotient.floor()
    whole = torch.where(quotient - below > 0.5, below + 1, below)
    plain = x / y
    return torch.where(y == 0, plain, torch.where(quotient == 0, plain * 0, whole))


def divide(input: Any, other: Any, *, rounding_mode: str | None = None) -> Any:
    """``torch.div`` when it rounds down."""
    return floor_divide(input, other) if rounding_mode == "floor" else NotImplemented


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
}
