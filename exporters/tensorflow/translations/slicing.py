"""Parts of tensors, and tensors of parts."""

from __future__ import annotations

from typing import Any

import numpy as np

from entrepot.exporters.building import Builder
from entrepot.exporters.tensorflow.flow.variables import Handle
from entrepot.exporters.tensorflow.node import Node
from entrepot.exporters.tensorflow.numeric import computed
from entrepot.exporters.tensorflow.sizes import (
    END,
    arange,
    axes_of,
    int64,
    integers,
    joined,
    known,
    part,
    rank_of,
    scalar,
    transposed,
)
from entrepot.exporters.tensorflow.strides import Strides
from entrepot.exporters.tensorflow.table import translates


@translates("StridedSlice")
def strided_slice(node: Node, build: Builder, x: Any, begin: Any, end: Any, strides: Any) -> Any:
    """Slices along some axes, single elements, new axes, and all that an ellipsis stands for."""
    return Strides.of(node, rank_of(node), known(node, 3)).sliced(build, x, begin, end)


@translates("TensorStridedSliceUpdate")
def strided_slice_update(node: Node, build: Builder, x: Any, begin: Any, end: Any, strides: Any, value: Any) -> Any:
    """Other elements where a slice would be taken."""
    return _replaced(node, build, x, rank_of(node), begin, end, value)


@translates("ResourceStridedSliceAssign", handles=True)
def strided_slice_assign(
    node: Node, build: Builder, handle: Handle, begin: Any, end: Any, strides: Any, value: Any
) -> Any:
    """The same in a variable."""
    shape = handle.place.shape
    if shape is None:
        node.refuse("writes to a variable of no known rank")
    return handle.assign(node, build, _replaced(node, build, handle.read(build), len(shape), begin, end, value))


def _replaced(node: Node, build: Builder, x: Any, rank: int, begin: Any, end: Any, value: Any) -> Any:
    from entrepot.exporters.tensorflow.sizes import reshaped

    count = build.op("Size", x)
    places = reshaped(build, build.op("Range", 0, count, 1), build.shape(x))
    spots = Strides.of(node, rank, known(node, 3)).sliced(build, places, begin, end)
    flat = build.op("Reshape", x, [-1])
    rows = build.op("Reshape", computed(build, "Expand", value, build.op("Shape", spots)), [-1])
    changed = build.op("ScatterElements", flat, build.op("Reshape", spots, [-1]), rows, axis=0)
    return reshaped(build, changed, build.shape(x))


@translates("Slice")
def slice_from(node: Node, build: Builder, x: Any, begin: Any, size: Any) -> Any:
    """A size of -1 is what is left."""
    rank = rank_of(node)
    if not rank:
        return build.op("Identity", x)
    first = int64(build, begin)
    sizes = node.constant(2)
    if sizes is not None and node.constant(1) is not None:
        ends = [
            END if int(many) == -1 else int(start + many) for start, many in zip(known(node, 1), sizes, strict=True)
        ]
        return build.op("Slice", x, first, ends, list(range(rank)))
    many = int64(build, size)
    ends = build.op("Where", build.op("Equal", many, -1), END, build.op("Add", first, many))
    return build.op("Slice", x, first, ends, list(range(rank)))


@translates("Split")
def split(node: Node, build: Builder, axis: Any, x: Any) -> Any:
    """In equal parts."""
    (at,) = axes_of(node, 0, rank_of(node, 1))
    return split_in(build, x, node["num_split"], axis=at, num_outputs=node["num_split"])


@translates("SplitV")
def split_by_sizes(node: Node, build: Builder, x: Any, sizes: Any, axis: Any) -> Any:
    """In parts of given sizes, of which one may be what is left."""
    (at,) = axes_of(node, 2, rank_of(node))
    many = int64(build, sizes)
    given = node.constant(1)
    if given is None or np.any(given == -1):
        whole = build.size(x, at)
        rest = build.op("Sub", whole, build.op("Add", build.op("ReduceSum", many, keepdims=0), 1))
        many = build.op("Where", build.op("Equal", many, -1), rest, many)
    return split_in(build, x, node["num_split"], many, axis=at)


