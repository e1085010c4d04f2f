"""Convolutions and pooling. Frameworks that have channels last get transpositions, which a pass removes later."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
import onnx_ir as ir

from entrepot.exporters.building import typed
from entrepot.exporters.keras.reading.step import Step, rank_of, shape_of
from entrepot.exporters.keras.reading.table import operation


def is_last(data_format: str | None) -> bool:
    """Whether channels are the last axis."""
    return (data_format or keras.config.image_data_format()) == "channels_last"


def per_axis(given: Any, count: int) -> list[int]:
    """One number, or one for each axis."""
    return [int(given)] * count if isinstance(given, int | np.integer) else [int(each) for each in given]


def channels_first(step: Step, value: ir.Value, data_format: str | None) -> ir.Value:
    """The value with its channels behind the batch."""
    rank = rank_of(value)
    return step.transposed(value, [0, rank - 1, *range(1, rank - 1)]) if is_last(data_format) else value


def as_given(step: Step, value: ir.Value, data_format: str | None) -> ir.Value:
    """The inverse of ``channels_first``."""
    if value.shape is None:
        rank = len(step.shape)
        value = typed(value, value.dtype or step.dtype, [None] * rank)
    rank = rank_of(value)
    return step.transposed(value, [0, *range(2, rank), 1]) if is_last(data_format) else value


def padding(value: ir.Value, mode: str, size: Sequence[int], strides: Sequence[int]) -> dict[str, Any]:
    """The padding of a window as attributes: in numbers where the size of the image does not matter or is known."""
    if mode == "valid":
        return {}
    if mode == "causal":
        return {"pads": [size[0] - 1, 0]}
    pads = [
        _same(extent, window, stride) for extent, window, stride in zip(shape_of(value)[2:], size, strides, strict=True)
    ]
    known = [pair for pair in pads if pair is not None]
    if len(known) < len(pads):
        return {"auto_pad": "SAME_UPPER"}
    return {"pads": [*(before for before, _ in known), *(after for _, after in known)]} if any(map(any, known)) else {}


def _same(extent: int | None, window: int, stride: int) -> tuple[int, int] | None:
    if stride == 1 or window == 1:
        whole = window - 1
    elif extent is None:
        return None
    else:
        whole = max((-(-extent // stride) - 1) * stride + window - extent, 0)
    return whole // 2, whole - whole // 2


def _reach(size: Sequence[int | None], dilations: Sequence[int]) -> list[int]:
    return [(int(extent or 1) - 1) * step + 1 for extent, step in zip(size, dilations, strict=True)]


def _kernel_first(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return np.moveaxis(array, (-1, -2), (0, 1))


def _depthwise_kernel(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    moved = np.moveaxis(array, (-2, -1), (0, 1))
    return moved.reshape(-1, 1, *array.shape[:-2])


def _arranged(step: Step, kernel: Any, change: Any) -> ir.Value:
    """A kernel in ONNX's order: outputs, inputs, window."""
    value = step.value(kernel, step.dtype)
    if value.const_value is not None:
        return step.weight(value, change)
    source = value.producer()
    if source is not None and source.op_type == "Cast" and source.inputs[0] is not None:  # a weight in another type
        inner = source.inputs[0]
        if inner.const_value is not None:
            return step.build.cast(step.weight(inner, change), step.dtype)
    rank, shape = rank_of(value), shape_of(value)
    if change is _depthwise_kernel:
        moved = step.transposed(value, [rank - 2, rank - 1, *range(rank - 2)])
        return step.reshaped(moved, [-1, 1, *shape[:-2]])
    return step.transposed(value, [rank - 1, rank - 2, *range(rank - 2)])


