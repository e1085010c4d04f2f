"""Resized images: a product with a matrix for each side, or ONNX's operator where sizes vary."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import keras
import numpy as np
import onnx_ir as ir

from entrepot.exporters.building import typed
from entrepot.exporters.keras.arrays import numpy_of
from entrepot.exporters.keras.dtypes import is_float
from entrepot.exporters.keras.reading.step import Step, rank_of, shape_of
from entrepot.exporters.keras.reading.table import operation


@operation("Resize")
def resize(step: Step, images: Any) -> ir.Value:
    """To a certain size."""
    given, value = step.operation, step.value(images)
    if given.crop_to_aspect_ratio or given.pad_to_aspect_ratio:
        raise step.refuse("a ratio of sides that is kept")
    data_format = given.data_format or keras.config.image_data_format()
    result = resized(
        step, value, list(given.size), given.interpolation, antialias=given.antialias, data_format=data_format
    )
    return step.build.cast(result, step.dtype)


def resized(
    step: Step, value: ir.Value, wanted: Sequence[Any], way: str, *, antialias: bool, data_format: str
) -> ir.Value:
    """Images at another size.

    Args:
        step: What to write with.
        value: The images, with or without a batch.
        wanted: Height and width: numbers, or int64 scalars of the graph.
        way: How to interpolate.
        antialias: Whether to smooth what becomes smaller.
        data_format: Where channels are.
    """
    axes = _sides(rank_of(value), data_format)
    sizes = [shape_of(value)[axis] for axis in axes]
    known = all(isinstance(size, int) for size in (*sizes, *wanted))
    kind = value.dtype
    if way == "nearest" and known:
        for axis, size, want in zip(axes, sizes, wanted, strict=True):
            places = _places(int(size or 0), want)
            shape = shape_of(value)
            shape[axis] = want
            value = typed(step.op("Gather", value, places, axis=axis), kind, shape)
        return value
    wide = value if is_float(kind) else step.build.cast(value, np.float32)
    if known and way == "bilinear" and not antialias:
        for axis, size, want in reversed(list(zip(axes, sizes, wanted, strict=True))):
            wide = _between(step, wide, int(size or 0), want, axis)
        return _rounded(step, wide, kind)
    if known:
        for axis, size, want in zip(axes, sizes, wanted, strict=True):
            wide = _product(step, wide, _matrix(int(size or 0), want, way, antialias=antialias), axis)
        return _rounded(step, wide, kind)
    if way == "bilinear" and not antialias and wide is not value:
        for axis, want in reversed(list(zip(axes, wanted, strict=True))):
            wide = _between_any(step, wide, want, axis)
        return _rounded(step, wide, kind)
    return _rounded(step, _by_operator(step, wide, wanted, way, axes, antialias=antialias), kind)


def _rounded(step: Step, value: ir.Value, kind: Any) -> ir.Value:
    """Integers as Keras' ``resize`` returns them: rounded, within the bounds of their type."""
    if kind == value.dtype:
        return value
    info = np.iinfo(kind.numpy())
    inside = step.op("Clip", step.op("Round", value), float(info.min), float(info.max))
    inside.shape = value.shape
    return step.build.cast(inside, kind)


def _sides(rank: int, data_format: str) -> tuple[int, int]:
    return (rank - 3, rank - 2) if data_format == "channels_last" else (rank - 2, rank - 1)


def _places(size: int, want: int) -> np.ndarray[Any, Any]:
    """Which pixel the backend takes for each."""
    line = np.arange(size, dtype=np.float32).reshape(1, size, 1, 1)
    found = numpy_of(keras.ops.image.resize(line, (want, 1), interpolation="nearest", data_format="channels_last"))
    return found.reshape(-1).astype(np.int64)


def _between(step: Step, value: ir.Value, size: int, want: int, axis: int) -> ir.Value:
    """What lies between two neighbours, in the order of operations that frameworks have: bytes are rounded after it."""
    if size == want:
        return value
    kind = value.dtype.numpy() if value.dtype is not None else np.dtype(np.float32)
    exact = (np.arange(want, dtype=np.float32) + np.float32(0.5)) * np.float32(size / want) - np.float32(0.5)
    low = np.floor(exact)
    part = (exact - low).astype(kind).reshape([-1 if at == axis else 1 for at in range(rank_of(value))])
    ends = (np.clip(low + more, 0, size - 1).astype(np.int64) for more in (0, 1))
    return _mixed(step, value, ends, part, axis, want)