def split_in(build: Builder, x: Any, count: int, *operands: Any, **attributes: Any) -> Any:
    """``Split``, into a tuple even of one."""
    parts = build.op("Split", x, *operands, outputs=count, **attributes)
    return parts if isinstance(parts, tuple) else (parts,)


@translates("Pack")
def pack(node: Node, build: Builder, *values: Any) -> Any:
    """Tensors along a new axis."""
    axis = node["axis"]
    return build.op("Concat", *(build.op("Unsqueeze", each, [axis]) for each in values), axis=axis)


@translates("ParallelConcat")
def stacked(node: Node, build: Builder, *values: Any) -> Any:
    """Tensors along the first axis."""
    return build.op("Concat", *values, axis=0)


@translates("Unpack")
def unpack(node: Node, build: Builder, x: Any) -> Any:
    """The parts along an axis, without it."""
    parts = split_in(build, x, node["num"], axis=node["axis"], num_outputs=node["num"]) if node["num"] else ()
    return tuple(build.op("Squeeze", each, [node["axis"]]) for each in parts)


@translates("ConcatV2")
def concat(node: Node, build: Builder, *values: Any) -> Any:
    """Tensors along an axis."""
    (axis,) = integers(node, len(values) - 1)
    return build.op("Concat", *values[:-1], axis=axis)


@translates("Concat")
def concat_along(node: Node, build: Builder, axis: Any, *values: Any) -> Any:
    """The same, the axis first."""
    return build.op("Concat", *values, axis=integers(node, 0)[0])


@translates("ConcatOffset")
def concat_offset(node: Node, build: Builder, axis: Any, *shapes: Any) -> Any:
    """Where each of several tensors begins in all of them together."""
    (at,) = integers(node, 0)
    here = build.cast(build.op("Equal", arange(build, build.size(shapes[0], 0)), at), shapes[0].dtype)
    offsets = [build.op("Sub", shapes[0], shapes[0])]
    for each in shapes[:-1]:
        offsets.append(build.op("Add", offsets[-1], build.op("Mul", each, here)))
    return tuple(offsets)


@translates("ReverseV2")
def reverse(node: Node, build: Builder, x: Any, axes: Any) -> Any:
    """Backwards along axes."""
    return backwards(build, x, axes_of(node, 1, rank_of(node)))


@translates("Reverse")
def reverse_marked(node: Node, build: Builder, x: Any, marks: Any) -> Any:
    """Backwards along the axes that are marked."""
    return backwards(build, x, [at for at, mark in enumerate(known(node, 1)) if mark])


def backwards(build: Builder, x: Any, axes: list[int]) -> Any:
    """The last element first."""
    if not axes:
        return build.op("Identity", x)
    count = len(axes)
    return build.op("Slice", x, [-1] * count, [-END] * count, axes, [-1] * count)


@translates("ReverseSequence")
def reverse_sequence(node: Node, build: Builder, x: Any, lengths: Any) -> Any:
    """The first elements of each sequence backwards."""
    rank, batch, time = rank_of(node), node["batch_dim"], node["seq_dim"]
    if {batch, time} == {0, 1}:
        return computed(build, "ReverseSequence", x, int64(build, lengths), batch_axis=batch, time_axis=time)
    order = [batch, time, *(axis for axis in range(rank) if axis not in (batch, time))]
    turned = transposed(build, x, order)
    result = computed(build, "ReverseSequence", turned, int64(build, lengths), batch_axis=0, time_axis=1)
    return transposed(build, result, list(np.argsort(order)))


@translates("Roll")
def roll(node: Node, build: Builder, x: Any, shift: Any, axis: Any) -> Any:
    """Around an axis, or several."""
    shifts = build.op("Reshape", int64(build, shift), [-1])
    for at, along in enumerate(axes_of(node, 2, rank_of(node))):
        whole = build.op("Max", build.size(x, along), 1)
        by = build.op("Mod", scalar(build, part(build, shifts, at, at + 1, 0)), whole)
        cut = joined(build, build.op("Reshape", build.op("Sub", whole, by), [-1]))
        pieces = part(build, x, cut, END, along), part(build, x, 0, cut, along)
        x = build.op("Concat", *pieces, axis=along)
    return build.op("Identity", x)
