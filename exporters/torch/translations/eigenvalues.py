"""Eigenvalues of symmetric matrices, singular values, and exponentials of matrices, for any size.

Singular values come from Jacobi's rotations: each step rotates all neighbouring pairs of columns at once and then
moves the columns on as in a round-robin tournament, so that every step is the same and a loop can take it. The number
of rounds is fixed; after it, columns are orthogonal but for one rounding. Eigenvalues are the singular values of a
matrix that is shifted until all of them are positive. All is computed in float64.

The signs of vectors are free, and are not always torch's: a module that depends on them is found out by its proof.
"""

from typing import Any

import onnx_ir
import torch
from onnxscript import opset20

from entrepot.exporters.functions.matrix_loops import exponential, orthogonalised, reflected, reflections_of
from entrepot.exporters.torch.translations.linear_algebra import split_reflections
from entrepot.exporters.torch.translations.pair import Pair
from entrepot.exporters.torch.translations.pair_matrices import as_pair, as_real

op: Any = opset20
aten = torch.ops.aten
_RESULTS: Any = torch.return_types

_DOUBLE, _BOOL = int(onnx_ir.DataType.DOUBLE), int(onnx_ir.DataType.BOOL)
_ROUNDS = 14


def translate_exponential(self: Any) -> Any:
    """The exponential of each matrix."""
    return op.CastLike(exponential(op.Cast(self, to=_DOUBLE)), self)


def translate_eigh(A: Any, UPLO: str = "L", compute_v: bool = True) -> Any:
    """Eigenvalues, the smallest first, and vectors of symmetric matrices of which one triangle counts."""
    wide = op.Cast(A, to=_DOUBLE)
    flat = op.ConstantOfShape(op.Shape(A, start=-2))
    below = op.Equal(op.Trilu(op.Add(flat, op.Constant(value_float=1.0)), upper=0), op.Constant(value_float=1.0))
    one, other = (wide, _turned(wide, A)) if UPLO.upper() == "L" else (_turned(wide, A), wide)
    whole = op.Where(below, one, other)
    bound = op.ReduceMax(op.ReduceSum(op.Abs(whole), _axis(-1)), _axis(-2))
    shifted = op.Add(whole, op.Mul(op.Cast(op.EyeLike(flat), to=_DOUBLE), bound))
    sizes, order, _, vectors = _decomposed(shifted, A, largest=0)
    values = op.Sub(sizes, op.Squeeze(bound, _axis(-1)))
    count = op.Shape(A, start=-1)
    return op.CastLike(values, A), op.CastLike(_columns(vectors, order, count), A) if compute_v else _nothing(A)


def translate_svd(A: Any, full_matrices: bool = False, compute_uv: bool = True, driver: Any = None) -> Any:
    """U, the singular values, the largest first, and V'; of A and A' the one with more rows is taken apart."""
    wide, (rows, columns) = op.Cast(A, to=_DOUBLE), A.shape[-2:]
    tall = not (isinstance(rows, int) and isinstance(columns, int) and rows < columns)
    sizes, order, parts, vectors = _decomposed(wide if tall else _turned(wide, A), A, largest=1)
    if not compute_uv:
        return _nothing(A), op.CastLike(sizes, A), _nothing(A)
    across = op.Unsqueeze(sizes, _axis(-2))
    zero, one = (op.CastLike(op.Constant(value_float=number), across) for number in (0.0, 1.0))
    left = op.Div(
        _columns(parts, order, op.Shape(parts, start=-2, end=-1)), op.Where(op.Equal(across, zero), one, across)
    )
    right = _columns(vectors, order, op.Shape(order, start=-1))
    left = _completed(left, A) if full_matrices and rows != columns else left
    first, second = (left, right) if tall else (right, left)
    return op.CastLike(first, A), op.CastLike(sizes, A), op.CastLike(_turned(second, A), A)


def _decomposed(matrix: Any, like: Any, *, largest: int) -> tuple[Any, Any, Any, Any]:
    """Singular values in order, where they are, and what was rotated into what."""
    count = op.Shape(matrix, start=-1)
    odd = op.Mod(count, op.Constant(value_ints=[2]))
    pads = op.Concat(op.Constant(value_ints=[0] * (2 * len(like.shape) - 1)), odd, axis=0)
    both, rows = orthogonalised(op.Pad(matrix, pads), rounds=_ROUNDS), op.Shape(matrix, start=-2, end=-1)
    parts = op.Slice(both, op.Constant(value_ints=[0]), rows, _axis(-2))
    vectors = op.Slice(both, rows, op.Constant(value_ints=[2**62]), _axis(-2))
    sizes = op.Sqrt(op.ReduceSumSquare(parts, _axis(-2), keepdims=0))
    last_row = op.Slice(vectors, _axis(-1), op.Constant(value_ints=[2**62]), _axis(-2))
    padding = op.ReduceSum(last_row, _axis(-2), keepdims=0)
    added = op.And(op.Equal(padding, op.CastLike(op.Constant(value_float=1.0), sizes)), op.Cast(odd, to=_BOOL))
    last = op.CastLike(op.Constant(value_float=-1.0 if largest else float("inf")), sizes)
    values, order = op.TopK(op.Where(added, last, sizes), count, axis=-1, largest=largest)
    return values, order, parts, vectors


