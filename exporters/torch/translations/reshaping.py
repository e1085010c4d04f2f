"""Other shapes for tensors whose sizes depend on data: torch (2.13) asks whether they are 0 before it fills in a -1."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import torch

from entrepot.exporters.torch.rewriting.environment import hint
from entrepot.exporters.torch.translations.cut_short import laid_out


def _reshaped(plain: Callable[..., torch.Tensor], input: torch.Tensor, *args: Any, **how: Any) -> torch.Tensor:
    sizes = _sizes(args)
    if how or not any(map(_is_left_out, sizes)) or all(hint(size) is not None for size in sizes):
        return plain(laid_out(input), *args, **how)
    left = math.prod(input.shape) // math.prod(size for size in sizes if not _is_left_out(size))
    return input.reshape([left if _is_left_out(size) else size for size in sizes])


def _sizes(args: Sequence[Any]) -> Sequence[Any]:
    return args[0] if len(args) == 1 and isinstance(args[0], tuple | list) else args


def _is_left_out(size: Any) -> bool:
    return isinstance(size, int) and size == -1


REPLACEMENTS: dict[Any, Any] = {
    form: functools.partial(_reshaped, form) for form in (torch.Tensor.view, torch.Tensor.reshape, torch.reshape)
}
