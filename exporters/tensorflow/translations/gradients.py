"""Gradients, where a graph computes them itself."""

from __future__ import annotations

from typing import Any

import numpy as np

from entrepot.exporters.building import Builder
from entrepot.exporters.tensorflow.node import Node
from entrepot.exporters.tensorflow.numeric import computed, number
from entrepot.exporters.tensorflow.sizes import int64, known, rank_of, reshaped, scalar
from entrepot.exporters.tensorflow.strides import Strides
from entrepot.exporters.tensorflow.table import translates
from entrepot.exporters.tensorflow.windows import Layout


@translates("BroadcastGradientArgs")
def broadcast_gradient_args(node: Node, build: Builder, first: Any, second: Any) -> Any:
    """The axes along which each of two shapes was repeated."""
    shapes = [int64(build, each) for each in (first, second)]
    ranks = [build.shape(each) for each in shapes]
    most = build.op("Max", *ranks)
    padded = []
    for value, own in zip(shapes, ranks, strict=True):
        ones = build.op("Expand", build.constant(np.array([1])), build.op("Sub", most, own))
        padded.append(build.op("Concat", ones, value, axis=0))
    axes = build.op("Range", 0, scalar(build, most), 1)
    results = []
    missing = build.op("Less", axes, build.op("Sub", most, build.op("Min", *ranks)))
    apart = build.op("Or", build.op("Not", build.op("Equal", *padded)), missing)
    differ = build.op("Greater", build.op("ReduceSum", build.cast(apart, np.int32), keepdims=0), 0)
    for value in padded:
        repeated = build.op("And", build.op("Equal", value, 1), differ)
        results.append(build.cast(build.op("Compress", axes, repeated, axis=0), first.dtype))
    return tuple(results)


@translates("BiasAddGrad")
def bias_add_gradient(node: Node, build: Builder, dy: Any) -> Any:
    """Summed over all but the channels."""
    layout = Layout.of(node, rank_of(node))
    axes = [axis for axis in range(layout.rank) if axis != layout.channel]
    return computed(build, "ReduceSum", dy, axes, keepdims=0)


@translates("StridedSliceGrad")
def strided_slice_gradient(node: Node, build: Builder, shape: Any, begin: Any, end: Any, strides: Any, dy: Any) -> Any:
    """Written where the slice was taken from."""
    rank = (node.shape(0) or (None,))[0]
    if rank is None:
        node.refuse("of a tensor of unknown rank has no counterpart")
    whole = int64(build, shape)
    count = build.op("ReduceProd", whole, keepdims=0)
    places = reshaped(build, build.op("Range", 0, count, 1), whole)
    spots = Strides.of(node, rank, known(node, 3)).sliced(build, places, begin, end)
    zeros = computed(build, "Expand", number(build, 0, dy), build.op("Reshape", count, [1]))
    flat = [build.op("Reshape", each, [-1]) for each in (spots, dy)]
    return reshaped(build, build.op("ScatterElements", zeros, *flat, axis=0), whole)
