"""Inverses, determinants, systems of equations and factorisations, by the loops of ``matrix_loops``, for any size.

What torch checks and ONNX cannot raise, such as a singular matrix, shows as infinities and NaNs.
"""

from __future__ import annotations

from typing import Any

import onnx_ir
import torch
from onnxscript import opset20

from entrepot.exporters.functions.matrix_loops import (
    factorised,
    lower_root,
    permutation,
    reflected,
    reflections_of,
    solved,
    substituted,
)

op: Any = opset20
aten = torch.ops.aten

_INT32, _INT64 = int(onnx_ir.DataType.INT32), int(onnx_ir.DataType.INT64)


def translate_inverse(A: Any, check_errors: bool = False) -> Any:
    """The solution of A @ X = I."""
    return solved(A, _identity(A)), _no_errors(A)


def translate_determinant(A: Any) -> Any:
    """The product of the pivots, with the sign of their order."""
    packed, order = _factorised(A)
    return op.Mul(_sign(order, A), op.ReduceProd(_diagonal(packed), _last(), keepdims=0)), packed, _as_pivots(order)


def translate_slogdet(A: Any) -> Any:
    """Sign and logarithm of the absolute determinant."""
    packed, order = _factorised(A)
    pivots = _diagonal(packed)
    sign = op.Mul(_sign(order, A), op.ReduceProd(op.Sign(pivots), _last(), keepdims=0))
    return sign, op.ReduceSum(op.Log(op.Abs(pivots)), _last(), keepdims=0), packed, _as_pivots(order)


def translate_solve(A: Any, B: Any, left: bool = True, check_errors: bool = False) -> Any:
    """X with A @ X = B, for matrices or vectors B, or with X @ A = B."""
    packed, order = _factorised(A)
    vectors = len(B.shape) == 1 or (len(B.shape) == len(A.shape) - 1 and list(B.shape) == list(A.shape[:-1]))
    right = _ranked(op.Unsqueeze(B, _last()), len(B.shape) + 1) if vectors else B
    if not left:
        A, right = _transposed(A), _transposed(right)
    solution = _ranked(solved(*_together(A, right)), max(len(A.shape), len(right.shape)))
    solution = solution if left else _transposed(solution)
    return op.Squeeze(solution, _last()) if vectors else solution, packed, _as_pivots(order), _no_errors(A)


def translate_lu_factor(A: Any, pivot: bool = True, check_errors: bool = False) -> Any:
    """L and U in one matrix, and LAPACK's pivots."""
    packed, order = _factorised(A)
    return packed, _as_pivots(order), _no_errors(A)


def translate_lu(A: Any, pivot: bool = True) -> Any:
    """P, L and U with A = P @ L @ U."""
    packed, order = _factorised(A)
    return (_permuting(order, A), *_triangles(packed, A))


def translate_lu_unpack(LU_data: Any, LU_pivots: Any, unpack_data: bool = True, unpack_pivots: bool = True) -> Any:
    """P, L and U from what ``lu_factor`` returns; empty where they are not asked for."""
    nothing = op.CastLike(op.ConstantOfShape(op.Constant(value_ints=[0])), LU_data)
    lower, upper = _triangles(LU_data, LU_data) if unpack_data else (nothing, nothing)
    return _permuting(_as_order(LU_pivots), LU_data) if unpack_pivots else nothing, lower, upper


def translate_lu_solve(LU: Any, pivots: Any, B: Any, left: bool = True, adjoint: bool = False) -> Any:
    """X with A @ X = B, X @ A = B, or the same for the transpose of A."""
    forward = left != adjoint
    right = B if left else _transposed(B)
    exchange = _rows_of_identity(_as_order(pivots), LU)
    if forward:
        right = _ranked(op.MatMul(exchange, right), max(len(LU.shape), len(right.shape)))
        right = _substituted(LU, right, upper=False, unit=True)
        solution = _substituted(LU, right, upper=True)
    else:
        turned = _transposed(LU)
        right = _substituted(turned, _substituted(turned, right, upper=False), upper=True, unit=True)
        solution = _ranked(op.MatMul(_transposed(exchange), right), len(right.shape))
    return solution if left else _transposed(solution)


def translate_solve_triangular(self: Any, B: Any, upper: bool, left: bool = True, unitriangular: bool = False) -> Any:
    """X with A @ X = B, or X @ A = B, where only one triangle of A counts."""
    if left:
        return _substituted(self, B, upper=upper, unit=unitriangular)
    turned = _substituted(_transposed(self), _transposed(B), upper=not upper, unit=unitriangular)
    return _transposed(turned)


def translate_triangular_solve(
    self: Any, A: Any, upper: bool = True, transpose: bool = False, unitriangular: bool = False
) -> Any:
    """The same by its old name, with A or its transpose."""
    matrix, upwards = (_transposed(A), not upper) if transpose else (A, upper)
    return _substituted(matrix, self, upper=upwards, unit=unitriangular), op.Identity(A)


