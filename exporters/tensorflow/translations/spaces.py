"""Blocks of space moved into batches or channels, padding, and patches."""

from __future__ import annotations

from typing import Any

import numpy as np

from entrepot.exporters.building import Builder
from entrepot.exporters.tensorflow.node import Node
from entrepot.exporters.tensorflow.numeric import computed, number
from entrepot.exporters.tensorflow.sizes import int64, joined, known, part, rank_of, reshaped, scalar, transposed
from entrepot.exporters.tensorflow.table import translates


@translates("Pad", "PadV2", "MirrorPad")
def pad(node: Node, build: Builder, x: Any, paddings: Any, value: Any = None) -> Any:
    """A value around a tensor, or its own elements mirrored."""
    if not rank_of(node):
        return build.op("Identity", x)
    pads = build.op("Reshape", build.op("Transpose", int64(build, paddings), perm=[1, 0]), [-1])
    if node.op == "MirrorPad":
        return _mirrored(node, build, x, pads)
    return computed(build, "Pad", x, pads, value if value is not None else number(build, 0, x), mode="constant")


def _mirrored(node: Node, build: Builder, x: Any, pads: Any) -> Any:
    """Symmetric mirrors repeat the edge, which ONNX's operator does not: rows are gathered by their distance."""
    if node["mode"] == "REFLECT":
        return computed(build, "Pad", x, pads, mode="reflect")
    rank = rank_of(node)
    for axis in range(rank):
        given = node.constant(1)
        if given is not None and not np.any(given[axis]):
            continue
        before, after = (scalar(build, part(build, pads, at, at + 1, 0)) for at in (axis, axis + rank))
        count = build.size(x, axis)
        place = build.op("Range", build.op("Neg", before), build.op("Add", count, after), 1)
        place = build.op("Where", build.op("Less", place, 0), build.op("Sub", -1, place), place)
        over = build.op("GreaterOrEqual", place, count)
        turned = build.op("Sub", build.op("Sub", build.op("Mul", count, 2), 1), place)
        x = build.op("Gather", x, build.op("Where", over, turned, place), axis=axis)
    return build.op("Identity", x)


@translates("SpaceToBatchND")
def space_to_batch(node: Node, build: Builder, x: Any, block: Any, paddings: Any) -> Any:
    """Every n-th element in each direction becomes a member of the batch."""
    sizes = [int(each) for each in known(node, 1)]
    return _into_batch(node, build, x, sizes, int64(build, paddings))


@translates("SpaceToBatch")
def space_to_batch_2d(node: Node, build: Builder, x: Any, paddings: Any) -> Any:
    """The same of images."""
    return _into_batch(node, build, x, [node["block_size"]] * 2, int64(build, paddings))


def _into_batch(node: Node, build: Builder, x: Any, block: list[int], paddings: Any) -> Any:
    rank, count = rank_of(node), len(block)
    around = build.op("Transpose", paddings, perm=[1, 0])
    left, right = (build.op("Reshape", part(build, around, at, at + 1, 0), [-1]) for at in (0, 1))
    others = [0] * (rank - count - 1)
    pads = joined(build, [0], left, others, [0], right, others)
    whole = computed(build, "Pad", x, pads, number(build, 0, x), mode="constant")
    pieces: list[Any] = [build.shape(x, 0, 1)]
    sizes = [build.op("Div", build.op("Shape", whole, start=at, end=at + 1), [by]) for at, by in enumerate(block, 1)]
    for size, by in zip(sizes, block, strict=True):
        pieces += [size, [by]]
    rest = build.shape(x, count + 1)
    split = reshaped(build, whole, *pieces, rest)
    order = [*range(2, 2 * count + 1, 2), 0, *range(1, 2 * count, 2), *range(2 * count + 1, rank + count)]
    turned = build.op("Transpose", split, perm=order)
    batch = build.op("Mul", build.shape(x, 0, 1), [int(np.prod(block))])
    return reshaped(build, turned, batch, *sizes, rest)


@translates("BatchToSpaceND")
def batch_to_space(node: Node, build: Builder, x: Any, block: Any, crops: Any) -> Any:
    """The inverse, with edges cut off."""
    return _out_of_batch(node, build, x, [int(each) for each in known(node, 1)], int64(build, crops))


@translates("BatchToSpace")
def batch_to_space_2d(node: Node, build: Builder, x: Any, crops: Any) -> Any:
    """The same of images."""
    return _out_of_batch(node, build, x, [node["block_size"]] * 2, int64(build, crops))


def _out_of_batch(node: Node, build: Builder, x: Any, block: list[int], crops: Any) -> Any:
    rank, count = rank_of(node), len(block)
    batch = build.op("Div", build.shape(x, 0, 1), [int(np.prod(block))])
    split = reshaped(build, x, block, batch, build.shape(x, 1))
    order = [count]
    for axis in range(count):
        order += [count + 1 + axis, axis]
    turned = build.op("Transpose", split, perm=[*order, *range(2 * count + 1, rank + count)])
    sizes = build.op("Mul", build.shape(x, 1, count + 1), block)
    whole = reshaped(build, turned, batch, sizes, build.shape(x, count + 1))
    around = build.op("Transpose", crops, perm=[1, 0])
    start, end = (build.op("Reshape", part(build, around, at, at + 1, 0), [-1]) for at in (0, 1))
    return build.op("Slice", whole, start, build.op("Sub", sizes, end), list(range(1, count + 1)))


@translates("SpaceToDepth", "DepthToSpace")
def depth(node: Node, build: Builder, x: Any) -> Any:
    """Blocks as channels, in the order of TensorFlow, and back."""
    size, layout = node["block_size"], node["data_format"]
    if layout == "NCHW_VECT_C":
        node.refuse("keeps channels in fours")
    channels = 3 if layout == "NHWC" else 1
    x = x if channels == 3 else transposed(build, x, [0, 2, 3, 1])
    n, h, w, c = (build.shape(x, at, at + 1) for at in range(4))
    if node.op == "SpaceToDepth":
        split = reshaped(build, x, n, build.op("Div", h, [size]), [size], build.op("Div", w, [size]), [size], c)
        turned = build.op("Transpose", split, perm=[0, 1, 3, 2, 4, 5])
        shape = [n, build.op("Div", h, [size]), build.op("Div", w, [size]), build.op("Mul", c, [size * size])]
    else:
        rest = build.op("Div", c, [size * size])
        split = reshaped(build, x, n, h, w, [size, size], rest)
        turned = build.op("Transpose", split, perm=[0, 1, 3, 2, 4, 5])
        shape = [n, build.op("Mul", h, [size]), build.op("Mul", w, [size]), rest]
    result = reshaped(build, turned, *shape)
    return result if channels == 3 else build.op("Transpose", result, perm=[0, 3, 1, 2])