def convolve(step: Step, inputs: Any, kernel: Any, bias: Any = None, *, deep: bool = False) -> ir.Value:
    """A convolution: ``deep`` if each channel is by itself, else in as many groups as the kernel has fewer channels."""
    change, shape = _depthwise_kernel if deep else _kernel_first, tuple(kernel.shape)
    channels = step.value(inputs).shape[-1 if is_last(step.operation.data_format) else 1]  # type: ignore[index]
    groups = int(shape[-2]) if deep else int(channels) // int(shape[-2]) if isinstance(channels, int) else 1
    size = shape[:-2]
    given, value = step.operation, channels_first(step, step.value(inputs, step.dtype), step.operation.data_format)
    count = rank_of(value) - 2
    strides, dilations = per_axis(given.strides, count), per_axis(given.dilation_rate, count)
    where = padding(value, given.padding, _reach(size, dilations), strides)
    if "auto_pad" in where and any(each > 1 for each in dilations):
        raise step.refuse("strides and dilation with padding 'same', on images whose size varies")
    result = step.op(
        "Conv", value, _arranged(step, kernel, change), None if bias is None else step.value(bias, step.dtype),
        strides=strides, dilations=dilations, group=groups, kernel_shape=[int(each or 1) for each in size], **where,
    )  # fmt: skip
    return as_given(step, typed(result, step.dtype, [None] * (count + 2)), given.data_format)


@operation("Conv")
def conv(step: Step, inputs: Any, kernel: Any) -> ir.Value:
    """In as many groups as the kernel has fewer channels than the image."""
    return convolve(step, inputs, kernel)


@operation("DepthwiseConv")
def depthwise_conv(step: Step, inputs: Any, kernel: Any) -> ir.Value:
    """Each channel by itself."""
    return convolve(step, inputs, kernel, deep=True)


@operation("SeparableConv")
def separable_conv(step: Step, inputs: Any, depthwise_kernel: Any, pointwise_kernel: Any) -> ir.Value:
    """Each channel by itself, then across channels."""
    given = step.operation
    return step.follow(
        lambda x, depthwise, pointwise: keras.ops.conv(
            keras.ops.depthwise_conv(
                x, depthwise, given.strides, given.padding, given.data_format, given.dilation_rate
            ),
            pointwise, 1, "valid", given.data_format,
        ),
        step.value(inputs), depthwise_kernel, pointwise_kernel,
    )  # fmt: skip


@operation("ConvTranspose")
def conv_transpose(step: Step, inputs: Any, kernel: Any) -> ir.Value:
    """Without a bias."""
    return convolve_back(step, inputs, kernel)


def convolve_back(step: Step, inputs: Any, kernel: Any, bias: Any = None) -> ir.Value:
    """As the gradient of a convolution is; what is cropped goes by the size of the window alone."""
    given, value = step.operation, channels_first(step, step.value(inputs, step.dtype), step.operation.data_format)
    shape, count = tuple(kernel.shape), rank_of(value) - 2
    strides, dilations = per_axis(given.strides, count), per_axis(given.dilation_rate, count)
    more = [None] * count if given.output_padding is None else per_axis(given.output_padding, count)
    crops = [
        _crop(reach, stride, extra, given.padding)
        for reach, stride, extra in zip(_reach(shape[:-2], dilations), strides, more, strict=True)
    ]
    weight = _arranged(step, kernel, _kernel_first)  # outputs and inputs change places in Keras' kernels, too
    result = step.op(
        "ConvTranspose", value, weight, None if bias is None else step.value(bias, step.dtype),
        strides=strides, dilations=dilations, kernel_shape=list(shape[:-2]),
        pads=[*(max(left, 0) for left, _ in crops), *(max(right, 0) for _, right in crops)],
        output_padding=[max(-right, 0) for _, right in crops],
    )  # fmt: skip
    typed(result, step.dtype, [None] * (count + 2))
    if any(left < 0 for left, _ in crops):
        raise step.refuse("an output padding at the left")
    return as_given(step, result, given.data_format)


