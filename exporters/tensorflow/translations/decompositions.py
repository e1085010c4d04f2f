"""Eigenvalues of symmetric matrices, singular values, and exponentials of matrices.

Singular values come from Jacobi's rotations (see ``matrix_loops.orthogonalised``), eigenvalues are the singular values
of a matrix that is shifted until all of them are positive. The signs of vectors are free, and are not always
TensorFlow's: a graph that depends on them is found out by its proof.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from entrepot.exporters.building import Builder, typed
from entrepot.exporters.functions import matrix_loops as loops
from entrepot.exporters.tensorflow.node import Node
from entrepot.exporters.tensorflow.sizes import END, joined, part, rank_of
from entrepot.exporters.tensorflow.table import translates
from entrepot.exporters.tensorflow.translations.linear_algebra import identity_like, looped
from entrepot.exporters.tensorflow.translations.matrices import swapped

_ROUNDS = 14


@translates("MatrixExponential")
def exponential(node: Node, build: Builder, x: Any) -> Any:
    """The exponential of each matrix."""
    return build.cast(looped(build, loops.exponential, build.cast(x, np.float64)), x.dtype)


@translates("SelfAdjointEigV2", "BatchSelfAdjointEigV2")
def eigen(node: Node, build: Builder, x: Any) -> Any:
    """Eigenvalues, the smallest first, and vectors, from the lower triangle."""
    rank = rank_of(node)
    wide = build.cast(x, np.float64)
    lower = build.op("Trilu", wide, upper=0)
    strict = build.op("Trilu", wide, build.constant(np.array(-1)), upper=0)
    whole = build.op("Add", lower, swapped(build, strict, rank))
    bound = build.op("ReduceMax", build.op("ReduceSum", build.op("Abs", whole), [-1]), [-2])
    shifted = build.op("Add", whole, build.op("Mul", identity_like(build, wide), bound))
    sizes, order, _, vectors = _decomposed(build, shifted, rank, largest=0)
    values = build.cast(build.op("Sub", sizes, build.op("Squeeze", bound, [-1])), x.dtype)
    if not node["compute_v"]:
        return values, build.constant(np.zeros(0, x.dtype.numpy()))
    return values, build.cast(_columns(build, vectors, order, build.shape(x, -1)), x.dtype)


@translates("Svd", "BatchSvd")
def singular_values(node: Node, build: Builder, x: Any) -> Any:
    """The singular values, the largest first, U and V; of a matrix and its transpose the one with more rows."""
    rank, shape = rank_of(node), node.shape(0) or ()
    rows, columns = shape[-2:]
    wide = build.cast(x, np.float64)
    if rows is None or columns is None:
        tall = build.op("GreaterOrEqual", build.size(x, -2), build.size(x, -1))
    else:
        tall = rows >= columns
    matrix = _either(build, tall, wide, swapped(build, wide, rank))
    sizes, order, parts, vectors = _decomposed(build, matrix, rank, largest=1)
    values = build.cast(sizes, x.dtype)
    if not node["compute_uv"]:
        nothing = build.constant(np.zeros(0, x.dtype.numpy()))
        return values, nothing, nothing
    across = build.op("Unsqueeze", sizes, [-2])
    safe = build.op("Where", build.op("Equal", across, 0.0), build.constant(np.array(1.0)), across)
    left = build.op("Div", _columns(build, parts, order, build.op("Shape", parts, start=-2, end=-1)), safe)
    right = _columns(build, vectors, order, build.op("Shape", order, start=-1))
    if node["full_matrices"] and (rows is None or rows != columns):
        left = _completed(build, left)
    first, second = _either(build, tall, left, right), _either(build, tall, right, left)
    return values, build.cast(first, x.dtype), build.cast(second, x.dtype)


def _either(build: Builder, condition: Any, one: ir.Value, other: ir.Value) -> ir.Value:
    """One of two matrices, by what is known, or by what the graph finds out."""
    if isinstance(condition, bool):
        return one if condition else other
    branches = [build.body(name).graph([value]) for name, value in (("then", one), ("else", other))]
    result: ir.Value = build.op("If", condition, then_branch=branches[0], else_branch=branches[1])
    return typed(result, one.dtype, None if one.shape is None else [None] * len(one.shape))


def _decomposed(build: Builder, matrix: Any, rank: int, *, largest: int) -> tuple[Any, Any, Any, Any]:
    """Singular values in order, where they are, and what was rotated into what."""
    count = build.op("Shape", matrix, start=-1)
    odd = build.op("Mod", count, [2])
    padded = build.op("Pad", matrix, joined(build, [0] * (2 * rank - 1), odd), mode="constant")
    both = looped(build, loops.orthogonalised, padded, rounds=_ROUNDS)
    rows = build.op("Shape", matrix, start=-2, end=-1)
    parts = part(build, both, 0, rows, -2)
    vectors = part(build, both, rows, END, -2)
    sizes = build.op("Sqrt", build.op("ReduceSumSquare", parts, [-2], keepdims=0))
    padding = build.op("ReduceSum", part(build, vectors, -1, END, -2), [-2], keepdims=0)
    added = build.op("And", build.op("Equal", padding, 1.0), build.cast(odd, np.bool_))
    sizes = build.op("Where", added, build.constant(np.array(-1.0 if largest else np.inf)), sizes)
    values, order = build.op("TopK", sizes, count, outputs=2, axis=-1, largest=largest)
    return values, order, parts, vectors


def _columns(build: Builder, matrix: Any, order: Any, rows: Any) -> Any:
    """The first rows of some columns, in order."""
    shape = joined(build, build.op("Shape", order, end=-1), rows, build.op("Shape", order, start=-1))
    index = build.op("Expand", build.op("Unsqueeze", order, [-2]), shape)
    return build.op("GatherElements", part(build, matrix, 0, rows, -2), index, axis=-1)


def _completed(build: Builder, left: Any) -> Any:
    """Orthogonal columns, with others added until there are as many as rows."""
    whole = looped(build, loops.reflected, left)
    rows, columns = build.op("Shape", left, start=-2, end=-1), build.op("Shape", left, start=-1)
    factors = build.op("Gather", whole, build.constant(np.array(-1)), axis=-2)
    factors = part(build, factors, 0, build.op("Min", rows, columns), -1)
    packed = part(build, whole, 0, rows, -2)
    square = build.op("EyeLike", build.op("ConstantOfShape", joined(build, rows, rows)))
    wide = build.op(
        "Expand", build.cast(square, np.float64), joined(build, build.op("Shape", left, end=-2), rows, rows)
    )
    rest = looped(build, loops.reflections_of, packed, factors, wide, backwards=1)
    return build.op("Concat", left, part(build, rest, columns, END, -1), axis=-1)
