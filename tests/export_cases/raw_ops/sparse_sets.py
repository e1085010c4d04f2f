"""Sparse tensors joined, cut, compared and reduced."""

from __future__ import annotations

import itertools

import numpy as np

from tests.export_cases.raw_ops.case import add, ints, normal, whole


def _sparse(*places, shape=(4, 5), kind=np.float32):
    index = np.array(places, np.int64).reshape(-1, len(shape))
    return index, whole(-5, 6, len(index), kind), np.array(shape, np.int64)


ONE = _sparse((0, 1), (0, 3), (1, 0), (2, 4), (3, 2))
TWO = _sparse((0, 0), (0, 3), (1, 2), (2, 4), (3, 1), (3, 4))
NONE = _sparse()
WIDE = _sparse((0, 0, 1), (0, 2, 3), (1, 0, 0), (1, 0, 2), (1, 2, 1), shape=(2, 3, 4))
SIDES = ("{}_indices", "{}_values", "{}_shape")


def _named(pattern, first, second):
    return {
        each.format(name): array
        for name, parts in (("a", first), ("b", second))
        for each, array in zip(pattern, parts, strict=True)
    }


for first, second in ((ONE, TWO), (TWO, ONE), (ONE, NONE)):
    for least in (0.0, 3.0):
        add("SparseAdd", **_named(SIDES, first, second), thresh=np.float32(least))
    for op in ("SparseSparseMaximum", "SparseSparseMinimum"):
        add(op, **_named(SIDES, first, second))
for axis in (0, 1, -1):
    parts = {
        name: list(arrays)
        for name, arrays in zip(("indices", "values", "shapes"), zip(ONE, TWO, strict=True), strict=True)
    }
    add("SparseConcat", {"concat_dim": axis}, closed="shapes", **parts)
for start, size in (((0, 1), (2, 3)), ((1, 0), (9, 9)), ((0, 0), (4, 5))):
    where = {"start": np.array(start, np.int64), "size": np.array(size, np.int64)}
    add("SparseSlice", **dict(zip(("indices", "values", "shape"), TWO, strict=True)), **where)
for axis, count in itertools.product((0, 1), (2, 3)):
    add(
        "SparseSplit", {"num_split": count}, "split_dim", closed="shape",
        **dict(zip(("indices", "values", "shape"), TWO, strict=True)), split_dim=np.array(axis, np.int64),
    )  # fmt: skip
for given in (ONE, TWO, WIDE):
    add("SparseSoftmax", **dict(zip(("sp_indices", "sp_values", "sp_shape"), given, strict=True)))
for (given, axes), keep in itertools.product(((ONE, [0]), (TWO, [1]), (WIDE, [0, 2]), (WIDE, [-1])), (False, True)):
    for op in ("SparseReduceSumSparse", "SparseReduceMaxSparse"):
        add(
            op, {"keep_dims": keep}, "reduction_axes", closed="input_shape",
            **dict(zip(("input_indices", "input_values", "input_shape"), given, strict=True)),
            reduction_axes=ints(axes),
        )  # fmt: skip
UNION = np.array(sorted({*map(tuple, ONE[0].tolist()), *map(tuple, TWO[0].tolist())}), np.int64)
add("SparseAddGrad", backprop_val_grad=normal(len(UNION)), a_indices=ONE[0], b_indices=TWO[0], sum_indices=UNION)
add(
    "SparseSliceGrad", backprop_val_grad=normal(2), input_indices=TWO[0], input_start=np.array([2, 1], np.int64),
    output_indices=np.array([[0, 3], [1, 3]], np.int64),
)  # fmt: skip
add("SparseFillEmptyRowsGrad", reverse_index_map=np.array([0, 2, 3], np.int64), grad_values=normal(6))
