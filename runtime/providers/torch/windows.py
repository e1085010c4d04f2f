"""Padding of the axes that a window slides over."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from entrepot.ir.errors import InputError
from entrepot.runtime.kernels.window import window
from entrepot.runtime.providers.torch.moving import claim


def spatial_pads(
    sizes: Sequence[int],
    kernel: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
    pads: Sequence[int] | None,
    auto_pad: str,
    ceil_mode: int = 0,
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """What goes before and behind each axis; sizes are looked at only where they decide it.

    Raises:
        InputError: An attribute does not fit, or the window exceeds the padded input.
    """
    rank = len(sizes)
    if auto_pad in ("NOTSET", "VALID"):
        given = (0,) * (2 * rank) if not pads or auto_pad == "VALID" else tuple(pads)
        if len(given) != 2 * rank or min(given) < 0:
            raise InputError(f"pads must be {2 * rank} numbers, none negative, not {list(given)}")
        return given[:rank], given[rank:]
    win = window(sizes, kernel, strides, dilations, pads, auto_pad, ceil_mode)
    return win.begin, win.end


def padded(x: Tensor, begin: Sequence[int], end: Sequence[int], value: Any) -> tuple[Tensor, tuple[int, ...]]:
    """The input, padded where both ends differ, and what is left for torch to pad at either end."""
    return (x, tuple(begin)) if begin == end else (widened(x, begin, end, value), (0,) * len(begin))


def widened(x: Tensor, begin: Sequence[int], end: Sequence[int], value: Any) -> Tensor:
    """The input with a value around it; torch counts axes from the last one."""
    claim((*x.shape[:2], *map(sum, zip(x.shape[2:], begin, end, strict=True))), x.element_size())
    flat = [width for pair in zip(reversed(begin), reversed(end), strict=True) for width in pair]
    return torch.constant_pad_nd(x, flat, value)
