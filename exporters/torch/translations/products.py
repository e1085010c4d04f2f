"""Products of tensors, which torch.onnx (2.13) translates for operands of one type."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import torch

aten = torch.ops.aten


def einsum(equation: str, operands: Sequence[torch.Tensor], *, path: Sequence[int] | None = None) -> Any:
    """Operands of several types, where torch multiplies them element by element."""
    kinds = [each.dtype for each in operands]
    if len(set(kinds)) == 1:
        return NotImplemented
    common = functools.reduce(torch.promote_types, kinds)
    return torch.einsum(equation, *(each.to(common) for each in operands))


DECOMPOSITIONS = {aten.einsum.default: einsum}
