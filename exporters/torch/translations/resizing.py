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

import numpy as np
import onnx_ir
import torch
from onnxscript import opset20

from entrepot.exporters.torch.rewriting.environment import expression
from entrepot.ir.typing.formula import Formula

op: Any = opset20
aten = torch.ops.aten


# --- As many samples as elements


def step_of(count: Any, size: Any, scale: Any, *, copied: bool) -> Any:
    """How far samples are apart, in elements: a number, or a tensor where the sizes decide.

    Args:
        count: How many samples there are.
        size: How many elements.
        scale: What was asked for, if not ``count``.
        copied: Whether as many samples as elements are those, whatever the scale, as some of torch's kernels have it.
    """
    if scale is None:
        return size / count
    if not copied or not may_copy(size, count, scale):
        return 1 / scale
    same = torch.scalar_tensor(count) == torch.scalar_tensor(size)
    return torch.where(same, 1.0, torch.scalar_tensor(1 / scale))


def may_copy(size: Any, count: Any, scale: Any) -> bool:
    """Whether a scale that is not 1 may leave a size of two or more as it is."""
    if isinstance(size, int) and isinstance(count, int):
        return size == count and scale != 1
    return not isinstance(scale, float) or 1 < scale < 1.5


# --- Scales and aligned corners


def _by_scales(mode: str, x: Any, output_size: Any, align_corners: bool, scale_factors: Sequence[float] | None) -> Any:
    """Resize by scales if there are any; with aligned corners to whole sizes, which scales may lie between."""
    where = {"mode": mode, "cubic_coeff_a": -0.75, "nearest_mode": "floor"}
    where["coordinate_transformation_mode"] = "align_corners" if align_corners else "half_pixel"
    if scale_factors is None:
        return op.Resize(x, None, None, _full(x, output_size), **where)
    if align_corners and not all(float(each).is_integer() for each in scale_factors):
        return op.Resize(x, None, None, _full(x, _sizes(x, scale_factors)), **where)
    if all(map(_is_exact, scale_factors)):
        return op.Resize(x, None, op.Constant(value_floats=[1.0, 1.0, *scale_factors]), None, **where)
    scales = op.Concat(op.Constant(value_floats=[1.0, 1.0]), _exact_scales(mode, x, scale_factors), axis=0)
    return op.Resize(x, None, scales, None, **where)


def _is_exact(scale: float) -> bool:
    """Whether sizes times a scale have no more digits than single precision has, and no size stays as it is."""
    return (scale * 64).is_integer() and not 1 < scale < 1.5


_STEP = 2.0**-23
"""What single precision tells apart, as a share: so much more or less is one sample more or less, where two differ."""


def _exact_scales(mode: str, x: Any, scale_factors: Sequence[float]) -> Any:
    """Scales with which Resize gives as many samples as torch: ``int(90 * 0.7)`` is 62, and 63 in single precision."""
    single = op.Constant(value_floats=list(scale_factors))
    sizes = op.Cast(op.Shape(x, start=2), to=onnx_ir.DataType.FLOAT)
    counts = op.Cast(_sizes(x, scale_factors), to=onnx_ir.DataType.FLOAT)
    missing = op.Sub(counts, op.Floor(op.Mul(sizes, single)))
    scales = op.Add(single, op.Mul(missing, op.Mul(single, op.Constant(value_float=_STEP))))
    return op.Where(op.Equal(counts, sizes), op.Constant(value_float=1.0), scales) if mode == "linear" else scales


def _sizes(x: Any, scale_factors: Sequence[float]) -> Any:
    """In double precision, as torch computes them."""
    return op.Floor(op.Mul(op.Cast(op.Shape(x, start=2), to=onnx_ir.DataType.DOUBLE), _doubles(scale_factors)))


def _doubles(values: float | Sequence[float]) -> Any:
    return op.Constant(value=onnx_ir.tensor(values, dtype=onnx_ir.DataType.DOUBLE))


def _full(x: Any, sizes: Any) -> Any:
    return op.Concat(op.Shape(x, end=2), op.Cast(sizes, to=onnx_ir.DataType.INT64), axis=0)


# --- The nearest element

_MOST_EXACT = 40
"""Up to which whole scale a product by its inverse, in single precision, is never just below a whole number."""
_LARGEST = 2048
"""Up to which size two formulas are compared; what was halved is the same up to 4188."""


def nearest_place(count: Any, size: Any, scale: Any, *, offset: float, copied: bool) -> torch.Tensor:
    """Which element each sample is: ``floor((i + offset) * step)``, with the step as torch computes it."""
    place = torch.arange(count, dtype=torch.float32) + offset
    return (place * step_of(count, size, scale, copied=copied)).floor().to(torch.int64)


