"""Gradients of convolutions with respect to their filters, of normalisation, and of rounding to steps."""

from __future__ import annotations

import math
from typing import Any

import tensorflow as tf

from entrepot.exporters.tensorflow.composed import composed
from entrepot.exporters.tensorflow.compositions.places import places_in
from entrepot.exporters.tensorflow.node import Node

_raw = tf.raw_ops


@composed("Conv2DBackpropFilter", "Conv3DBackpropFilterV2", "DepthwiseConv2dNativeBackpropFilter")
def of_filter(node: Node, x: Any, shape: Any, dy: Any) -> tf.Tensor:
    """Each element of the filter met one patch of the image for each element of the result."""
    rank, by_channel = len(dy.shape), node.op.startswith("Depthwise")
    if by_channel and set(node["dilations"]) != {1}:
        node.refuse("with gaps between the elements of the filter leaves them out in TensorFlow (2.21)")
    if node["data_format"].startswith("NC"):
        x, dy = (tf.transpose(each, [0, *range(2, rank), 1]) for each in (x, dy))
    kernel = tf.get_static_value(shape)
    if kernel is None:
        node.refuse("has a filter of a size that varies")
    patches = _patches(node, x, [int(size) for size in kernel[: rank - 2]])
    places = tf.reduce_prod(tf.shape(patches)[:-1])
    inputs = tf.reshape(patches, [places, math.prod(kernel[: rank - 2]), -1])
    if by_channel:
        outputs = tf.reshape(dy, [places, int(kernel[-2]), int(kernel[-1])])
        return tf.reshape(tf.einsum("nkc,ncm->kcm", inputs, outputs), shape)
    if x.shape[-1] is None or x.shape[-1] != kernel[-2]:
        node.refuse("in groups, or with a number of channels that varies, has no counterpart")
    return tf.reshape(tf.einsum("nkc,nf->kcf", inputs, tf.reshape(dy, [places, int(kernel[-1])])), shape)


def _patches(node: Node, x: Any, kernel: list[int]) -> tf.Tensor:
    rank = len(x.shape)
    axes = range(2, rank) if node["data_format"].startswith("NC") else range(1, rank - 1)
    steps, rates = ([1, *(node[name][axis] for axis in axes), 1] for name in ("strides", "dilations"))
    padding, sizes = node["padding"], [1, *kernel, 1]
    if padding == "EXPLICIT":
        around = [[node["explicit_paddings"][2 * axis + side] for side in (0, 1)] for axis in axes]
        x, padding = tf.pad(x, [[0, 0], *around, [0, 0]]), "VALID"
    if rank == 4:
        return _raw.ExtractImagePatches(images=x, ksizes=sizes, strides=steps, rates=rates, padding=padding)
    if set(rates) != {1}:
        node.refuse("with gaps between the elements of the filter has no counterpart")
    return _raw.ExtractVolumePatches(input=x, ksizes=sizes, strides=steps, padding=padding)


