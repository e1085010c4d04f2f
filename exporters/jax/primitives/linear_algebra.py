"""Factorisations of matrices and systems of equations, by the loops of ``functions.matrix_loops``, for any size."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from entrepot.exporters.functions.matrix_loops import (
    factorised,
    lower_root,
    orthogonalised,
    permutation,
    reflected,
    reflections_of,
    substituted,
)
from entrepot.exporters.jax.step import Step, kind_of
from entrepot.exporters.jax.table import rule

_LAST = 2**62
_ROUNDS = 14


@rule("cholesky")
def cholesky(step: Step, x: ir.Value) -> ir.Value:
    """L with L @ L' = x."""
    return step.build.call(lower_root, x)


@rule("triangular_solve")
def triangular_solve(step: Step, a: ir.Value, b: ir.Value) -> ir.Value:
    """X with a @ X = b, or X @ a = b, where one triangle of a counts, perhaps of its transpose."""
    upper, left = not step.params["lower"], step.params["left_side"]
    if step.params["transpose_a"] == left:
        a, upper = turned(step, a), not upper
    right = b if left else turned(step, b)
    found = step.build.call(substituted, a, right, upper=int(upper), unit=int(step.params["unit_diagonal"]))
    return found if left else turned(step, found)


def turned(step: Step, x: ir.Value) -> ir.Value:
    """Matrices with their last two axes exchanged; all values of an equation have the same number of axes."""
    rank = len(step.ins[0].shape)
    return step.transposed(x, [*range(rank - 2), rank - 1, rank - 2])


@rule("lu")
def lu(step: Step, x: ir.Value) -> list[ir.Value]:
    """L and U in one matrix, the rows that were exchanged, and the order that they come to have."""
    packed = step.build.call(factorised, x)
    whole = step.op("Slice", packed, [0], [-1], [-1])
    column = step.op("Gather", packed, np.array(-1, np.int64), axis=-1)
    count = step.sizes.vector([step.outs[1].shape[-1]])
    pivots = step.build.cast(step.op("Slice", column, [0], count, [-1]), np.int64)
    order = step.build.call(permutation, pivots, step.sizes.value(step.ins[0].shape[-2]))
    return [whole, step.build.cast(pivots, np.int32), step.build.cast(order, np.int32)]


@rule("geqrf")
def geqrf(step: Step, x: ir.Value) -> list[ir.Value]:
    """Householder's reflections in one matrix, and their factors."""
    found = step.build.call(reflected, x)
    factors = step.op("Gather", found, np.array(-1, np.int64), axis=-2)
    count = step.sizes.vector([step.outs[1].shape[-1]])
    return [step.op("Slice", found, [0], [-1], [-2]), step.op("Slice", factors, [0], count, [-1])]


@rule("householder_product")
def householder_product(step: Step, packed: ir.Value, factors: ir.Value) -> ir.Value:
    """The first columns of the product of reflections."""
    return step.build.call(
        reflections_of, packed, factors, _identity(step, step.outs[0].shape, step.dtype), backwards=1
    )


@rule("qr")
def qr(step: Step, x: ir.Value) -> list[ir.Value]:
    """Q and R."""
    if step.params.get("pivoting"):
        raise step.unsupported("with pivots", "factorise without them: pivoting=False")
    rows, columns = step.ins[0].shape[-2:]
    found = step.build.call(reflected, x)
    packed = step.op("Slice", found, [0], [-1], [-2])
    factors = step.op("Gather", found, np.array(-1, np.int64), axis=-2)
    factors = step.op(
        "Slice", factors, [0], step.op("Min", *(step.sizes.vector([each]) for each in (rows, columns))), [-1]
    )
    first = step.build.call(
        reflections_of, packed, factors, _identity(step, step.outs[0].shape, step.dtype), backwards=1
    )
    upper = step.op("Slice", step.op("Trilu", packed, upper=1), [0], step.sizes.vector([step.outs[1].shape[-2]]), [-2])
    return [first, upper]


def _identity(step: Step, shape: Any, dtype: Any) -> ir.Value:
    """Ones on the diagonal of matrices of a shape."""
    flat = step.filled(shape[-2:], 0, np.float32)
    return step.expanded(step.build.cast(step.op("EyeLike", flat), kind_of(dtype)), shape)