def _between_any(step: Step, value: ir.Value, want: Any, axis: int) -> ir.Value:
    """The same where a size is not known: ONNX's Resize adds in another order, which shows once it is rounded."""
    op, size, one = step.op, step.build.size(value, axis), np.float32(1)
    scale = op("Div", *(step.build.cast(step.value(each), np.float32) for each in (size, want)))
    places = op("Range", np.float32(0), step.build.cast(step.value(want), np.float32), one)
    exact = op("Sub", op("Mul", op("Add", places, np.float32(0.5)), scale), np.float32(0.5))
    low, last = op("Floor", exact), op("Sub", step.build.cast(size, np.float32), one)
    sides = [-1 if at == axis else 1 for at in range(rank_of(value))]
    part = op("Reshape", op("Sub", exact, low), np.array(sides, np.int64))
    ends = (
        step.build.cast(op("Max", op("Min", each, last), np.float32(0)), np.int64)
        for each in (low, op("Add", low, one))
    )
    return _mixed(step, value, ends, part, axis, want)


def _mixed(step: Step, value: ir.Value, ends: Iterable[Any], part: Any, axis: int, want: Any) -> ir.Value:
    """The one end of each pair, and a part of the way to the other."""
    near, far = (step.op("Gather", value, end, axis=axis) for end in ends)
    shape = shape_of(value)
    shape[axis] = want if isinstance(want, int) else None
    return typed(step.op("Add", near, step.op("Mul", step.op("Sub", far, near), part)), value.dtype, shape)


def _matrix(size: int, want: int, way: str, *, antialias: bool) -> np.ndarray[Any, Any]:
    """How much of each pixel is in each, ``want`` by ``size``, as the backend has it."""
    unit = np.eye(size, dtype=np.float32).reshape(1, size, size, 1)  # resized in height alone
    found = numpy_of(
        keras.ops.image.resize(unit, (want, size), interpolation=way, antialias=antialias, data_format="channels_last")
    )
    return found.reshape(want, size)


def _product(step: Step, value: ir.Value, matrix: np.ndarray[Any, Any], axis: int) -> ir.Value:
    """A matrix from the left, along an axis."""
    if matrix.shape[0] == matrix.shape[1] and np.array_equal(matrix, np.eye(len(matrix), dtype=matrix.dtype)):
        return value
    rank, shape = rank_of(value), shape_of(value)
    order = [at for at in range(rank) if at not in (axis, rank - 1)]
    order = [*order, axis, rank - 1] if axis != rank - 1 else list(range(rank))
    moved = step.transposed(value, order)
    kind = value.dtype.numpy() if value.dtype is not None else np.float32
    left = axis != rank - 1
    operands = (matrix.astype(kind), moved) if left else (moved, matrix.T.astype(kind))
    shape[axis] = matrix.shape[0]
    made = typed(step.op("MatMul", *operands), value.dtype, [shape[at] for at in order])
    return step.transposed(made, [order.index(at) for at in range(rank)])


def _by_operator(
    step: Step, value: ir.Value, wanted: Sequence[Any], way: str, axes: tuple[int, int], *, antialias: bool
) -> ir.Value:
    """ONNX's Resize, on the last two axes."""
    modes = {"bilinear": "linear", "nearest": "nearest", "bicubic": "cubic"}
    if way not in modes or antialias:
        raise step.refuse(f"interpolation '{way}'{' with antialias' * antialias}, on images whose size varies")
    rank = rank_of(value)
    order = [*(at for at in range(rank) if at not in axes), *axes]
    moved = step.transposed(value, order)
    sizes = step.op("Concat", step.op("Shape", moved, start=0, end=-2), step.vector(list(wanted)), axis=0)
    options: dict[str, Any] = {"coordinate_transformation_mode": "half_pixel"}
    if way == "nearest":
        options["nearest_mode"] = "floor" if keras.backend.backend() == "torch" else "round_prefer_ceil"
        options["coordinate_transformation_mode"] = "half_pixel"
    if way == "bicubic":
        options |= {"cubic_coeff_a": -0.5, "exclude_outside": 1}
    made = typed(step.op("Resize", moved, None, None, sizes, mode=modes[way], **options), value.dtype, [None] * rank)
    return step.transposed(made, [order.index(at) for at in range(rank)])
