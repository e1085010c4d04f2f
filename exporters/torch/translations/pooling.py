"""Pooling whose windows depend on the size of the input, written so that the size may vary.

torch.export (2.13) fixes the length in ``max_pool1d``, and asks questions about sizes where a window may start beyond
the end (``ceil_mode``), which a constant padding answers; torch.onnx translates adaptive pooling for the sizes of the
sample, or not at all.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import torch
import torch.nn.functional as F  # noqa: N812 - its name everywhere

from entrepot.exporters.torch.upstream import statically_known_true

aten = torch.ops.aten
Sizes: TypeAlias = "int | Sequence[int]"


def _spread(value: Any, axes: int) -> list[Any]:
    """One number per axis; a single one counts for all, as in torch."""
    values = list(value) if isinstance(value, tuple | list) else [value]
    return values * axes if len(values) == 1 else values


def _windows(size: int, count: int) -> torch.Tensor:
    """Which of ``size`` elements lie in which of ``count`` windows of adaptive pooling: [count, size] of bool."""
    index, place = torch.arange(count).unsqueeze(-1), torch.arange(size)
    starts = (index * size).div(count, rounding_mode="trunc")  # of numbers that are not negative
    ends = ((index + 1) * size + count - 1).div(count, rounding_mode="trunc")
    return (place >= starts) & (place < ends)


def _average_axis(x: torch.Tensor, axis: int, count: int) -> torch.Tensor:
    inside = _windows(x.shape[axis], count).to(x.dtype)
    weights = inside / inside.sum(-1, keepdim=True)
    return weights @ x if axis == -2 else (x.movedim(axis, -1) @ weights.mT).movedim(-1, axis)


def _maximum_axis(x: torch.Tensor, axis: int, count: int) -> torch.Tensor:
    inside = _windows(x.shape[axis], count)
    return x.movedim(axis, -1).unsqueeze(-2).masked_fill(~inside, -torch.inf).amax(-1).movedim(-1, axis)


def _adaptive(
    x: torch.Tensor,
    output_size: Any,
    axes: int,
    per_axis: Callable[..., torch.Tensor],
    to_one: Callable[..., torch.Tensor],
) -> torch.Tensor:
    """Pool axis by axis: the windows of adaptive pooling are products of windows along each axis."""
    wanted = {axis - axes: count for axis, count in enumerate(_spread(output_size, axes)) if count is not None}
    counts = {axis: count for axis, count in wanted.items() if not statically_known_true(x.shape[axis] == count)}
    ones = [axis for axis, count in counts.items() if count == 1]
    x = to_one(x, ones, keepdim=True) if ones else x
    for axis, count in counts.items():
        x = x if count == 1 else per_axis(x, axis, count)
    return x


def _adaptive_average(axes: int) -> Callable[..., torch.Tensor]:
    def adaptive_avg_pool(input: torch.Tensor, output_size: Any) -> torch.Tensor:
        even = _even_windows(input.shape[-axes:], output_size)
        if even:
            return (torch.avg_pool1d, F.avg_pool2d, F.avg_pool3d)[axes - 1](input, even)
        return _adaptive(input, output_size, axes, _average_axis, torch.mean)

    return adaptive_avg_pool


def _even_windows(sizes: Sequence[int], output_size: Any) -> list[int]:
    """The sizes of windows that are alike and end where the next begins; none where they may differ, or each is all."""
    wanted = _spread(output_size, len(sizes))
    counts = [size if count is None else count for size, count in zip(sizes, wanted, strict=True)]
    if not all(isinstance(each, int) for each in (*sizes, *counts)) or 0 in counts or {*counts} == {1}:
        return []
    parts = [divmod(size, count) for size, count in zip(sizes, counts, strict=True)]
    return [] if any(rest for _, rest in parts) else [size for size, _ in parts]


def _adaptive_maximum(axes: int, original: Callable[..., Any]) -> Callable[..., Any]:
    def adaptive_max_pool(input: torch.Tensor, output_size: Any, return_indices: bool = False) -> Any:
        if return_indices:
            return original(input, output_size, return_indices=True)
        return _adaptive(input, output_size, axes, _maximum_axis, torch.amax)

    return adaptive_max_pool


def _overhangs(axes: int, geometry: Sequence[Sequence[int]]) -> list[int]:
    """What to append to each axis for ``ceil_mode``, in the order of ``F.pad``: the last axis first.

    With it there are as many windows as without it, wherever the last one reaches beyond the padding, and as many as
    start on the input or its left padding where that is fewer; so no size is asked for.
    """
    each = [_overhang(*(part[axis] for part in geometry)) for axis in range(axes - 1, -1, -1)]
    return [amount for overhang in each for amount in (0, overhang)]


def _overhang(kernel: int, stride: int, padding: int, dilation: int) -> int:
    return torch.sym_min(stride - 1, dilation * (kernel - 1) - padding)


def _varies(geometry: Sequence[Sequence[Any]]) -> bool:
    """Whether windows depend on a size: ``max_pool1d(x, x.shape[2])``; torch's operators take numbers only."""
    return any(isinstance(number, torch.SymInt) for part in geometry for number in part)


