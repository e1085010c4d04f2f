"""Interpolation where torch takes the step between samples from something else than the two sizes.

ONNX's Resize computes it from the sizes, or from scales which then give the sizes. torch (2.13) knows the size that
was asked for and the scale, and uses the one or the other: the sizes with ``align_corners``, else the scale.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import onnx_ir
import torch
from onnxscript import opset20

from entrepot.exporters.torch.rewriting.environment import hint

op: Any = opset20
aten = torch.ops.aten


# --- Scales and aligned corners


def _by_scales(mode: str, x: Any, output_size: Any, align_corners: bool, scale_factors: Sequence[float] | None) -> Any:
    """Resize by scales if there are any; with aligned corners to whole sizes, which scales may lie between."""
    where = {"mode": mode, "cubic_coeff_a": -0.75, "nearest_mode": "floor"}
    where["coordinate_transformation_mode"] = "align_corners" if align_corners else "half_pixel"
    if scale_factors is None:
        return op.Resize(x, None, None, _full(x, output_size), **where)
    if align_corners and not all(float(each).is_integer() for each in scale_factors):
        return op.Resize(x, None, None, _full(x, _sizes(x, scale_factors)), **where)
    return op.Resize(x, None, op.Constant(value_floats=[1.0, 1.0, *scale_factors]), None, **where)


def _sizes(x: Any, scale_factors: Sequence[float]) -> Any:
    """In double precision, as torch computes them."""
    scales = onnx_ir.tensor(list(scale_factors), dtype=onnx_ir.DataType.DOUBLE)
    return op.Floor(op.Mul(op.Cast(op.Shape(x, start=2), to=onnx_ir.DataType.DOUBLE), op.Constant(value=scales)))


def _full(x: Any, sizes: Any) -> Any:
    return op.Concat(op.Shape(x, end=2), op.Cast(sizes, to=onnx_ir.DataType.INT64), axis=0)


# --- The nearest element

_MOST_EXACT = 40
"""Up to which whole scale a product by its inverse, in single precision, is never just below a whole number."""


def _nearest(offset: float) -> Callable[..., Any]:
    def decomposition(
        input: torch.Tensor, output_size: Sequence[Any] | None, scale_factors: Sequence[float] | None
    ) -> Any:
        """Take the element at ``floor((i + offset) * step)``, with the step as torch computes it.

        Resize divides by a scale that it makes of the two sizes: where ``i * step`` is a whole number, as for every
        other element of 21 as 6, onnxruntime (1.31) gets just below it, and takes the element before. Scales that are
        whole in the sample are left to it: the sizes of what was halved and is doubled have no such place if odd.
        """
        sizes = input.shape[2:]
        scales: Sequence[Any] = scale_factors or [None] * len(sizes)
        counts = output_size or [math.floor(size * scale) for size, scale in zip(sizes, scales, strict=True)]
        axes = list(zip(sizes, counts, scales, strict=True))
        if all(itertools.starmap(_is_whole, axes)):
            return NotImplemented
        found = input
        for axis, (size, count, scale) in enumerate(axes, 2):
            step = size / count if scale is None else 1 / scale
            place = (torch.arange(count, dtype=torch.float32) + offset) * step
            found = torch.index_select(found, axis, place.floor().to(torch.int64))
        return found

    return decomposition


def _is_whole(size: Any, count: Any, scale: float | None) -> bool:
    """Whether an axis becomes a few times as large."""
    if scale is not None:
        return float(scale).is_integer() and scale <= _MOST_EXACT
    before, after = hint(size), hint(count)
    return bool(before and after) and after % before == 0 and after <= before * _MOST_EXACT


# --- Without aliasing


def _triangle(x: torch.Tensor) -> torch.Tensor:
    return (1 - x.abs()).clamp(min=0)


def _cubic(x: torch.Tensor) -> torch.Tensor:
    """Of Keys, with a parameter of -0.5, which torch has for antialiasing only."""
    x = x.abs()
    near, far = (1.5 * x - 2.5) * x * x + 1, ((-0.5 * x + 2.5) * x - 4) * x + 2
    return torch.where(x < 1, near, torch.where(x < 2, far, 0.0))


def _lanczos(x: torch.Tensor) -> torch.Tensor:
    return torch.where(x.abs() < 3, torch.sinc(x) * torch.sinc(x / 3), 0.0)


def _antialiased(filter_: Callable[[torch.Tensor], torch.Tensor], reach: float, *, resizes: bool) -> Callable[..., Any]:
    def decomposition(
        input: torch.Tensor,
        output_size: Sequence[Any],
        align_corners: bool,
        scales_h: float | None = None,
        scales_w: float | None = None,
    ) -> Any:
        scales = (scales_h, scales_w)
        axes = list(zip(input.shape[2:], output_size, scales, strict=True))
        plain = not align_corners and all(_implied(*axis) for axis in axes)
        if not input.is_floating_point() or (plain and resizes):
            return NotImplemented
        rows, columns = (_weights(filter_, reach, *axis, align_corners).to(input.dtype) for axis in axes)
        return ((input @ columns.mT).mT @ rows.mT).mT

    return decomposition


def _implied(size: Any, count: Any, scale: float | None) -> bool:
    """Whether the sizes say what the scale says."""
    if scale is None:
        return True
    if not isinstance(size, int) or not isinstance(count, int):
        return float(scale).is_integer()
    return size * scale == count


def _weights(
    filter_: Callable[[torch.Tensor], torch.Tensor],
    reach: float,
    size: Any,
    count: Any,
    scale: float | None,
    align_corners: bool,
) -> torch.Tensor:
    """[count, size]: how much each sample has of each element; a step of several elements widens the filter."""
    step: Any = 1 / scale if scale else size / count
    if align_corners:
        step = (size - 1) / torch.sym_max(count - 1, 1)
    wide = torch.sym_max(step, 1.0) if not isinstance(step, float | int) else max(step, 1.0)
    center = (torch.arange(count, dtype=torch.float64).unsqueeze(-1) + 0.5) * step
    first, end = (center - reach * wide + 0.5).floor(), (center + reach * wide + 0.5).floor()
    place = torch.arange(size, dtype=torch.float64)
    weights = filter_((place - center + 0.5) / wide) * ((place >= first) & (place < end))
    return weights / weights.sum(-1, keepdim=True)


DECOMPOSITIONS = {
    aten._upsample_bilinear2d_aa.default: _antialiased(_triangle, 1.0, resizes=True),  # noqa: SLF001 - its name
    aten._upsample_bicubic2d_aa.default: _antialiased(_cubic, 2.0, resizes=True),  # noqa: SLF001
    aten._upsample_lanczos2d_aa.default: _antialiased(_lanczos, 3.0, resizes=False),  # noqa: SLF001
    **{
        getattr(aten, f"{name}{rank}d").vec: _nearest(offset)
        for name, offset in (("upsample_nearest", 0.0), ("_upsample_nearest_exact", 0.5))
        for rank in (1, 2, 3)
    },
}
TRANSLATIONS = {
    aten.upsample_bilinear2d.vec: functools.partial(_by_scales, "linear"),
    aten.upsample_trilinear3d.vec: functools.partial(_by_scales, "linear"),
    aten.upsample_bicubic2d.vec: functools.partial(_by_scales, "cubic"),
}
