"""Images: made larger and smaller, cropped, with other values."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from entrepot.exporters.building import typed
from entrepot.exporters.keras.operations.convolutions import as_given, channels_first, per_axis
from entrepot.exporters.keras.operations.resizing import resized
from entrepot.exporters.keras.reading.step import Step, rank_of, shape_of
from entrepot.exporters.keras.reading.table import layer


@layer("UpSampling1D", "UpSampling2D", "UpSampling3D")
def up_sampling(step: Step, inputs: Any) -> ir.Value:
    """By whole factors: repeated, or interpolated."""
    given, value = step.operation, step.value(inputs)
    data_format = getattr(given, "data_format", "channels_last")
    count = rank_of(value) - 2
    factors = per_axis(given.size, count)
    way = getattr(given, "interpolation", "nearest")
    if way == "nearest":
        moved = channels_first(step, value, data_format)
        larger = step.op(
            "Resize", moved, None, np.array([1, 1, *factors], np.float32), mode="nearest",
            coordinate_transformation_mode="asymmetric", nearest_mode="floor",
        )  # fmt: skip
        typed(larger, value.dtype, [None] * (count + 2))
        return as_given(step, larger, data_format)
    sizes = step.sizes(value)[1:-1] if data_format == "channels_last" else step.sizes(value)[2:]
    wanted = [
        size * factor if isinstance(size, int) else step.op("Mul", size, factor)
        for size, factor in zip(sizes, factors, strict=True)
    ]
    return resized(step, value, wanted, way, antialias=False, data_format=data_format)


@layer("Resizing")
def resizing(step: Step, data: Any) -> ir.Value:
    """To a certain size, in the type of the layer."""
    given = step.operation
    return _resizing(step, data, (given.height, given.width), given)


def _resizing(step: Step, data: Any, size: tuple[int, int], given: Any) -> ir.Value:
    if isinstance(data, dict):
        raise step.refuse("labels and boxes beside images")
    value = step.value(data)
    last = given.data_format == "channels_last"
    crops = getattr(given, "crop_to_aspect_ratio", False), getattr(given, "pad_to_aspect_ratio", False)
    if any(crops):
        value = _fitted(step, value, size, given, crop=crops[0])
    return resized(
        step, value, list(size), given.interpolation, antialias=given.antialias,
        data_format="channels_last" if last else "channels_first",
    )  # fmt: skip


def _fitted(step: Step, value: ir.Value, size: tuple[int, int], given: Any, *, crop: bool) -> ir.Value:
    """The image at the ratio that is wanted, without what is too much or with what is missing."""
    height, width = _axes(value, given.data_format)
    sizes = shape_of(value)[height], shape_of(value)[width]
    if sizes[0] is None or sizes[1] is None:
        raise step.refuse("a ratio of sides that is kept, on images whose size varies")
    wanted = int(float(sizes[1] * size[0]) / size[1]), int(float(sizes[0] * size[1]) / size[0])
    for axis, have, want in ((height, sizes[0], wanted[0]), (width, sizes[1], wanted[1])):
        if crop:
            value = _cut(step, value, axis, (have - min(have, want)) // 2, min(have, want))
        elif want > have:
            before = (want - have) // 2
            value = _padded(step, value, axis, before, want - have - before, float(given.fill_value))
    return value


def _axes(value: ir.Value, data_format: str) -> tuple[int, int]:
    rank = rank_of(value)
    return (rank - 3, rank - 2) if data_format == "channels_last" else (rank - 2, rank - 1)


def _cut(step: Step, value: ir.Value, axis: int, start: int, size: int) -> ir.Value:
    shape = shape_of(value)
    shape[axis] = size
    return typed(step.op("Slice", value, [start], [start + size], [axis]), value.dtype, shape)


def _padded(step: Step, value: ir.Value, axis: int, before: int, after: int, filler: float) -> ir.Value:
    width = [[0, 0] for _ in shape_of(value)]
    width[axis] = [before, after]
    shape = shape_of(value)
    shape[axis] = (shape[axis] or 0) + before + after
    pads = [pair[0] for pair in width] + [pair[1] for pair in width]
    return typed(step.op("Pad", value, pads, step.value(filler, value.dtype)), value.dtype, shape)


@layer("CenterCrop")
def center_crop(step: Step, data: Any) -> ir.Value:
    """The middle; where the image is smaller, the middle of what is as wide or as high, made larger."""
    given = step.operation
    if isinstance(data, dict):
        raise step.refuse("labels and boxes beside images")
    value = step.build.cast(step.value(data), step.dtype)
    axes, wanted = _axes(value, given.data_format), (int(given.height), int(given.width))
    sizes = [shape_of(value)[axis] for axis in axes]
    if any(isinstance(size, int) and size < want for size, want in zip(sizes, wanted, strict=True)):
        return _smart(step, value, axes, wanted)
    if None not in sizes:
        return _middle(step, value, axes, wanted)
    fits = [
        step.op("GreaterOrEqual", step.build.size(value, axis), want) for axis, want in zip(axes, wanted, strict=True)
    ]
    branches = []
    for way in (_middle, _smart):
        body = step.build.body("crop")
        with step.reader.inside(body):
            result = way(step, value, axes, wanted)
        branches.append(body.graph([result]))
    made = step.op("If", step.op("And", *fits), then_branch=branches[0], else_branch=branches[1])
    return typed(made, result.dtype, shape_of(result))


def _middle(step: Step, value: ir.Value, axes: tuple[int, int], wanted: tuple[int, int]) -> ir.Value:
    for axis, want in zip(axes, wanted, strict=True):
        size = step.build.size(value, axis)
        start = step.op("Div", step.op("Sub", size, want), 2)
        shape = shape_of(value)
        shape[axis] = want
        ends = (step.op("Unsqueeze", each, [0]) for each in (start, step.op("Add", start, want)))
        value = typed(step.op("Slice", value, *ends, [axis]), value.dtype, shape)
    return value


def _smart(step: Step, value: ir.Value, axes: tuple[int, int], wanted: tuple[int, int]) -> ir.Value:
    """As ``keras.utils.image_utils.smart_resize``: what has the ratio of the result, resized."""
    height, width = (shape_of(value)[axis] for axis in axes)
    if height is None or width is None:
        value = _smart_cut(step, value, axes, wanted)
    else:
        crop = int(float(width * wanted[0]) / wanted[1]), int(float(height * wanted[1]) / wanted[0])
        for axis, have, want in zip(axes, (height, width), crop, strict=True):
            least = min(have, want) or have
            value = _cut(step, value, axis, int(float(have - least) / 2), least)
    data_format = step.operation.data_format
    return resized(step, value, list(wanted), "bilinear", antialias=False, data_format=data_format)


def _smart_cut(step: Step, value: ir.Value, axes: tuple[int, int], wanted: tuple[int, int]) -> ir.Value:
    """The same part of an image whose size is not known."""
    sizes = [step.build.size(value, axis) for axis in axes]
    for axis, have, other, want, against in zip(axes, sizes, sizes[::-1], wanted, wanted[::-1], strict=True):
        ratio = step.op("Min", have, step.op("Div", step.op("Mul", other, want), against))
        least = step.op("Where", step.op("Equal", ratio, 0), have, ratio)
        start = step.op("Div", step.op("Sub", have, least), 2)
        ends = (step.op("Unsqueeze", each, [0]) for each in (start, step.op("Add", start, least)))
        shape = shape_of(value)
        shape[axis] = None
        value = typed(step.op("Slice", value, *ends, [axis]), value.dtype, shape)
    return value


@layer("Rescaling")
def rescaling(step: Step, inputs: Any) -> ir.Value:
    """Times a factor, plus an offset."""
    given = step.operation
    value = step.build.cast(step.value(inputs), step.dtype)
    factor, offset = (np.asarray(each, step.dtype.numpy()) for each in (given.scale, given.offset))
    scaled = step.op("Mul", value, factor)
    return step.op("Add", scaled, offset) if np.any(offset) else scaled


@layer("Normalization")
def normalization(step: Step, inputs: Any) -> ir.Value:
    """Without the mean, by the deviation."""
    from entrepot.exporters.keras.arrays import numpy_of

    given, value = step.operation, step.build.cast(step.value(inputs), step.dtype)
    mean, variance = (numpy_of(each) for each in (given.mean, given.variance))
    deviation = np.maximum(np.sqrt(variance), np.asarray(1e-7, variance.dtype))
    if given.invert:
        return step.op("Add", step.op("Mul", value, deviation), mean)
    return step.op("Div", step.op("Sub", value, mean), deviation)