def _over_windows(
    x: torch.Tensor, axes: int, geometry: Sequence[Sequence[Any]], reduce: Callable[..., torch.Tensor]
) -> torch.Tensor:
    """Reduce each window, axis by axis.

    Args:
        x: Padded.
        axes: How many of the last axes are pooled.
        geometry: Sizes of windows, steps between them, and steps inside them, for each axis.
        reduce: What is made of a window.
    """
    for axis, (kernel, step, dilation) in enumerate(zip(*geometry, strict=True), -axes):
        size = x.shape[axis]
        if statically_known_true(kernel == size):
            x = reduce(x, axis, keepdim=True)
            continue
        count = (size - dilation * (kernel - 1) - 1) // step + 1
        place = torch.arange(count).unsqueeze(-1) * step + torch.arange(kernel) * dilation
        x = reduce(x.movedim(axis, -1)[..., place], -1).movedim(-1, axis)
    return x


def _around(paddings: Sequence[int]) -> list[int]:
    """The same padding on both sides of each axis, in the order of ``F.pad``."""
    return [amount for each in reversed(paddings) for amount in (each, each)]


def _maximum(axes: int, original: Callable[..., Any], pool: Callable[..., Any]) -> Callable[..., Any]:
    def max_pool(
        input: torch.Tensor,
        kernel_size: Sizes,
        stride: Sizes | None = None,
        padding: Sizes = 0,
        dilation: Sizes = 1,
        ceil_mode: bool = False,
        return_indices: bool = False,
    ) -> Any:
        if return_indices or not input.is_floating_point():
            return original(input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)
        step = stride if stride is not None and stride != [] else kernel_size
        geometry = [_spread(each, axes) for each in (kernel_size, step, padding, dilation)]
        x = F.pad(input, _overhangs(axes, geometry), value=-torch.inf) if ceil_mode else input
        if _varies(geometry):
            kernels, steps, paddings, dilations = geometry
            padded = F.pad(x, _around(paddings), value=-torch.inf)
            return _over_windows(padded, axes, (kernels, steps, dilations), torch.amax)
        if axes > 1:
            return pool(x, *geometry)
        plane = [[unit, *each] for unit, each in zip((1, 1, 0, 1), geometry, strict=True)]
        return pool(x.unsqueeze(-2), *plane).squeeze(-2)

    return max_pool


