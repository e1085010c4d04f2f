"""Parts of tensors whose sizes say how they are laid out: torch (2.13) asks, and makes a condition of the answer.

The first ``n`` steps of ``x`` are laid out plainly only if there are no more. What comes of them is the same.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 - its name everywhere

from entrepot.exporters.torch.rewriting.environment import expression
from entrepot.exporters.torch.upstream import is_surely_contiguous, statically_known_true

_ASKING = (
    F.linear, torch.matmul, torch.Tensor.matmul, torch.Tensor.__matmul__, torch.einsum,
    torch.flatten, torch.Tensor.flatten,
)  # fmt: skip


def laid_out(value: Any) -> Any:
    """A tensor laid out plainly, if sizes decide whether it is; anything else as it is."""
    return value.clone(memory_format=torch.contiguous_format) if _is_in_doubt(value) else value


def _on_laid_out(plain: Callable[..., Any], *args: Any, **how: Any) -> Any:
    return plain(*map(laid_out, args), **{name: laid_out(value) for name, value in how.items()})


def _is_in_doubt(value: Any) -> bool:
    if not isinstance(value, torch.Tensor) or value.dim() < 2:
        return False
    if not any(map(_is_computed, value.shape)) and not any(map(_is_of_computed, value.stride())):
        return False
    return not is_surely_contiguous(value) and not _is_surely_apart(value)


def _is_computed(size: Any) -> bool:
    return isinstance(size, torch.SymInt) and not expression(size).is_Symbol


def _is_of_computed(stride: Any) -> bool:
    """Whether it is no product of sizes of inputs: the first ``n`` of what was padded are as far apart as all of it."""
    return isinstance(stride, torch.SymInt) and not all(
        factor.is_Symbol or factor.is_Number for factor in expression(stride).as_ordered_factors()
    )


def _is_surely_apart(tensor: torch.Tensor) -> bool:
    """Whether there is something between its elements, whatever the sizes."""
    wanted: Any = 1
    for size, stride in zip(reversed(tensor.shape), reversed(tensor.stride()), strict=True):
        if statically_known_true(size > 1) and statically_known_true(stride != wanted):
            return True
        wanted = wanted * size
    return False


REPLACEMENTS: dict[Any, Any] = {form: functools.partial(_on_laid_out, form) for form in _ASKING}