def _nearest(offset: float, *, copied: bool) -> Callable[..., Any]:
    def decomposition(
        input: torch.Tensor, output_size: Sequence[Any] | None, scale_factors: Sequence[float] | None
    ) -> Any:
        """Take the nearest elements.

        Resize divides by a scale that it makes of the two sizes: where ``i * step`` is a whole number, as for every
        other element of 21 as 6, onnxruntime (1.31) gets just below it, and takes the element before. Sizes that never
        have such a place are left to it: what was halved has none, rounded up or down, when it becomes what it was.
        """
        sizes = input.shape[2:]
        scales: Sequence[Any] = scale_factors or [None] * len(sizes)
        counts = output_size or [math.floor(size * scale) for size, scale in zip(sizes, scales, strict=True)]
        axes = list(zip(sizes, counts, scales, strict=True))
        if offset == 0 and all(itertools.starmap(_divides_exactly, axes)):
            return NotImplemented
        found = input
        for axis, (size, count, scale) in enumerate(axes, 2):
            places = nearest_place(count, size, scale, offset=offset, copied=copied)
            found = torch.index_select(found, axis, places)
        return found

    return decomposition


def copies_nearest(rank: int, offset: float) -> bool:
    """Whether torch's kernel (2.13) takes as many samples as elements to be those.

    Two of its kernels for planes do, and one does not; the sizes, the layout and the processor choose among them.
    """
    return rank == 2 and offset == 0


def _divides_exactly(size: Any, count: Any, scale: float | None) -> bool:
    """Whether Resize, which divides by a scale of its own, takes torch's elements along an axis."""
    if scale is not None:
        return float(scale).is_integer() and scale <= _MOST_EXACT
    before, after = (Formula.of(str(expression(each))) for each in (size, count))
    return before is not None and after is not None and _agree(before, after)


@functools.lru_cache(maxsize=256)
def _agree(size: Formula, count: Formula) -> bool:
    """Whether it does for all numbers of elements and samples, up to ``_LARGEST``, that two formulas give together."""
    names = sorted({*size.names, *count.names})
    values = range(1, round(_LARGEST ** (1 / max(len(names), 1))) + 1)
    sizes = (dict(zip(names, each, strict=True)) for each in itertools.product(values, repeat=len(names)))
    pairs = {(size.size(each) or 0, count.size(each) or 0) for each in sizes}
    return all(_takes_the_same(*each) for each in pairs if min(each) > 0 and max(each) <= _LARGEST)


def _takes_the_same(size: int, count: int) -> bool:
    place, before, after = np.arange(count, dtype=np.float32), np.float32(size), np.float32(count)
    return np.array_equal(np.floor(place * (before / after)), np.floor(place / (after / before)))


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
        return _smoothed(input, filter_, reach, axes, align_corners)

    return decomposition


def smoothed(input: torch.Tensor, mode: str, counts: Sequence[Any], scales: Sequence[Any]) -> torch.Tensor:
    """``input``, ``[..., height, width]``, as ``counts`` rows and columns, by a mode of ``ANTIALIASED``."""
    return _smoothed(input, *ANTIALIASED[mode], list(zip(input.shape[2:], counts, scales, strict=True)))


def _smoothed(
    input: torch.Tensor,
    filter_: Callable[[torch.Tensor], torch.Tensor],
    reach: float,
    axes: Sequence[tuple[Any, Any, Any]],
    align_corners: bool = False,
) -> torch.Tensor:
    rows, columns = (_weights(filter_, reach, *axis, align_corners).to(input.dtype) for axis in axes)
    return ((input @ columns.mT).mT @ rows.mT).mT


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
    step = step_of(count, size, scale, copied=True)
    if align_corners:
        step = (size - 1) / torch.sym_max(count - 1, 1)
    wide = step.clamp(min=1.0) if isinstance(step, torch.Tensor) else torch.sym_max(step, 1.0)
    center = (torch.arange(count, dtype=torch.float64).unsqueeze(-1) + 0.5) * step
    first, end = (center - reach * wide + 0.5).floor(), (center + reach * wide + 0.5).floor()
    place = torch.arange(size, dtype=torch.float64)
    weights = filter_((place - center + 0.5) / wide) * ((place >= first) & (place < end))
    return weights / weights.sum(-1, keepdim=True)


ANTIALIASED = {"bilinear": (_triangle, 1.0), "bicubic": (_cubic, 2.0), "lanczos": (_lanczos, 3.0)}
"""Filters without aliasing, and how far they reach in elements, or in steps if those are wider."""

DECOMPOSITIONS = {
    **{
        getattr(aten, f"_upsample_{mode}2d_aa").default: _antialiased(*filter_, resizes=mode != "lanczos")
        for mode, filter_ in ANTIALIASED.items()
    },
    **{
        getattr(aten, f"{name}{rank}d").vec: _nearest(offset, copied=copies_nearest(rank, offset))
        for name, offset in (("upsample_nearest", 0.0), ("_upsample_nearest_exact", 0.5))
        for rank in (1, 2, 3)
    },
}
TRANSLATIONS = {
    aten.upsample_bilinear2d.vec: functools.partial(_by_scales, "linear"),
    aten.upsample_trilinear3d.vec: functools.partial(_by_scales, "linear"),
    aten.upsample_bicubic2d.vec: functools.partial(_by_scales, "cubic"),
}
