"""Normalisation over batches and channels, and biases."""

from __future__ import annotations

from typing import Any

import numpy as np

from entrepot.exporters.building import Builder
from entrepot.exporters.tensorflow.node import Node
from entrepot.exporters.tensorflow.numeric import computed, number
from entrepot.exporters.tensorflow.sizes import rank_of, transposed
from entrepot.exporters.tensorflow.table import translates
from entrepot.exporters.tensorflow.windows import Layout


@translates("BiasAdd", "BiasAddV1")
def bias_add(node: Node, build: Builder, x: Any, bias: Any) -> Any:
    """A number for each channel."""
    layout = Layout.of(node, rank_of(node))
    if not layout.last and layout.rank > 2:
        bias = build.op("Unsqueeze", bias, list(range(1, layout.rank - 1)))
    return computed(build, "Add", x, bias)


@translates("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3")
def batch_normalisation(node: Node, build: Builder, x: Any, scale: Any, offset: Any, mean: Any, variance: Any) -> Any:
    """By given statistics, or by those of the batch."""
    layout = Layout.of(node, rank_of(node))
    wide = build.cast(x, scale.dtype)
    if node["is_training"]:
        if node["exponential_avg_factor"] != 1.0:
            node.refuse("updates its statistics")
        return _by_batch(node, build, layout, wide, scale, offset)
    image = layout.first(build, wide)
    result = build.op("BatchNormalization", image, scale, offset, mean, variance, epsilon=float(node["epsilon"]))
    value = build.cast(layout.back(build, result), x.dtype)
    return (value, mean, variance, *_reserved(node, build, mean, variance))


def _by_batch(node: Node, build: Builder, layout: Layout, x: Any, scale: Any, offset: Any) -> Any:
    axes = [axis for axis in range(layout.rank) if axis != layout.channel]
    mean = build.op("ReduceMean", x, axes, keepdims=1)
    less = build.op("Sub", x, mean)
    spread = build.op("ReduceMean", build.op("Mul", less, less), axes, keepdims=1)
    root = build.op("Sqrt", build.op("Add", spread, number(build, node["epsilon"], x)))
    factor, added = (_shaped(build, layout, each) for each in (scale, offset))
    value = build.op("Add", build.op("Mul", build.op("Div", less, root), factor), added)
    count = build.op("ReduceProd", build.op("Gather", build.shape(x), axes), keepdims=0)
    wider = build.op(
        "Div", build.cast(count, x.dtype), build.cast(build.op("Max", build.op("Sub", count, 1), 1), x.dtype)
    )
    flat = build.op("Squeeze", mean, axes)
    plain = build.op("Squeeze", spread, axes)
    results = (build.cast(value, node.dtype(0)), flat, build.op("Mul", plain, wider))
    return (*results, *_reserved(node, build, flat, plain))


def _reserved(node: Node, build: Builder, mean: Any, variance: Any) -> Any:
    """What only gradients read."""
    nothing = build.constant(np.zeros(0, np.float32))
    return (mean, variance) if node.op != "FusedBatchNormV3" else (mean, variance, nothing)


def _shaped(build: Builder, layout: Layout, x: Any) -> Any:
    return x if layout.last else build.op("Unsqueeze", x, list(range(1, layout.rank - 1)))


@translates("BatchNormWithGlobalNormalization")
def old_normalisation(node: Node, build: Builder, x: Any, mean: Any, variance: Any, offset: Any, scale: Any) -> Any:
    """The same with an optional scale."""
    factor = computed(build, "Add", variance, number(build, node["variance_epsilon"], x))
    factor = computed(build, "Reciprocal", computed(build, "Sqrt", factor))
    if node["scale_after_normalization"]:
        factor = computed(build, "Mul", factor, scale)
    return computed(build, "Add", computed(build, "Mul", computed(build, "Sub", x, mean), factor), offset)


@translates("LRN")
def local_response(node: Node, build: Builder, x: Any) -> Any:
    """By the squares of neighbouring channels."""
    size = 2 * node["depth_radius"] + 1
    image = transposed(build, x, [0, 3, 1, 2])
    result = computed(
        build, "LRN", image, size=size, alpha=node["alpha"] * size, beta=node["beta"], bias=node["bias"]
    )  # fmt: skip
    return transposed(build, result, [0, 2, 3, 1])
