"""Maxima and means of windows, patches, and morphology."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from entrepot.exporters.building import Builder
from entrepot.exporters.tensorflow.node import Node
from entrepot.exporters.tensorflow.numeric import computed, is_float, number
from entrepot.exporters.tensorflow.sizes import integers, rank_of, reshaped
from entrepot.exporters.tensorflow.table import translates
from entrepot.exporters.tensorflow.windows import Layout, Windows


@translates("MaxPool", "MaxPool3D")
def max_pool(node: Node, build: Builder, x: Any) -> Any:
    """The largest of each window."""
    return _pooled(node, build, "MaxPool", x, node["ksize"])


@translates("MaxPoolV2")
def max_pool_of_inputs(node: Node, build: Builder, x: Any, sizes: Any, strides: Any) -> Any:
    """With sizes and strides as inputs."""
    layout = Layout.of(node, 4)
    kernel, steps = integers(node, 1), integers(node, 2)
    image = node.shape(0) or (None,) * 4
    pick = layout.spatial
    windows = Windows(
        tuple(kernel[axis] for axis in pick), tuple(steps[axis] for axis in pick), (1, 1), node["padding"], (),
        tuple(image[axis] for axis in pick),
    )  # fmt: skip
    return layout.back(build, _max(build, layout.first(build, x), windows))


@translates("AvgPool", "AvgPool3D")
def mean_pool(node: Node, build: Builder, x: Any) -> Any:
    """The mean of what is inside the image."""
    return _pooled(node, build, "AveragePool", x, node["ksize"])


def _pooled(node: Node, build: Builder, op: str, x: Any, sizes: list[int]) -> Any:
    rank = rank_of(node)
    layout = Layout.of(node, rank)
    if sizes[0] != 1 or sizes[layout.channel] != 1:
        node.refuse("pools over the batch or the channels")
    windows = Windows.of(node, layout, [sizes[axis] for axis in layout.spatial], node.shape(0) or (None,) * rank)
    image = layout.first(build, x)
    if op == "MaxPool":
        return layout.back(build, _max(build, image, windows))
    if not windows.open():
        return layout.back(build, computed(build, op, image, **windows.attributes()))
    ones = computed(build, "Expand", number(build, 1, x), build.shape(image))
    totals = (
        computed(build, op, windows.padded(build, each, 2, number(build, 0, x)), **windows.attributes())
        for each in (image, ones)
    )
    return layout.back(build, computed(build, "Div", *totals))


def _max(build: Builder, image: Any, windows: Windows) -> Any:
    if windows.open():
        least = -np.inf if is_float(image) else np.iinfo(image.dtype.numpy()).min
        image = windows.padded(build, image, 2, number(build, least, image))
    if is_float(image) or image.dtype in (ir.DataType.INT8, ir.DataType.UINT8):
        return computed(build, "MaxPool", image, **windows.attributes())
    return build.cast(build.op("MaxPool", build.cast(image, np.float64), **windows.attributes()), image.dtype)


@translates("MaxPoolWithArgmax")
def max_pool_with_places(node: Node, build: Builder, x: Any) -> Any:
    """The largest of each window, and where they are, with channels as the last axis."""
    layout = Layout(4, last=True)
    sizes = node["ksize"]
    windows = Windows.of(node, layout, sizes[1:3], node.shape(0) or (None,) * 4)
    if windows.open():
        node.refuse("with windows further apart than they are wide needs an image of a size that is known")
    values, places = build.op("MaxPool", layout.first(build, x), outputs=2, **windows.attributes())
    height, width, channels = (build.size(x, axis) for axis in (1, 2, 3))
    area = build.op("Mul", height, width)
    plane, spot = build.op("Div", places, area), build.op("Mod", places, area)
    index = build.op("Add", build.op("Mul", spot, channels), build.op("Mod", plane, channels))
    if node["include_batch_in_index"]:
        batch = build.op("Mul", build.op("Div", plane, channels), build.op("Mul", area, channels))
        index = build.op("Add", index, batch)
    return layout.back(build, values), build.cast(layout.back(build, index), node["Targmax"])


@translates("ExtractImagePatches", "ExtractVolumePatches")
def patches(node: Node, build: Builder, x: Any) -> Any:
    """The elements of each window as channels."""
    rank = rank_of(node)
    windows = _moving(node, rank, node["ksizes"], "rates" if rank == 4 else "")
    found = windows.patches(build, x, number(build, 0, x))
    count = rank - 2
    channels = build.op("Mul", build.shape(x, rank - 1), [int(np.prod(windows.kernel))])
    return reshaped(build, found, build.op("Shape", found, start=0, end=1 + count), channels)


@translates("Dilation2D")
def dilation(node: Node, build: Builder, x: Any, weight: Any) -> Any:
    """The largest sum of a window and a filter."""
    shape = node.shape(1) or ()
    if None in shape:
        node.refuse("has a filter of a size that varies")
    windows = _moving(node, 4, [1, *(int(size or 0) for size in shape[:2]), 1], "rates")
    least = -np.inf if is_float(x) else np.iinfo(x.dtype.numpy()).min
    found = windows.patches(build, x, number(build, least, x))
    return computed(build, "ReduceMax", computed(build, "Add", found, weight), [3, 4], keepdims=0)


def _moving(node: Node, rank: int, sizes: list[int], rates: str) -> Windows:
    image = node.shape(0) or (None,) * rank
    spatial = range(1, rank - 1)
    apart = node[rates] if rates else [1] * rank
    steps, kernel = node["strides"], tuple(sizes[axis] for axis in spatial)
    return Windows(
        kernel, tuple(steps[axis] for axis in spatial), tuple(apart[axis] for axis in spatial), node["padding"], (),
        tuple(image[axis] for axis in spatial),
    )  # fmt: skip