def _average(axes: int, original: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    def avg_pool(
        input: torch.Tensor,
        kernel_size: Sizes,
        stride: Sizes | None = None,
        padding: Sizes = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> torch.Tensor:
        if not input.is_floating_point():
            given = kernel_size, stride, padding, ceil_mode, count_include_pad
            return _of_integers(avg_pool, input, *given, divisor=divisor_override)
        if divisor_override and not ceil_mode:  # torch.onnx (2.13) leaves it out
            mean = avg_pool(input, kernel_size, stride, padding)
            return mean * (math.prod(_spread(kernel_size, axes)) / divisor_override)
        step = stride if stride is not None and stride != [] else kernel_size
        kernels, strides, paddings = (_spread(each, axes) for each in (kernel_size, step, padding))
        if not ceil_mode:
            whole = count_include_pad or not any(paddings)
            if whole and _varies((kernels, strides, paddings)):
                padded = F.pad(input, _around(paddings))
                return _over_windows(padded, axes, (kernels, strides, [1] * axes), torch.mean)
            return original(input, kernel_size, stride, padding, False, count_include_pad)
        geometry = [kernels, strides, paddings, [1] * axes]
        around = _around(paddings)
        beyond = _overhangs(axes, geometry)

        def total(x: torch.Tensor) -> torch.Tensor:
            return original(F.pad(x, beyond), kernels, strides, 0) * math.prod(kernels)

        counted = torch.ones_like(input[(slice(1),) * (input.dim() - axes)])  # one channel of one element
        sums = total(F.pad(input, around))
        if divisor_override:
            return sums / divisor_override
        return sums / total(F.pad(counted, around, value=1.0 if count_include_pad else 0.0))

    return avg_pool


def _of_integers(
    pool: Callable[..., torch.Tensor], input: torch.Tensor, *geometry: Any, divisor: int | None = None
) -> torch.Tensor:
    """Averages towards zero: a quotient of whole numbers that is one itself is exact in double precision."""
    double = input.to(torch.float64)
    found = pool(double, *geometry, 1).round() / divisor if divisor else pool(double, *geometry)
    return found.trunc().to(input.dtype)


def _adaptive_places(axes: int) -> Callable[..., Any]:
    """The largest element of each window and where it is, counted over the axes that are pooled."""

    def adaptive_max_pool(input: torch.Tensor, output_size: Any) -> tuple[torch.Tensor, torch.Tensor]:
        sizes, counts = list(input.shape[-axes:]), _spread(output_size, axes)
        inside = torch.ones((), dtype=torch.bool)
        for place, (size, count) in enumerate(zip(sizes, counts, strict=True)):
            shape = [count if axis == place else 1 for axis in range(axes)]
            shape += [size if axis == place else 1 for axis in range(axes)]
            inside = inside & _windows(size, count).reshape(shape)
        rows = input.reshape([*input.shape[:-axes], *[1] * axes, *sizes]).masked_fill(~inside, -torch.inf)
        values, places = rows.flatten(-axes).max(-1)
        return values, places

    return adaptive_max_pool


DECOMPOSITIONS = {
    aten.adaptive_max_pool2d.default: _adaptive_places(2),
    aten.adaptive_max_pool3d.default: _adaptive_places(3),
    aten._adaptive_avg_pool2d.default: _adaptive_average(2),  # noqa: SLF001 - what area interpolation becomes
    aten._adaptive_avg_pool3d.default: _adaptive_average(3),  # noqa: SLF001 - the same
}
REPLACEMENTS = {
    torch.adaptive_avg_pool1d: _adaptive_average(1),
    F.adaptive_avg_pool2d: _adaptive_average(2),
    F.adaptive_avg_pool3d: _adaptive_average(3),
    F.adaptive_max_pool1d: _adaptive_maximum(1, F.adaptive_max_pool1d),
    F.adaptive_max_pool2d: _adaptive_maximum(2, F.adaptive_max_pool2d),
    F.adaptive_max_pool3d: _adaptive_maximum(3, F.adaptive_max_pool3d),
    F.max_pool1d: _maximum(1, F.max_pool1d, torch.max_pool2d),
    F.max_pool2d: _maximum(2, F.max_pool2d, torch.max_pool2d),
    F.max_pool3d: _maximum(3, F.max_pool3d, torch.max_pool3d),
    torch.avg_pool1d: _average(1, torch.avg_pool1d),
    F.avg_pool2d: _average(2, F.avg_pool2d),
    F.avg_pool3d: _average(3, F.avg_pool3d),
}
