"""Convolutions and their transposes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from entrepot.exporters.building import Builder
from entrepot.exporters.tensorflow.node import Node
from entrepot.exporters.tensorflow.numeric import computed, number
from entrepot.exporters.tensorflow.sizes import END, along, int64, joined, part, rank_of, reshaped, transposed
from entrepot.exporters.tensorflow.table import translates
from entrepot.exporters.tensorflow.windows import Layout, Windows


@translates("Conv2D", "Conv3D")
def convolution(node: Node, build: Builder, x: Any, weight: Any) -> Any:
    """Filters have their channels last; fewer of them than the image has are groups."""
    layout = Layout.of(node, rank_of(node))
    shape = _filter_shape(node, 1)
    channels = (node.shape(0) or ())[layout.channel]
    windows = Windows.of(node, layout, shape[:-2], node.shape(0) or ())
    turned = transposed(build, weight, [len(shape) - 1, len(shape) - 2, *range(len(shape) - 2)])
    if channels is None:
        turned, channels = _ungrouped(node, build, turned, shape, build.size(x, layout.channel)), shape[-2]
    return _convolved(build, layout, windows, x, turned, channels // shape[-2])


@translates("DepthwiseConv2dNative")
def depthwise(node: Node, build: Builder, x: Any, weight: Any) -> Any:
    """Each channel by itself."""
    layout = Layout.of(node, rank_of(node))
    shape = _filter_shape(node, 1)
    windows = Windows.of(node, layout, shape[:2], node.shape(0) or ())
    return _convolved(build, layout, windows, x, _by_channel(build, weight, shape), shape[2])


def _convolved(build: Builder, layout: Layout, windows: Windows, x: Any, weight: Any, groups: int) -> Any:
    image = layout.first(build, x)
    given = windows.attributes()
    if windows.open():
        image = windows.padded(build, image, 2, number(build, 0, x))
    result = computed(build, "Conv", image, weight, group=groups if groups != 1 else None, **given)
    return layout.back(build, result)


def _by_channel(build: Builder, weight: Any, shape: list[int]) -> Any:
    height, width, channels, times = shape
    turned = transposed(build, weight, [2, 3, 0, 1])
    return reshaped(build, turned, [channels * times, 1, height, width])


@translates("Conv2DBackpropInput", "Conv3DBackpropInputV2")
def transposed_convolution(node: Node, build: Builder, sizes: Any, weight: Any, x: Any) -> Any:
    """The size of the result is given, since several lead to the same image."""
    shape = _filter_shape(node, 1)
    turned = transposed(build, weight, [len(shape) - 1, len(shape) - 2, *range(len(shape) - 2)])
    layout = Layout.of(node, rank_of(node, 2))
    channels = (node.result_shape() or ())[layout.channel]
    if channels is None:
        own = build.op("Gather", int64(build, sizes), layout.channel, axis=0)
        turned, channels = _ungrouped(node, build, turned, shape, own), shape[-2]
    return _spread(node, build, layout, sizes, turned, x, shape[:-2], channels // shape[-2])


@translates("DepthwiseConv2dNativeBackpropInput")
def transposed_depthwise(node: Node, build: Builder, sizes: Any, weight: Any, x: Any) -> Any:
    """Each channel by itself."""
    shape = _filter_shape(node, 1)
    layout = Layout.of(node, rank_of(node, 2))
    return _spread(node, build, layout, sizes, _by_channel(build, weight, shape), x, shape[:2], shape[2])


def _spread(
    node: Node, build: Builder, layout: Layout, sizes: Any, weight: Any, x: Any, kernel: list[int], groups: int
) -> Any:
    image = layout.first(build, x)
    result = node.result_shape() or (None,) * layout.rank
    windows = Windows.of(node, layout, kernel, result)
    given: dict[str, Any] = {"kernel_shape": kernel, "strides": list(windows.strides)}
    if any(rate != 1 for rate in windows.dilations):
        given["dilations"] = list(windows.dilations)
    given["group"] = groups if groups != 1 else None
    inner = [(node.shape(2) or ())[axis] for axis in layout.spatial]
    pairs = windows.fixed()
    known = [*windows.sizes, *inner]
    if pairs is not None and all(size is not None for size in known):
        return layout.back(
            build, computed(build, "ConvTranspose", image, weight, **given, **_ends(windows, pairs, inner))
        )
    whole = computed(build, "ConvTranspose", image, weight, **given)
    wanted = part(build, int64(build, sizes), -len(kernel) - int(layout.last), -1 if layout.last else END, 0)
    return layout.back(build, _cut(build, whole, windows, wanted, pairs))


def _ends(windows: Windows, pairs: Any, inner: Any) -> dict[str, Any]:
    """Attributes for sizes that are known."""
    more = []
    for size, count, stride, span, (before, after) in zip(
        windows.sizes, inner, windows.strides, windows.spans, pairs, strict=True
    ):
        more.append(int(size or 0) - ((count - 1) * stride + span - before - after))
    pads = [pair[0] for pair in pairs] + [pair[1] for pair in pairs]
    return {"pads": pads if any(pads) else None, "output_padding": more if any(more) else None}


def _cut(build: Builder, whole: Any, windows: Windows, wanted: Any, pairs: Any) -> Any:
    """As much as is asked for of a result without padding; zeros where no window reaches."""
    count = len(windows.kernel)
    axes = list(range(2, 2 + count))
    own = build.op("Shape", whole, start=2)
    if windows.padding == "SAME":
        before = build.op("Div", build.op("Max", build.op("Sub", own, wanted), [0]), [2])
    else:
        before = build.constant(np.array([pair[0] for pair in pairs]))
    end = build.op("Add", before, wanted)
    missing = build.op("Max", build.op("Sub", end, own), [0])
    pads = joined(build, [0] * (4 + count), missing)
    room = computed(build, "Pad", whole, pads, number(build, 0, whole), mode="constant")
    return build.op("Slice", room, before, end, axes)


def _ungrouped(node: Node, build: Builder, weight: Any, shape: Sequence[int], channels: Any) -> Any:
    """The filters of all groups as those of one, with zeros for the channels of others.

    Args:
        node: The convolution.
        build: Where nodes are written.
        weight: ``[results, channels of a group, ...]``.
        shape: Of the filter as TensorFlow has it.
        channels: Of all groups: how many groups there are is known only when it runs.
    """
    *kernel, per_group, results = shape
    if results == 1:
        return weight
    node.walk.ungrouped.add(node.name)
    groups = build.op("Div", channels, per_group)
    group = build.op("Div", build.op("Mul", build.constant(np.arange(results)), groups), results)
    first = build.op("Unsqueeze", build.op("Mul", group, per_group), [1, 2])
    place = build.op("Sub", along(build, channels, 1, 3), first)
    chosen = build.cast(build.op("Equal", place, build.constant(np.arange(per_group))), weight.dtype)
    flat = reshaped(build, weight, [results, per_group, math.prod(kernel)])
    return reshaped(build, computed(build, "MatMul", chosen, flat), [results, -1, *kernel])


def _filter_shape(node: Node, at: int) -> list[int]:
    shape = node.shape(at)
    if shape is None or None in shape:
        node.refuse("has a filter of a size that varies")
    return [int(size) for size in shape or () if size is not None]