@composed("FusedBatchNormGrad", "FusedBatchNormGradV2", "FusedBatchNormGradV3")
def of_batch_normalisation(node: Node, dy: Any, x: Any, scale: Any, mean: Any, variance: Any, *more: Any) -> Any:
    """By statistics of the batch, which depend on the image as well, or by given ones."""
    rank = len(x.shape)
    first = node["data_format"].startswith("NC")
    axes = [0, *range(2, rank)] if first else list(range(rank - 1))
    shape = [1, -1, *[1] * (rank - 2)] if first else [-1]
    wide, given = tf.cast(x, scale.dtype), tf.cast(dy, scale.dtype)
    inverse = tf.math.rsqrt(variance + node["epsilon"])
    normal = (wide - tf.reshape(mean, shape)) * tf.reshape(inverse, shape)
    of_scale, of_offset = tf.reduce_sum(given * normal, axes), tf.reduce_sum(given, axes)
    if node["is_training"]:
        count = tf.cast(tf.size(x) // tf.size(scale), scale.dtype)
        given = given - tf.reshape(of_offset / count, shape) - normal * tf.reshape(of_scale / count, shape)
    of_x = tf.cast(given * tf.reshape(scale * inverse, shape), x.dtype)
    nothing = tf.zeros([0], scale.dtype)
    return of_x, of_scale, of_offset, nothing, nothing


@composed("FakeQuantWithMinMaxArgsGradient")
def of_steps(node: Node, dy: Any, x: Any) -> tf.Tensor:
    """As it is between the bounds."""
    low, high = _nudged(node, *(tf.constant(node[name], x.dtype) for name in ("min", "max")))
    return tf.where((x >= low) & (x <= high), dy, 0.0)


@composed("FakeQuantWithMinMaxVarsGradient", "FakeQuantWithMinMaxVarsPerChannelGradient")
def of_steps_by_inputs(node: Node, dy: Any, x: Any, bottom: Any, top: Any) -> Any:
    """As it is between the bounds, and what is beyond them goes to them; bounds of zero are no bounds."""
    axes = list(range(len(x.shape) - 1)) if "PerChannel" in node.op else None
    low, high = _nudged(node, bottom, top)
    none = tf.equal(bottom, 0.0) & tf.equal(top, 0.0)
    below, above = (x < low) & ~none, (x > high) & ~none
    return (
        tf.where(below | above, 0.0, dy),
        tf.reduce_sum(tf.where(below, dy, 0.0), axes),
        tf.reduce_sum(tf.where(above, dy, 0.0), axes),
    )


def _nudged(node: Node, bottom: Any, top: Any) -> tuple[Any, Any]:
    first, last = float(node["narrow_range"]), float(2 ** node["num_bits"] - 1)
    step = (top - bottom) / (last - first)
    zero = first - bottom / step
    place = tf.where(zero < first, first, tf.where(zero > last, last, tf.floor(zero + 0.5)))
    return (first - place) * step, (last - place) * step


@composed("QuantizeAndDequantizeV4Grad")
def of_rounding(node: Node, dy: Any, x: Any, low: Any, high: Any) -> Any:
    """As it is between the bounds, nothing beyond."""
    shape = [1] * len(x.shape)
    if node["axis"] != -1:
        shape[node["axis"]] = -1
    inside = (x >= tf.reshape(low, shape)) & (x <= tf.reshape(high, shape))
    return tf.where(inside, dy, tf.zeros_like(dy)), tf.zeros_like(low), tf.zeros_like(high)


@composed("SparseSegmentSumGrad", "SparseSegmentMeanGrad", "SparseSegmentSqrtNGrad")
def of_segments(node: Node, dy: Any, indices: Any, segments: Any, rows: Any) -> tf.Tensor:
    """Each row gets what the segments that it is in get."""
    ones = tf.ones(tf.shape(segments), dy.dtype)
    counts = tf.math.unsorted_segment_sum(ones, segments, tf.shape(dy)[0])
    power = {"Sum": 0.0, "Mean": -1.0, "SqrtN": -0.5}[node.op.removeprefix("SparseSegment").partition("Grad")[0]]
    share = tf.maximum(counts, 1) ** tf.cast(power, dy.dtype)
    whole = tf.reshape(share, [-1, *[1] * (len(dy.shape) - 1)]) * dy
    return tf.math.unsorted_segment_sum(tf.gather(whole, segments), indices, rows)


@composed("SparseSegmentSumGradV2", "SparseSegmentMeanGradV2", "SparseSegmentSqrtNGradV2")
def of_named_segments(node: Node, dy: Any, indices: Any, segments: Any, rows: Any) -> Any:
    """The same for the rows that are in a segment alone, and which those are."""
    ordered = tf.unique(tf.sort(indices))[0]
    places = places_in(ordered, indices)
    found = of_segments(node, dy, places, segments, tf.size(ordered))
    return found, ordered
