"""Inverses, determinants, systems of equations and factorisations, by loops, for any size."""

from __future__ import annotations

from typing import Any

import numpy as np

from entrepot.exporters.building import Builder
from entrepot.exporters.functions import matrix_loops as loops
from entrepot.exporters.tensorflow.node import Node
from entrepot.exporters.tensorflow.numeric import number
from entrepot.exporters.tensorflow.sizes import END, arange, joined, part, rank_of
from entrepot.exporters.tensorflow.table import translates
from entrepot.exporters.tensorflow.translations.matrices import swapped


@translates("Cholesky", "BatchCholesky")
def cholesky(node: Node, build: Builder, x: Any) -> Any:
    """L with L @ L' = x."""
    return looped(build, loops.lower_root, x)


@translates("MatrixInverse", "BatchMatrixInverse")
def inverse(node: Node, build: Builder, x: Any) -> Any:
    """Of the matrix, or of its transpose."""
    given = swapped(build, x, rank_of(node)) if node["adjoint"] else x
    return looped(build, loops.solved, given, identity_like(build, x))


@translates("MatrixSolve", "BatchMatrixSolve")
def solve(node: Node, build: Builder, matrix: Any, right: Any) -> Any:
    """X with matrix @ X = right."""
    given = swapped(build, matrix, rank_of(node)) if node["adjoint"] else matrix
    return looped(build, loops.solved, given, right)


@translates("MatrixTriangularSolve", "BatchMatrixTriangularSolve")
def triangular_solve(node: Node, build: Builder, matrix: Any, right: Any) -> Any:
    """The same where one triangle counts, which ranks may differ in."""
    rank, lower = rank_of(node), node["lower"]
    if node["adjoint"]:
        matrix, lower = swapped(build, matrix, rank), not lower
    together = _together(build, matrix, right)
    return looped(build, loops.substituted, *together, upper=int(not lower), unit=0)


def looped(build: Builder, function: Any, value: Any, *others: Any, **attributes: Any) -> Any:
    """A call of a loop, whose result is of the type of its first operand."""
    result = build.call(function, value, *others, **attributes)
    result.type = value.type
    return result


def _together(build: Builder, matrix: Any, right: Any) -> tuple[Any, Any]:
    """Both with all batch axes of either."""
    dims = [None if each.shape is None else list(each.shape)[:-2] for each in (matrix, right)]
    if dims[0] == dims[1] and dims[0] is not None:
        return matrix, right
    batch = build.op("Shape", build.op("MatMul", matrix, right), end=-2)
    wide = [build.op("Expand", each, joined(build, batch, build.shape(each, -2))) for each in (matrix, right)]
    return wide[0], wide[1]


@translates("MatrixDeterminant", "BatchMatrixDeterminant")
def determinant(node: Node, build: Builder, x: Any) -> Any:
    """The product of the pivots, with the sign of their order."""
    pivots, sign = _pivots(build, x)
    return build.op("Mul", sign, build.op("ReduceProd", pivots, [-1], keepdims=0))


@translates("LogMatrixDeterminant")
def log_determinant(node: Node, build: Builder, x: Any) -> Any:
    """Sign and logarithm of the absolute determinant."""
    pivots, sign = _pivots(build, x)
    signs = build.op("ReduceProd", build.op("Sign", pivots), [-1], keepdims=0)
    size = build.op("ReduceSum", build.op("Log", build.op("Abs", pivots)), [-1], keepdims=0)
    return build.op("Mul", sign, signs), size


@translates("Lu")
def lu(node: Node, build: Builder, x: Any) -> Any:
    """L and U in one matrix, and where each row comes from."""
    packed, order = _factorised(build, x)
    rows = looped(build, loops.permutation, order, build.size(x, -2))
    return packed, build.cast(rows, node["output_idx_type"])


@translates("Qr")
def qr(node: Node, build: Builder, x: Any) -> Any:
    """Q and R with x = Q @ R."""
    whole = looped(build, loops.reflected, x)
    rows, columns = build.shape(x, -2, -1), build.shape(x, -1)
    least = build.op("Min", rows, columns)
    packed = build.op("Slice", whole, [0], rows, [-2])
    noted = build.op("Gather", whole, build.constant(np.array(-1)), axis=-2)
    factors = part(build, noted, 0, least, -1)
    triangle = build.op("Trilu", packed, upper=1)
    across = rows if node["full_matrices"] else least
    unit = _eye(build, x, rows, across)
    q = looped(build, loops.reflections_of, packed, factors, unit, backwards=1)
    return q, triangle if node["full_matrices"] else part(build, triangle, 0, least, -2)


def _factorised(build: Builder, x: Any) -> tuple[Any, Any]:
    whole = looped(build, loops.factorised, x)
    columns = build.shape(x, -1)
    end = build.op("Min", build.shape(x, -2, -1), columns)
    noted = build.op("Gather", whole, build.constant(np.array(-1)), axis=-1)
    return part(build, whole, 0, columns, -1), build.cast(part(build, noted, 0, end, -1), np.int64)


def _pivots(build: Builder, x: Any) -> tuple[Any, Any]:
    """The diagonal of U, and -1 for an odd number of exchanges."""
    packed, order = _factorised(build, x)
    count = build.size(x, -1)
    index = arange(build, count)
    here = build.op("Equal", build.op("Unsqueeze", index, [1]), index)
    pivots = build.op("ReduceSum", build.op("Where", here, packed, number(build, 0, x)), [-1], keepdims=0)
    moved = build.op("Not", build.op("Equal", order, index))
    odd = build.op("Mod", build.op("ReduceSum", build.cast(moved, np.int64), [-1], keepdims=0), 2)
    return pivots, build.cast(build.op("Sub", 1, build.op("Mul", odd, 2)), x.dtype)


def identity_like(build: Builder, x: Any) -> Any:
    """Unit matrices of the same size."""
    return _eye(build, x, build.shape(x, -2, -1), build.shape(x, -1))


def _eye(build: Builder, x: Any, rows: Any, columns: Any) -> Any:
    first, second = (arange(build, build.op("Squeeze", each)) for each in (rows, columns))
    unit = build.cast(build.op("Equal", build.op("Unsqueeze", first, [1]), second), x.dtype)
    return build.op("Expand", unit, joined(build, build.shape(x, 0, -2), rows, columns))


@translates("TridiagonalMatMul")
def tridiagonal_product(node: Node, build: Builder, above: Any, middle: Any, below: Any, right: Any) -> Any:
    """Each row with its neighbours."""
    rank = rank_of(node, 3)
    before, after = [0] * (2 * rank), [0] * (2 * rank)
    after[rank - 2], before[2 * rank - 2] = 1, 1
    down = build.op("Pad", part(build, right, 0, -1, -2), after, mode="constant")
    up = build.op("Pad", part(build, right, 1, END, -2), before, mode="constant")
    terms = [
        build.op("Mul", build.op("Reshape", each, joined(build, build.shape(right, 0, -2), [-1, 1])), rows)
        for each, rows in ((above, up), (middle, right), (below, down))
    ]
    return build.op("Add", build.op("Add", terms[2], terms[1]), terms[0])