@rule("eigh")
def eigh(step: Step, x: ir.Value) -> list[ir.Value]:
    """Vectors and values of symmetric matrices, the smallest first: singular ones of what is shifted to be positive."""
    if step.params.get("subset_by_index") not in (None, (0, step.ins[0].shape[-1])):
        raise step.unsupported("of some eigenvalues only", "take all of them, and a slice")
    wide = step.build.cast(x, np.float64)
    lower = step.op("Trilu", wide, upper=0)
    upper = step.op("Trilu", wide, upper=1)
    strict = step.op("Sub", wide, upper if step.params["lower"] else lower)
    whole = step.op("Add", lower if step.params["lower"] else upper, turned(step, strict))
    bound = step.op("ReduceMax", step.op("ReduceSum", step.op("Abs", whole), [-1], keepdims=1), [-2], keepdims=1)
    shifted = step.op("Add", whole, step.op("Mul", _identity(step, step.ins[0].shape, np.float64), bound))
    sizes, order, _, vectors = _decomposed(step, shifted, step.ins[0].shape[-1], largest=0)
    values = step.op("Sub", sizes, step.op("Squeeze", bound, [-1]))
    own = _columns(step, vectors, order, step.sizes.vector([step.ins[0].shape[-1]]))
    return [step.build.cast(each, x.dtype) for each in (own, values)]


@rule("svd")
def svd(step: Step, x: ir.Value) -> list[ir.Value]:
    """Singular values, the largest first, and both sets of vectors; of x and x', what has more rows is taken apart."""
    rows, columns = step.ins[0].shape[-2:]
    is_tall = not (isinstance(rows, int) and isinstance(columns, int) and rows < columns)
    wide = step.build.cast(x, np.float64)
    sizes, order, parts, vectors = _decomposed(
        step, wide if is_tall else turned(step, wide), columns if is_tall else rows, largest=1
    )
    if not step.params["compute_uv"]:
        return [step.build.cast(sizes, x.dtype)]
    across = step.op("Unsqueeze", sizes, [-2])
    safe = step.op("Where", step.op("Equal", across, 0.0), step.number(1, across), across)
    left = step.op("Div", _columns(step, parts, order, step.sizes.vector([rows if is_tall else columns])), safe)
    right = _columns(step, vectors, order, step.sizes.vector([columns if is_tall else rows]))
    if step.params["full_matrices"] and str(rows) != str(columns):
        left = _completed(step, left, rows if is_tall else columns)
    first, second = (left, right) if is_tall else (right, left)
    return [step.build.cast(each, x.dtype) for each in (sizes, first, turned(step, second))]


def _decomposed(
    step: Step, matrix: ir.Value, count: Any, *, largest: int
) -> tuple[ir.Value, ir.Value, ir.Value, ir.Value]:
    """Singular values in order, where they are, and what was rotated into what."""
    number = step.sizes.vector([count])
    odd = step.op("Mod", number, np.array([2], np.int64))
    pads = step.op("Concat", np.zeros(2 * len(step.ins[0].shape) - 1, np.int64), odd, axis=0)
    both = step.build.call(orthogonalised, step.op("Pad", matrix, pads), rounds=_ROUNDS)
    rows = step.build.shape(matrix, -2, -1)
    parts = step.op("Slice", both, [0], rows, [-2])
    vectors = step.op("Slice", both, rows, [_LAST], [-2])
    sizes = step.op("Sqrt", step.op("ReduceSumSquare", parts, [-2], keepdims=0))
    padding = step.op("ReduceSum", step.op("Slice", vectors, [-1], [_LAST], [-2]), [-2], keepdims=0)
    added = step.op("And", step.op("Equal", padding, np.float64(1)), step.build.cast(odd, np.bool_))
    last = step.number(-1.0 if largest else np.inf, sizes)
    values, order = step.op("TopK", step.op("Where", added, last, sizes), number, outputs=2, axis=-1, largest=largest)
    return values, order, parts, vectors


def _columns(step: Step, matrix: ir.Value, order: ir.Value, rows: ir.Value) -> ir.Value:
    """The first rows of some columns, in order."""
    shape = step.op("Concat", step.op("Shape", order, end=-1), rows, step.op("Shape", order, start=-1), axis=0)
    part = step.op("Slice", matrix, [0], rows, [-2])
    places = step.op("Expand", step.op("Unsqueeze", order, [-2]), shape)
    result: ir.Value = step.op("GatherElements", part, places, axis=-1)
    return result


def _completed(step: Step, left: ir.Value, rows: Any) -> ir.Value:
    """Orthogonal columns, with others added until there are as many as rows."""
    found = step.build.call(reflected, left)
    packed = step.op("Slice", found, [0], [-1], [-2])
    factors = step.op("Gather", found, np.array(-1, np.int64), axis=-2)
    count = step.build.shape(left, -1)
    factors = step.op("Slice", factors, [0], step.op("Min", step.sizes.vector([rows]), count), [-1])
    wide = _identity(step, [*step.ins[0].shape[:-2], rows, rows], np.float64)
    whole = step.build.call(reflections_of, packed, factors, wide, backwards=1)
    rest = step.op("Slice", whole, count, [_LAST], [-1])
    result: ir.Value = step.op("Concat", left, rest, axis=-1)
    return result