def _columns(matrix: Any, order: Any, rows: Any) -> Any:
    """The first rows of some columns, in order."""
    shape = op.Concat(op.Shape(order, end=-1), rows, op.Shape(order, start=-1), axis=0)
    part = op.Slice(matrix, op.Constant(value_ints=[0]), rows, _axis(-2))
    return op.GatherElements(part, op.Expand(op.Unsqueeze(order, _axis(-2)), shape), axis=-1)


def _completed(left: Any, like: Any) -> Any:
    """Orthogonal columns, with others added until there are as many as rows."""
    packed, factors = split_reflections(reflected(left), left)
    rows, columns = op.Shape(left, start=-2, end=-1), op.Shape(left, start=-1)
    square = op.EyeLike(op.ConstantOfShape(op.Concat(rows, rows, axis=0)))
    wide = op.Expand(op.CastLike(square, left), op.Concat(op.Shape(left, end=-2), rows, rows, axis=0))
    rest = op.Slice(reflections_of(packed, factors, wide, backwards=1), columns, rows, _axis(-1))
    return op.Concat(left, rest, axis=-1)


def _axis(axis: int) -> Any:
    return op.Constant(value_ints=[axis])


def _turned(matrix: Any, like: Any) -> Any:
    rank = len(like.shape)
    return op.Transpose(matrix, perm=[*range(rank - 2), rank - 1, rank - 2])


def _nothing(like: Any) -> Any:
    return op.CastLike(op.ConstantOfShape(op.Constant(value_ints=[0])), like)


def pinv(
    input: torch.Tensor,
    *,
    atol: torch.Tensor | None = None,
    rtol: torch.Tensor | None = None,
    hermitian: bool = False,
) -> torch.Tensor:
    """The pseudo-inverse, from the singular values that are not negligible."""
    if input.is_complex():
        return _complex_pinv(input, atol, rtol, hermitian=hermitian)
    whole = input.tril() + input.tril(-1).mT if hermitian else input
    left, sizes, right = torch.linalg.svd(whole, full_matrices=False)
    default = max(input.shape[-2:]) * torch.finfo(input.dtype).eps
    least = torch.zeros_like(sizes[..., :1]) if atol is None else atol.unsqueeze(-1)
    share = rtol.unsqueeze(-1) if rtol is not None else torch.where(least > 0, 0.0, default)
    kept = sizes > torch.maximum(least, share * sizes[..., :1])
    inverse = torch.where(kept, 1 / sizes, 0.0)
    return (right.mT * inverse.unsqueeze(-2)) @ left.mT


def _complex_pinv(
    matrix: torch.Tensor, atol: torch.Tensor | None, rtol: torch.Tensor | None, *, hermitian: bool
) -> torch.Tensor:
    """By that of a real matrix of all parts, which has the same singular values, each twice."""
    whole = matrix.tril() + matrix.tril(-1).mH if hermitian else matrix
    if rtol is None and atol is None:
        kind = whole.real.dtype
        rtol = torch.full((), max(matrix.shape[-2:]) * torch.finfo(kind).eps, dtype=kind)
    found = as_pair(torch.linalg.pinv(as_real(Pair(whole.real, whole.imag)), atol=atol, rtol=rtol))
    return torch.complex(found.re, found.im)


def lstsq(A: torch.Tensor, B: torch.Tensor, rcond: float | None = None, *, driver: str | None = None) -> Any:
    """The least squares solution with the smallest norm; how many other results there are depends on the values."""
    vectors = B.dim() == A.dim() - 1
    right = B.unsqueeze(-1) if vectors else B
    solution = torch.linalg.pinv(A, rtol=rcond) @ right
    nothing = A.new_empty((0,))
    solution = solution.squeeze(-1) if vectors else solution
    return _RESULTS.linalg_lstsq((solution, nothing, nothing.to(torch.int64), nothing))


REPLACEMENTS = {torch.linalg.lstsq: lstsq}
DECOMPOSITIONS = {aten.linalg_pinv.atol_rtol_tensor: pinv}
TRANSLATIONS = {
    aten.linalg_matrix_exp.default: translate_exponential,
    aten._linalg_eigh.default: translate_eigh,  # noqa: SLF001 - what torch.linalg.eigh becomes
    aten._linalg_svd.default: translate_svd,  # noqa: SLF001 - what torch.linalg.svd becomes
}
