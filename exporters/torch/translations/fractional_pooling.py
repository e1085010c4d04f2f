"""Pooling by windows whose places come from random numbers, one for each channel and axis."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch

aten = torch.ops.aten


def _places(samples: torch.Tensor, size: int, count: int, kernel: int) -> torch.Tensor:
    """[batch, channels, count, kernel]: which elements are in which window; the last window ends with the axis."""
    step = torch.full((), (size - kernel) / max(count - 1, 1), dtype=samples.dtype)
    index, sample = torch.arange(count - 1).to(samples.dtype), samples.unsqueeze(-1)
    starts = ((index + sample) * step).to(torch.int64) - (sample * step).to(torch.int64)
    last = torch.full((*samples.shape, 1), size - kernel)
    return torch.cat([starts, last], -1).unsqueeze(-1) + torch.arange(kernel)


def fractional_max_pool(
    input: torch.Tensor, kernel_size: Sequence[int], output_size: Sequence[int], random_samples: torch.Tensor
) -> Any:
    """The largest element of each window, and where it is; the samples of an image are for its width first."""
    axes = len(output_size)
    sizes = input.shape[-axes:]
    if not all(isinstance(size, int) for size in (*sizes, *output_size)):
        return NotImplemented
    x = input if input.dim() == axes + 2 else input.unsqueeze(0)
    index = torch.zeros((1,) * (2 + 2 * axes), dtype=torch.int64)
    for axis, (size, count, kernel) in enumerate(zip(sizes, output_size, kernel_size, strict=True)):
        which = 1 - axis if axes == 2 else axis
        place = _places(random_samples[..., which], size, count, kernel)
        around = [1] * axes, [1] * axes
        around[0][axis], around[1][axis] = count, kernel
        index = index * size + place.reshape(*place.shape[:2], *around[0], *around[1])
    windows = index.reshape(*x.shape[:2], math.prod(output_size), math.prod(kernel_size))
    flat = x.flatten(2)
    values = flat.gather(2, windows.flatten(2)).reshape(windows.shape)
    best = values.argmax(-1, keepdim=True)
    shape = (*input.shape[:-axes], *output_size)
    return values.gather(-1, best).reshape(shape), windows.gather(-1, best).reshape(shape)


DECOMPOSITIONS = {
    aten.fractional_max_pool2d.default: fractional_max_pool,
    aten.fractional_max_pool3d.default: fractional_max_pool,
}
