"""Resize as linear algebra: the matrix that takes one axis from its old to its new size.

Source: ONNX operator Resize, versions 10 to 19.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from entrepot.ir.opset.builder import OpBuilder

Matrix: TypeAlias = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Interpolation:
    """What a Resize node asks for, whatever its version.

    Attributes:
        mode: ``nearest``, ``linear`` or ``cubic``.
        coordinates: How an output position is mapped to the input.
        nearest: How a position is rounded; ``outwards`` is Resize 10: down where an axis grows, up where it shrinks.
        cubic: The coefficient ``a`` of the cubic kernel.
        exclude_outside: Whether weights outside the input are taken out.
        antialias: Whether the kernel widens when shrinking.
    """

    mode: str
    coordinates: str
    nearest: str
    cubic: float
    exclude_outside: bool
    antialias: bool

    @classmethod
    def of(cls, op: OpBuilder) -> Interpolation:
        """Read a node; Resize 10 had only one kind of coordinates."""
        old = op.since == 10
        coordinates = "asymmetric" if old else op.attr("coordinate_transformation_mode", "half_pixel")
        return cls(
            mode=op.attr("mode", "nearest"),
            coordinates=coordinates,
            nearest="outwards" if old else op.attr("nearest_mode", "round_prefer_floor"),
            cubic=op.attr("cubic_coeff_a", -0.75),
            exclude_outside=bool(op.attr("exclude_outside", 0)),
            antialias=bool(op.attr("antialias", 0)),
        )


def weights(op: OpBuilder, plan: Interpolation) -> Iterator[tuple[int, Matrix]]:
    """Each axis that is resized with its (new size, old size) matrix; sizes have to be fixed."""
    shape, axes = op.shape(op.x()) or [], resized_axes(op)
    scales, targets = _scales_and_sizes(op, [shape[axis] for axis in axes])
    for axis, scale, size in zip(axes, scales, targets, strict=True):
        if scale == 1:
            continue
        old = shape[axis]
        if old is None or size is None:
            op.refuse("a size that changes is not fixed", hint="possible with fixed sizes")
        op.need_small(old * size)
        yield axis, axis_matrix(plan, old, size, scale)


def resized_axes(op: OpBuilder) -> list[int]:
    """The axes that scales and sizes are given for."""
    rank = op.need_rank(op.x())
    return [axis % rank for axis in op.attr("axes", list(range(rank)))]


def has_sizes(op: OpBuilder) -> bool:
    """Whether sizes are given rather than scales."""
    return op.since != 10 and op.input(3) is not None and op.shape(op.input(3)) != [0]


def known_sizes(op: OpBuilder) -> list[int] | None:
    """The sizes asked for: constant, or those that the file gives for the result."""
    known, declared = op.known(op.input(3)), op.shape(op.node.outputs[0])
    if known is not None:
        return [int(size) for size in known]
    if declared is None or op.attr("keep_aspect_ratio_policy", "stretch") != "stretch":
        return None
    stated = [declared[axis] for axis in resized_axes(op)]
    return None if None in stated else [size or 0 for size in stated]


def is_fixed(op: OpBuilder) -> bool:
    """Whether all sizes that change are known, before and after."""
    shape = op.shape(op.x())
    if shape is None or op.attr("coordinate_transformation_mode", "half_pixel") == "tf_crop_and_resize":
        return False
    if has_sizes(op):
        return None not in shape and known_sizes(op) is not None
    scales = op.known(op.x(1 if op.since == 10 else 2))
    if scales is None:
        return False
    return all(shape[axis] is not None or scale == 1 for axis, scale in zip(resized_axes(op), scales, strict=True))


def _scales_and_sizes(op: OpBuilder, old: list[int | None]) -> tuple[list[float], list[int | None]]:
    if not has_sizes(op):
        scales = op.need_known(1 if op.since == 10 else 2, "scales").tolist()
        return scales, [None if dim is None else int(np.floor(dim * s)) for dim, s in zip(old, scales, strict=True)]
    targets: list[int | None] = list(known_sizes(op) or op.need_known(3, "sizes").tolist())
    policy = op.attr("keep_aspect_ratio_policy", "stretch")
    if any(dim is None and size != dim for dim, size in zip(old, targets, strict=True)):
        op.refuse("a size that changes is not fixed", hint="possible with fixed sizes")
    ratios = [(size or 0) / (dim or 1) for dim, size in zip(old, targets, strict=True)]
    if policy != "stretch":
        ratio = min(ratios) if policy == "not_larger" else max(ratios)
        ratios = [ratio] * len(ratios)
        targets = [int(np.floor(ratio * (dim or 0) + 0.5)) for dim in old]
    return ratios, targets


def axis_matrix(plan: Interpolation, old: int, new: int, scale: float) -> Matrix:
    """Rows are output positions, columns input positions."""
    if not old or not new:
        return np.zeros((new, old))
    position = _positions(plan.coordinates, old, new, scale)
    if plan.mode == "nearest":
        way = plan.nearest if plan.nearest != "outwards" else "ceil" if scale < 1 else "floor"
        return np.eye(old)[np.clip(_rounded(position, way), 0, old - 1)]
    stretch = min(scale, 1.0) if plan.antialias else 1.0
    reach = int(np.ceil((2 if plan.mode == "cubic" else 1) / stretch)) + 1
    columns = np.floor(position)[:, None].astype(int) + np.arange(-reach, reach + 1)
    kernel = _cubic_kernel if plan.mode == "cubic" else _linear_kernel
    values = kernel((columns - position[:, None]) * stretch, plan.cubic)
    outside = (columns < 0) | (columns >= old)
    if plan.exclude_outside:
        values = np.where(outside, 0, values)
    if plan.exclude_outside or plan.antialias:
        values = values / values.sum(1, keepdims=True)
    matrix = np.zeros((new, old))
    rows = np.broadcast_to(np.arange(new)[:, None], columns.shape)
    np.add.at(matrix, (rows, np.clip(columns, 0, old - 1)), values)
    return matrix


def _positions(coordinates: str, old: int, new: int, scale: float) -> Matrix:
    """Where each output position lies in the input, in float32 as runtimes compute it: that decides ties."""
    out, ratio, half = np.arange(new, dtype=np.float32), np.float32(scale), np.float32(0.5)
    if coordinates == "asymmetric":
        return out / ratio
    if coordinates == "align_corners":
        return out * np.float32(old - 1) / np.float32(max(new - 1, 1))
    if coordinates == "tf_half_pixel_for_nn":
        return (out + half) / ratio
    if coordinates == "pytorch_half_pixel" and new == 1:
        return out
    shift = np.float32(0)
    if coordinates == "half_pixel_symmetric":
        shift = np.float32(old / 2 * (1 - new / (scale * old)))
    return shift + (out + half) / ratio - half


def _rounded(position: Matrix, nearest: str) -> Matrix:
    ways: dict[str, Callable[[Matrix], Matrix]] = {
        "floor": np.floor,
        "ceil": np.ceil,
        "round_prefer_floor": lambda x: np.ceil(x - 0.5),
        "round_prefer_ceil": lambda x: np.floor(x + 0.5),
    }
    return ways[nearest](position).astype(int)


def _linear_kernel(distance: Matrix, _a: float) -> Matrix:
    return np.maximum(0, 1 - np.abs(distance))


def _cubic_kernel(distance: Matrix, a: float) -> Matrix:
    x = np.abs(distance)
    near = ((a + 2) * x - (a + 3)) * x * x + 1
    far = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
    return np.where(x <= 1, near, np.where(x < 2, far, 0))
