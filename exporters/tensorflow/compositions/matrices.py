"""Systems of equations, factors and roots of matrices."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from entrepot.exporters.tensorflow.composed import composed
from entrepot.exporters.tensorflow.node import Node

_ROUNDS = 24
"""Of an iteration that squares its error, from numbers of any size that float64 has use for."""


@composed("TridiagonalSolve")
def tridiagonal(node: Node, diagonals: Any, rhs: Any) -> tf.Tensor:
    """As a whole matrix of which three diagonals are given."""
    above, middle, below = (diagonals[..., at, :] for at in range(3))
    whole = tf.linalg.diag(middle) + _beside(above[..., :-1], 1) + _beside(below[..., 1:], -1)
    return tf.linalg.solve(whole, rhs)


def _beside(values: Any, offset: int) -> tf.Tensor:
    """A square matrix of one diagonal beside the main one."""
    square = tf.linalg.diag(values)
    sides = [[0, 1], [1, 0]] if offset > 0 else [[1, 0], [0, 1]]
    return tf.pad(square, [*[[0, 0]] * (len(square.shape) - 2), *sides])


@composed("BandedTriangularSolve")
def banded(node: Node, bands: Any, rhs: Any) -> tf.Tensor:
    """As a whole triangular matrix of which some diagonals are given."""
    count = bands.shape[-2]
    if count is None:
        node.refuse("has a number of diagonals that varies")
    lower = node["lower"]
    size = tf.shape(bands)[-1]
    rows, columns = tf.range(size)[:, None], tf.range(size)[None]
    whole = tf.zeros_like(bands[..., :1, :])
    for at in range(count):
        offset = -at if lower else count - 1 - at
        here = tf.cast(tf.equal(columns - rows, offset), bands.dtype)
        whole += here * bands[..., at, :, None]
    return tf.linalg.triangular_solve(whole, rhs, lower=lower, adjoint=node["adjoint"])


@composed("MatrixSolveLs")
def least_squares(node: Node, matrix: Any, rhs: Any, weight: Any) -> tf.Tensor:
    """By the equations of the smaller side, in float64."""
    rows, columns = matrix.shape[-2:]
    if rows is None or columns is None:
        node.refuse("takes matrices of which it is not known whether they have more rows or columns")
    wide, right = tf.cast(matrix, tf.float64), tf.cast(rhs, tf.float64)
    tall = rows >= columns
    square = tf.linalg.matmul(wide, wide, transpose_a=tall, transpose_b=not tall)
    if node["fast"]:  # the other way ignores the weight
        square += tf.cast(weight, tf.float64) * tf.eye(min(rows, columns), dtype=tf.float64)
    turned = tf.linalg.matmul(wide, right, transpose_a=True) if tall else right
    found = tf.linalg.solve(square, turned)
    return tf.cast(found if tall else tf.linalg.matmul(wide, found, transpose_a=True), matrix.dtype)


@composed("CholeskyGrad")
def of_cholesky(node: Node, lower: Any, dy: Any) -> tf.Tensor:
    """I. Murray, "Differentiation of the Cholesky decomposition" (2016), 4.2."""
    inner = tf.linalg.matmul(lower, tf.linalg.band_part(dy, -1, 0), adjoint_a=True)
    middle = tf.linalg.band_part(inner, -1, 0) - 0.5 * tf.linalg.diag(tf.linalg.diag_part(inner))
    left = tf.linalg.triangular_solve(lower, middle, adjoint=True)
    whole = tf.linalg.matrix_transpose(
        tf.linalg.triangular_solve(lower, tf.linalg.matrix_transpose(left), adjoint=True)
    )
    return 0.5 * (whole + tf.linalg.matrix_transpose(whole))


@composed("MatrixSquareRoot")
def square_root(node: Node, matrix: Any) -> tf.Tensor:
    """By Denman and Beavers' iteration, in its product form, with steps that are scaled."""
    wide = tf.cast(matrix, tf.float64)
    size = tf.shape(matrix)[-1]
    one = tf.eye(size, dtype=tf.float64)
    found, product = wide, wide
    for _ in range(_ROUNDS):
        inverse = tf.linalg.inv(product)
        found = 0.5 * tf.linalg.matmul(found, one + inverse)
        product = 0.5 * (one + 0.5 * (product + inverse))
    return tf.cast(found, matrix.dtype)