def translate_cholesky_ex(self: Any, upper: bool = False, check_errors: bool = False) -> Any:
    """L with L @ L' = A; for the upper triangle L'."""
    return translate_cholesky(self, upper), _no_errors(self)


def translate_cholesky(self: Any, upper: bool = False) -> Any:
    """The same without a status."""
    return _transposed(_ranked(lower_root(_transposed(self)), len(self.shape))) if upper else lower_root(self)


def translate_cholesky_solve(self: Any, input2: Any, upper: bool = False) -> Any:
    """X with L @ L' @ X = B."""
    lower = _transposed(input2) if upper else input2
    right = _substituted(lower, self, upper=False)
    return _substituted(_transposed(lower), right, upper=True)


def translate_cholesky_inverse(self: Any, upper: bool = False) -> Any:
    """The inverse of L @ L'."""
    return translate_cholesky_solve(_identity(self), self, upper)


def translate_qr(A: Any, mode: str = "reduced") -> Any:
    """Q and R with A = Q @ R."""
    packed, factors = _reflections(A)
    rows, columns = op.Shape(A, start=-2, end=-1), op.Shape(A, start=-1)
    least = op.Min(rows, columns)
    triangle = op.Trilu(packed, upper=1)
    if mode == "complete":
        return _reflected(packed, factors, _wide_identity(A, rows), backwards=True), triangle
    start = op.Constant(value_ints=[0])
    triangle = op.Slice(triangle, start, least, op.Constant(value_ints=[-2]))
    if mode == "r":
        return op.CastLike(op.ConstantOfShape(start), A), triangle
    return _reflected(packed, factors, _wide_identity(A, least), backwards=True), triangle


def translate_geqrf(self: Any) -> Any:
    """R and the reflections that Q is made of, as LAPACK packs them."""
    packed, factors = _reflections(self)
    return packed, factors


def translate_householder_product(input: Any, tau: Any) -> Any:
    """As many columns of Q as the packed reflections have."""
    return _reflected(input, tau, _wide_identity(input, op.Shape(input, start=-1)), backwards=True)


def translate_ormqr(self: Any, input2: Any, input3: Any, left: bool = True, transpose: bool = False) -> Any:
    """The product of Q, or its transpose, and another matrix, on either side."""
    if left:
        return _reflected(self, input2, input3, backwards=not transpose)
    return _transposed(_reflected(self, input2, _transposed(input3), backwards=transpose))


def _first() -> Any:
    return op.Constant(value_ints=[0])


def _last() -> Any:
    return op.Constant(value_ints=[-1])


def _transposed(matrix: Any) -> Any:
    rank = len(matrix.shape)
    return _ranked(op.Transpose(matrix, perm=[*range(rank - 2), rank - 1, rank - 2]), rank)


def _ranked(value: Any, rank: int) -> Any:
    """Tell a new value how many axes it has, for the next step asks."""
    value.shape = onnx_ir.Shape([None] * rank)
    return value


def _substituted(matrix: Any, right: Any, *, upper: bool, unit: bool = False) -> Any:
    rank = max(len(matrix.shape), len(right.shape))
    return _ranked(substituted(*_together(matrix, right), upper=int(upper), unit=int(unit)), rank)


def _factorised(matrix: Any) -> tuple[Any, Any]:
    """L and U in one matrix, and the rows that were exchanged."""
    whole = factorised(matrix)
    start, columns = op.Constant(value_ints=[0]), op.Shape(matrix, start=-1)
    end = op.Min(op.Shape(matrix, start=-2, end=-1), columns)
    noted = op.Gather(whole, op.Constant(value_int=-1), axis=-1)
    return op.Slice(whole, start, columns, _last()), op.Cast(op.Slice(noted, start, end, _last()), to=_INT64)


def _reflections(matrix: Any) -> tuple[Any, Any]:
    """Packed reflections, and their factors."""
    return split_reflections(reflected(matrix), matrix)


def split_reflections(whole: Any, matrix: Any) -> tuple[Any, Any]:
    """What ``reflected`` returns for a matrix: all rows but the last, and the factors in that one."""
    start, rows = op.Constant(value_ints=[0]), op.Shape(matrix, start=-2, end=-1)
    noted = op.Gather(whole, op.Constant(value_int=-1), axis=-2)
    end = op.Min(rows, op.Shape(matrix, start=-1))
    return op.Slice(whole, start, rows, op.Constant(value_ints=[-2])), op.Slice(noted, start, end, _last())


def _reflected(packed: Any, factors: Any, other: Any, *, backwards: bool) -> Any:
    return _ranked(reflections_of(packed, factors, other, backwards=int(backwards)), len(other.shape))


def _wide_identity(matrix: Any, columns: Any) -> Any:
    """[..., rows, columns] with ones on the diagonal."""
    flat = op.ConstantOfShape(op.Concat(op.Shape(matrix, start=-2, end=-1), columns, axis=0))
    shape = op.Concat(op.Shape(matrix, end=-2), op.Shape(flat), axis=0)
    return _ranked(op.CastLike(op.Expand(op.EyeLike(flat), shape), matrix), len(matrix.shape))


