"""Shapes, and tensors in other shapes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from entrepot.exporters.building import Builder, typed
from entrepot.exporters.tensorflow.node import Node
from entrepot.exporters.tensorflow.numeric import computed
from entrepot.exporters.tensorflow.sizes import arange, int64, integers, rank_of, scalar, transposed, vector
from entrepot.exporters.tensorflow.table import translates


@translates("Shape")
def shape(node: Node, build: Builder, x: Any) -> Any:
    """The sizes of all axes."""
    return build.cast(build.shape(x), node["out_type"])


@translates("ShapeN")
def shapes(node: Node, build: Builder, *values: Any) -> Any:
    """Of several tensors."""
    return tuple(build.cast(build.shape(each), node["out_type"]) for each in values)


@translates("Size")
def size(node: Node, build: Builder, x: Any) -> Any:
    """How many elements there are."""
    dims = node.shape(0)
    if dims is not None and None not in dims:
        return build.constant(np.array(math.prod(size or 0 for size in dims), node["out_type"]))
    return build.cast(build.op("Size", x), node["out_type"])


@translates("Rank")
def rank(node: Node, build: Builder, x: Any) -> Any:
    """How many axes there are."""
    if node.shape(0) is None:
        return build.cast(scalar(build, build.op("Shape", build.op("Shape", x))), np.int32)
    return build.constant(np.array(rank_of(node), np.int32))


@translates("Reshape")
def reshape(node: Node, build: Builder, x: Any, target: Any) -> Any:
    """The elements in another shape."""
    return build.op("Reshape", x, int64(build, target), allowzero=1)


@translates("ExpandDims")
def expand_dims(node: Node, build: Builder, x: Any, axis: Any) -> Any:
    """With one axis more."""
    return build.op("Unsqueeze", x, vector(build, axis))


@translates("Squeeze")
def squeeze(node: Node, build: Builder, x: Any) -> Any:
    """Without axes of one element."""
    axes = node["squeeze_dims"]
    if not axes:
        dims = node.shape(0)
        if dims is None or None in dims:
            return build.op("Squeeze", x)  # those that are of one element when it runs, as TensorFlow does
        axes = [at for at, dim in enumerate(dims or ()) if dim == 1]
        if not axes:
            return build.op("Identity", x)
    return build.op("Squeeze", x, [int(each) for each in axes])


@translates("Transpose", "ConjugateTranspose")
def transpose(node: Node, build: Builder, x: Any, order: Any) -> Any:
    """The axes in another order."""
    if node.constant(1) is None:
        return _in_order(build, x, int64(build, order), rank_of(node))
    axes = integers(node, 1)
    result = transposed(build, x, [axis % max(len(axes), 1) for axis in axes])
    return build.op("Identity", x) if result is x else result


def _in_order(build: Builder, x: Any, order: Any, rank: int) -> Any:
    """In an order that is known only when it runs: each element is looked up by its place."""
    sizes = build.op("Shape", x)
    strides = build.op("Concat", *(
        build.op("ReduceProd", build.op("Slice", sizes, [axis + 1], [rank]), keepdims=1) for axis in range(rank)
    ), axis=0)  # fmt: skip
    places: Any = None
    order = build.op("Mod", order, rank)
    for axis in range(rank):
        at = build.op("Gather", order, axis)
        count, stride = (build.op("Gather", each, at) for each in (sizes, strides))
        steps = build.op("Mul", build.op("Range", 0, count, 1), stride)
        places = steps if places is None else build.op("Add", build.op("Unsqueeze", places, [-1]), steps)
    found = build.op("Gather", build.op("Reshape", x, [-1]), places)
    return typed(found, x.dtype, [None] * rank)


@translates("BroadcastTo")
def broadcast_to(node: Node, build: Builder, x: Any, target: Any) -> Any:
    """The elements repeated along axes of one."""
    return computed(build, "Expand", x, int64(build, target))


@translates("BroadcastArgs")
def broadcast_args(node: Node, build: Builder, first: Any, second: Any) -> Any:
    """The shape of both shapes together."""
    ranks = [build.shape(each) for each in (first, second)]
    most = build.op("Max", *ranks)
    padded = []
    for value, own in zip((first, second), ranks, strict=True):
        ones = build.op("Expand", build.constant(np.array([1])), build.op("Sub", most, own))
        padded.append(build.op("Concat", ones, int64(build, value), axis=0))
    one = build.op("Equal", padded[0], 1)
    return build.cast(build.op("Where", one, padded[1], padded[0]), first.dtype)


@translates("Tile")
def tile(node: Node, build: Builder, x: Any, times: Any) -> Any:
    """Repeated along axes."""
    return computed(build, "Tile", x, int64(build, times))


@translates("Fill")
def fill(node: Node, build: Builder, dims: Any, value: Any) -> Any:
    """One value everywhere."""
    return computed(build, "Expand", value, int64(build, dims))


@translates("Empty")
def empty(node: Node, build: Builder, dims: Any) -> Any:
    """Elements that nobody has set yet, which are zeros here."""
    return computed(build, "Expand", build.constant(0, node["dtype"]), int64(build, dims))


@translates("Range")
def number_range(node: Node, build: Builder, start: Any, limit: Any, delta: Any) -> Any:
    """From a start to before a limit; steps of floating-point numbers are added up one by one, as in TensorFlow."""
    return computed(build, "Range", start, limit, delta)


@translates("LinSpace")
def linear(node: Node, build: Builder, start: Any, stop: Any, count: Any) -> Any:
    """As many numbers as asked for, both ends included."""
    many = scalar(build, vector(build, count))
    steps = build.op("Max", build.op("Sub", many, 1), 1)
    step = build.op("Div", build.op("Sub", stop, start), build.cast(steps, start.dtype))
    place = arange(build, many)
    value = build.op("Add", start, build.op("Mul", step, build.cast(place, start.dtype)))
    last = build.op("And", build.op("Equal", place, steps), build.op("Greater", many, 1))
    return build.op("Where", last, stop, value)


@translates("CheckNumericsV2", "DeepCopy", "DebugGradientIdentity", "Copy", "CopyHost", "GuaranteeConst")
def identity(node: Node, build: Builder, x: Any) -> Any:
    """What it is given."""
    return build.op("Identity", x)


@translates("DataFormatDimMap")
def moved_axis(node: Node, build: Builder, x: Any) -> Any:
    """An axis of one layout in another."""
    source, target = node["src_format"], node["dst_format"]
    places = build.constant(np.array([target.index(letter) for letter in source], x.dtype.numpy()))
    return build.op("Gather", places, x)


@translates("DataFormatVecPermute")
def moved_sizes(node: Node, build: Builder, x: Any) -> Any:
    """Sizes of one layout, or of its spatial axes, in another."""
    source, target = node["src_format"], node["dst_format"]
    dims = node.shape(0)
    if not dims or dims[0] is None:
        node.refuse("takes sizes of which it is not known how many there are")
    if dims and dims[0] == len(source) - 2:
        spatial = [letter for letter in source if letter not in "NC"]
        order = [spatial.index(letter) for letter in target if letter not in "NC"]
    else:
        order = [source.index(letter) for letter in target]
    return build.op("Gather", x, np.array(order))


@translates("EnsureShape")
def ensure_shape(node: Node, build: Builder, x: Any) -> Any:
    """What TensorFlow checks is stated."""
    return build.op("Identity", x)
