"""Sparse tensors as their indices, values and shapes."""

from __future__ import annotations

from typing import Any

import numpy as np

from entrepot.exporters.building import Builder
from entrepot.exporters.tensorflow.node import Node
from entrepot.exporters.tensorflow.numeric import computed, number
from entrepot.exporters.tensorflow.sizes import int64, part, rank_of, scalar, vector
from entrepot.exporters.tensorflow.table import translates
from entrepot.exporters.tensorflow.translations.matrices import swapped
from entrepot.exporters.tensorflow.translations.scattering import scattered


@translates("SparseToDense")
def sparse_to_dense(node: Node, build: Builder, indices: Any, shape: Any, values: Any, default: Any) -> Any:
    """Values at their indices, another one elsewhere."""
    rank, whole = rank_of(node), computed(build, "Expand", default, int64(build, shape))
    index = int64(build, indices)
    if rank == 0:
        index = build.op("Reshape", index, [1, 1])
    elif rank == 1:
        index = build.op("Unsqueeze", index, [1])
    if not rank_of(node, 2):
        values = build.op("Expand", values, build.op("Shape", index, start=0, end=1))
    return scattered(build, whole, index, values, None)


@translates("SparseTensorDenseMatMul")
def sparse_product(node: Node, build: Builder, indices: Any, values: Any, shape: Any, dense: Any) -> Any:
    """A sparse matrix times another."""
    dense = swapped(build, dense, 2) if node["adjoint_b"] else dense
    rows, columns = (1, 0) if node["adjoint_a"] else (0, 1)
    index = int64(build, indices)
    source = build.op("Squeeze", part(build, index, columns, columns + 1, 1), [1])
    terms = computed(build, "Mul", build.op("Gather", dense, source, axis=0), build.op("Unsqueeze", values, [1]))
    height = build.op("Slice", int64(build, shape), [rows], [rows + 1])
    room = build.op("Concat", height, build.op("Shape", dense, start=1), axis=0)
    zeros = computed(build, "Expand", number(build, 0, dense), room)
    return scattered(build, zeros, part(build, index, rows, rows + 1, 1), terms, "add")


@translates("SparseTensorDenseAdd")
def sparse_sum(node: Node, build: Builder, indices: Any, values: Any, shape: Any, dense: Any) -> Any:
    """Added to a dense tensor."""
    return scattered(build, dense, int64(build, indices), values, "add")


@translates("SparseReshape")
def sparse_reshape(node: Node, build: Builder, indices: Any, old: Any, new: Any) -> Any:
    """The same elements in another shape."""
    count = build.op("ReduceProd", old, keepdims=1)
    rest = build.op("Neg", build.op("ReduceProd", new, keepdims=1))
    safe = build.op("Where", build.op("Equal", rest, 0), 1, rest)
    sizes = build.op("Where", build.op("Equal", new, -1), build.op("Div", count, safe), new)
    flat = build.op("ReduceSum", build.op("Mul", indices, _strides(build, old)), [1])
    steps = _strides(build, sizes)
    return build.op("Mod", build.op("Div", flat, steps), sizes), sizes


def _strides(build: Builder, sizes: Any) -> Any:
    """How many elements one step along each axis skips."""
    size = build.op("Shape", sizes)
    place = build.op("Range", 0, scalar(build, size), 1)
    later = build.op("Less", build.op("Unsqueeze", place, [1]), place)
    return build.op("ReduceProd", build.op("Where", later, sizes, 1), [1], keepdims=0)


@translates("SparseReorder")
def sparse_reorder(node: Node, build: Builder, indices: Any, values: Any, shape: Any) -> Any:
    """Row by row."""
    flat = build.op("ReduceSum", build.op("Mul", indices, _strides(build, shape)), [1], keepdims=0)
    _, order = build.op("TopK", flat, build.op("Shape", flat), outputs=2, axis=0, largest=0)
    return build.op("Gather", indices, order, axis=0), build.op("Gather", values, order, axis=0)


@translates("SparseDenseCwiseAdd", "SparseDenseCwiseMul", "SparseDenseCwiseDiv")
def sparse_elementwise(node: Node, build: Builder, indices: Any, values: Any, shape: Any, dense: Any) -> Any:
    """The stored values, each with the element of a dense tensor at its place."""
    wide = computed(build, "Expand", dense, int64(build, shape))
    other = build.op("GatherND", wide, int64(build, indices))
    return computed(build, node.op.removeprefix("SparseDenseCwise"), values, other)


@translates("SparseReduceSum", "SparseReduceMax")
def sparse_reduction(node: Node, build: Builder, indices: Any, values: Any, shape: Any, axes: Any) -> Any:
    """Of all that is not stored nothing counts to a sum."""
    if node.op == "SparseReduceMax":
        node.refuse("leaves out what is not stored")
    zeros = computed(build, "Expand", number(build, 0, values), int64(build, shape))
    whole = scattered(build, zeros, int64(build, indices), values, "add")
    keep = int(node["keep_dims"])
    return computed(build, "ReduceSum", whole, vector(build, axes), keepdims=keep)


@translates("SparseFillEmptyRows")
def fill_empty_rows(node: Node, build: Builder, indices: Any, values: Any, shape: Any, default: Any) -> Any:
    """A value in each row that has none, and which rows those were."""
    count = build.op("Slice", shape, [0], [1])
    rows = build.op("Squeeze", part(build, indices, 0, 1, 1), [1])
    filled = build.op("Expand", build.constant(np.array(0)), count)
    ones = build.op("Add", build.op("Mul", rows, 0), 1)
    filled = build.op("ScatterElements", filled, rows, ones, axis=0)
    empty = build.op("Equal", filled, 0)
    missing = build.op("Compress", build.op("Range", 0, scalar(build, count), 1), empty, axis=0)
    width = build.op("Sub", build.op("Shape", shape), [1])
    pads = build.op("Concat", build.constant(np.zeros(3, np.int64)), width, axis=0)
    added = build.op("Pad", build.op("Unsqueeze", missing, [1]), pads, mode="constant")
    whole = build.op("Concat", indices, added, axis=0)
    every = build.op("Concat", values, build.op("Expand", default, build.op("Shape", missing)), axis=0)
    first = build.op("Squeeze", part(build, whole, 0, 1, 1), [1])
    total = build.op("Shape", first)
    place = build.op("Range", 0, scalar(build, total), 1)
    key = build.op("Add", build.op("Mul", first, scalar(build, total)), place)
    _, order = build.op("TopK", key, total, outputs=2, axis=0, largest=0)
    back = build.op("ScatterElements", build.op("Mul", place, 0), order, place, axis=0)
    given = build.op("Slice", back, [0], build.op("Shape", rows))
    return build.op("Gather", whole, order, axis=0), build.op("Gather", every, order, axis=0), empty, given