def _identity(matrix: Any) -> Any:
    return _wide_identity(matrix, op.Shape(matrix, start=-1))


def _no_errors(matrix: Any) -> Any:
    return op.Cast(op.ConstantOfShape(op.Shape(matrix, end=-2)), to=_INT32)


def _diagonal(packed: Any) -> Any:
    """[..., n] of a square matrix."""
    flat = op.ConstantOfShape(op.Shape(packed, start=-2))
    here = op.Cast(op.EyeLike(flat), to=int(onnx_ir.DataType.BOOL))
    zero = op.CastLike(op.Constant(value_float=0.0), packed)
    return op.ReduceSum(op.Where(here, packed, zero), _last(), keepdims=0)


def _sign(order: Any, like: Any) -> Any:
    """-1 for an odd number of exchanges."""
    own = op.Range(op.Constant(value_int=0), op.Squeeze(op.Shape(order, start=-1), _first()), op.Constant(value_int=1))
    exchanges = op.ReduceSum(op.Cast(op.Not(op.Equal(order, own)), to=_INT64), _last(), keepdims=0)
    odd = op.Mod(exchanges, op.Constant(value_int=2))
    return op.CastLike(op.Sub(op.Constant(value_int=1), op.Mul(odd, op.Constant(value_int=2))), like)


def _as_pivots(order: Any) -> Any:
    """LAPACK counts from 1."""
    return op.Cast(op.Add(order, op.Constant(value_int=1)), to=_INT32)


def _as_order(pivots: Any) -> Any:
    return op.Sub(op.Cast(pivots, to=_INT64), op.Constant(value_int=1))


def _rows_of_identity(pivots: Any, like: Any) -> Any:
    """The matrix that exchanges rows one after the other: ones at (place, what comes there)."""
    rows = op.Squeeze(op.Shape(like, start=-2, end=-1), _first())
    order = permutation(pivots, rows)
    own = op.Range(op.Constant(value_int=0), rows, op.Constant(value_int=1))
    return _ranked(op.CastLike(op.Equal(op.Unsqueeze(order, _last()), own), like), len(like.shape))


def _permuting(order: Any, matrix: Any) -> Any:
    """P with A = P @ L @ U."""
    return _transposed(_rows_of_identity(order, matrix))


def _triangles(packed: Any, matrix: Any) -> tuple[Any, Any]:
    rows, columns = op.Shape(matrix, start=-2, end=-1), op.Shape(matrix, start=-1)
    start, least = op.Constant(value_ints=[0]), op.Min(rows, columns)
    lower = op.Slice(op.Trilu(packed, op.Constant(value_int=-1), upper=0), start, least, op.Constant(value_ints=[-1]))
    upper = op.Slice(op.Trilu(packed, upper=1), start, least, op.Constant(value_ints=[-2]))
    return op.Add(lower, _wide_identity(matrix, least)), upper


def _together(matrix: Any, right: Any) -> tuple[Any, Any]:
    """Both with all batch axes of either."""
    batch = list(matrix.shape[:-2])
    if batch == list(right.shape[:-2]) and all(isinstance(size, int) for size in batch):
        return matrix, right
    ones = op.Constant(value_ints=[1, 1])
    return (
        op.Expand(matrix, op.Concat(op.Shape(right, end=-2), ones, axis=0)),
        op.Expand(right, op.Concat(op.Shape(matrix, end=-2), ones, axis=0)),
    )


def check_errors(info: torch.Tensor, api_name: str, *, is_matrix: bool) -> None:
    """ONNX raises no errors."""


DECOMPOSITIONS = {aten._linalg_check_errors.default: check_errors}  # noqa: SLF001 - what torch.linalg calls
TRANSLATIONS = {
    aten.linalg_inv_ex.default: translate_inverse,
    aten._linalg_det.default: translate_determinant,  # noqa: SLF001 - what torch.det becomes
    aten._linalg_slogdet.default: translate_slogdet,  # noqa: SLF001 - what torch.slogdet becomes
    aten._linalg_solve_ex.default: translate_solve,  # noqa: SLF001 - what torch.linalg.solve becomes
    aten.linalg_lu_factor_ex.default: translate_lu_factor,
    aten.linalg_lu.default: translate_lu,
    aten.lu_unpack.default: translate_lu_unpack,
    aten.linalg_lu_solve.default: translate_lu_solve,
    aten.linalg_solve_triangular.default: translate_solve_triangular,
    aten.triangular_solve.default: translate_triangular_solve,
    aten.linalg_cholesky_ex.default: translate_cholesky_ex,
    aten.cholesky.default: translate_cholesky,
    aten.cholesky_solve.default: translate_cholesky_solve,
    aten.cholesky_inverse.default: translate_cholesky_inverse,
    aten.linalg_qr.default: translate_qr,
    aten.geqrf.default: translate_geqrf,
    aten.linalg_householder_product.default: translate_householder_product,
    aten.ormqr.default: translate_ormqr,
}