def _crop(window: int, stride: int, extra: int | None, mode: str) -> tuple[int, int]:
    """How much of a full transposed convolution is cut off at both ends, as Keras defines it."""
    if mode == "valid":
        return 0, -(max(window, stride) - window if extra is None else extra)
    pad = stride + window - 2 if extra is None else window + window % 2 - 2 + extra
    left = min(pad // 2 + pad % 2, window - 1)
    return window - 1 - left, window - 1 - (pad - left)


@operation("MaxPool", "AveragePool")
def pool(step: Step, inputs: Any) -> ir.Value:
    """The largest, or the mean without padding."""
    given = step.operation
    value = channels_first(step, step.value(inputs, step.dtype), given.data_format)
    count = rank_of(value) - 2
    size = per_axis(given.pool_size, count)
    strides = size if given.strides is None else per_axis(given.strides, count)
    where = padding(value, given.padding, size, strides)
    name = type(given).__name__
    result = step.op(name, value, kernel_shape=size, strides=strides, **where)
    return as_given(step, result, given.data_format)


@operation("AdaptiveMaxPool", "AdaptiveAveragePool")
def adaptive_pool(step: Step, inputs: Any) -> ir.Value:
    """To a certain size: each pixel from its own part of the image, and parts may overlap."""
    given, value = step.operation, step.value(inputs, step.dtype)
    rank, last = rank_of(value), is_last(given.data_format)
    reduction = "ReduceMax" if "Max" in type(given).__name__ else "ReduceMean"
    axes = list(range(1, rank - 1)) if last else list(range(2, rank))
    sizes = step.sizes(value)
    for axis, wanted in zip(axes, per_axis(given.output_size, rank - 2), strict=True):
        if wanted == 1:
            value = typed(step.op(reduction, value, [axis]), step.dtype, [None] * rank)
            continue
        parts = []
        for at in range(wanted):
            ends = (_share(step, sizes[axis], at, wanted), _share(step, sizes[axis], at + 1, wanted, up=True))
            parts.append(step.op(reduction, step.op("Slice", value, *ends, [axis]), [axis]))
        value = typed(step.op("Concat", *parts, axis=axis), step.dtype, [None] * rank)
    return value


def _share(step: Step, size: Any, count: int, whole: int, *, up: bool = False) -> Any:
    """``size * count / whole``, rounded down or up, as a vector of one."""
    more = whole - 1 if up else 0
    if isinstance(size, int):
        return [(size * count + more) // whole]
    share = step.op("Div", step.op("Add", step.op("Mul", size, count), more), whole)
    return step.op("Unsqueeze", share, [0])


@operation("Unfold")
def unfold(step: Step, x: Any) -> ir.Value:
    """Windows of channels that come first, as columns: a convolution by ones and zeros."""
    given, value = step.operation, step.value(x)
    size, stride, dilation, pad = (
        per_axis(each, 2) for each in (given.kernel_size, given.stride, given.dilation, given.padding)
    )
    channels = shape_of(value)[1]
    if channels is None:
        raise step.refuse("the number of channels has to be known")
    whole = int(np.prod(size))
    kernel = np.tile(np.eye(whole, dtype=value.dtype.numpy()).reshape(whole, 1, *size), (channels, 1, 1, 1))  # type: ignore[union-attr]
    found = step.op(
        "Conv", value, kernel, strides=stride, dilations=dilation, pads=[*pad, *pad], group=channels, kernel_shape=size
    )
    return step.reshaped(found, [-1, channels * whole, step.shape[2] if isinstance(step.shape[2], int) else -1])


@operation("ExtractPatches")
def extract_patches(step: Step, images: Any) -> ir.Value:
    """Windows as channels: a convolution by ones and zeros."""
    given, value = step.operation, step.value(images, step.dtype)
    last = is_last(given.data_format)
    size = per_axis(given.size, rank_of(value) - 2)
    strides = size if given.strides is None else per_axis(given.strides, len(size))
    channels = shape_of(value)[-1 if last else 1]
    if channels is None:
        raise step.refuse("the number of channels has to be known")
    whole = int(np.prod(size)) * channels
    kernel = np.eye(whole, dtype=value.dtype.numpy()).reshape(*size, channels, whole)  # type: ignore[union-attr]
    return step.follow(
        lambda x: keras.ops.conv(x, kernel, strides, given.padding, given.data_format, given.dilation_rate), value
    )
