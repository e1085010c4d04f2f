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
from onnxscript import DOUBLE, opset20, script
from onnxscript import opset18 as op  # what torch.onnx (2.13) writes functions in

from entrepot.exporters.torch.translations.linear_algebra import split_reflections
from entrepot.exporters.torch.translations.matrix_loops import reflected, reflections_of

op_: Any = opset20
aten = torch.ops.aten
_RESULTS: Any = torch.return_types

_DOUBLE, _BOOL = int(onnx_ir.DataType.DOUBLE), int(onnx_ir.DataType.BOOL)
_ROUNDS = 14


@script()
def orthogonalised(matrix: DOUBLE[...], rounds: int) -> DOUBLE[...]:
    """The columns rotated until they are orthogonal, and below them the rotation; their number is even."""
    rows = op.Shape(matrix, start=-2, end=-1)
    place = op.Range(0, op.Squeeze(op.Shape(matrix, start=-1)), 1)
    count = op.Size(place)
    even = op.Mod(place, 2) == 0
    firsts = op.Range(0, count, 2)
    partner = op.Where(even, place + 1, place - 1)
    onward = op.Where(even, place - 2, place + 2)
    onward = op.Where(place == count - 1, op.Max(count - 2, 1), onward)
    onward = op.Where(place == 2, 1, op.Where(place == 0, 0, onward))
    one = op.CastLike(1.0, matrix)
    zero = op.CastLike(0.0, matrix)
    square = op.Concat(op.Shape(matrix, end=-2), op.Shape(place), op.Shape(place), axis=0)
    rotation = op.Expand(op.Where(op.Unsqueeze(place, [-1]) == place, one, zero), square)
    both = op.Concat(matrix, rotation, axis=-2)
    for _step in range((count - 1) * op.Cast(rounds, to=7)):
        columns = op.Slice(both, op.Constant(value_ints=[0]), rows, op.Constant(value_ints=[-2]))
        own = op.ReduceSumSquare(columns, [-2], keepdims=0)
        other = op.Gather(columns, firsts + 1, axis=-1)
        between = op.ReduceSum(op.Gather(columns, firsts, axis=-1) * other, [-2], keepdims=0)
        gap = op.Gather(own, firsts + 1, axis=-1) - op.Gather(own, firsts, axis=-1)
        length = op.Abs(gap) + op.Sqrt(gap * gap + between * between * op.CastLike(4.0, gap))
        sign = op.Where(gap < zero, op.CastLike(-2.0, gap), op.CastLike(2.0, gap))
        tangent = sign * between / op.Where(length == zero, one, length)
        cosine = one / op.Sqrt(tangent * tangent + one)
        sine = tangent * cosine
        shape = op.Concat(op.Shape(own, end=-1), op.Constant(value_ints=[1]), op.Shape(place), axis=0)
        scale = op.Reshape(
            op.Concat(op.Unsqueeze(cosine, [-1]), op.Unsqueeze(cosine, [-1]), axis=-1), shape, allowzero=1
        )
        share = op.Reshape(op.Concat(op.Unsqueeze(-sine, [-1]), op.Unsqueeze(sine, [-1]), axis=-1), shape, allowzero=1)
        both = op.Gather(both * scale + op.Gather(both, partner, axis=-1) * share, onward, axis=-1)
    return both


@script()
def exponential(matrix: DOUBLE[...]) -> DOUBLE[...]:
    """The exponential of each matrix: a series where the matrix is small, squared as often as it was halved before."""
    place = op.Range(0, op.Squeeze(op.Shape(matrix, start=-1)), 1)
    here = op.Unsqueeze(place, [-1]) == place
    one = op.Where(here, op.CastLike(1.0, matrix), op.CastLike(0.0, matrix))
    size = op.ReduceMax(op.ReduceSum(op.Abs(matrix), [-2], keepdims=1), [-1], keepdims=1)
    halved = op.Clip(
        op.Ceil(op.Log(op.Max(size, op.CastLike(0.25, size))) / 0.6931471805599453) + 1.0,
        op.CastLike(0.0, size),
        op.CastLike(60.0, size),
    )
    small = matrix / op.Pow(op.CastLike(2.0, matrix), halved)
    result = one + small - small
    for index in range(18):
        result = one + op.MatMul(small, result) / op.CastLike(18 - index, small)
    most = op.Cast(
        op.ReduceMax(
            op.Concat(op.Reshape(halved, [-1]), op.CastLike(op.Constant(value_floats=[0.0]), halved), axis=0),
            keepdims=0,
        ),
        to=7,
    )
    for step in range(most):
        result = op.Where(op.CastLike(step, halved) < halved, op.MatMul(result, result), result)
    return result


def translate_exponential(self: Any) -> Any:
    """The exponential of each matrix."""
    return op_.CastLike(exponential(op_.Cast(self, to=_DOUBLE)), self)


def translate_eigh(A: Any, UPLO: str = "L", compute_v: bool = True) -> Any:
    """Eigenvalues, the smallest first, and vectors of symmetric matrices of which one triangle counts."""
    wide = op_.Cast(A, to=_DOUBLE)
    flat = op_.ConstantOfShape(op_.Shape(A, start=-2))
    below = op_.Equal(op_.Trilu(op_.Add(flat, op_.Constant(value_float=1.0)), upper=0), op_.Constant(value_float=1.0))
    one, other = (wide, _turned(wide, A)) if UPLO.upper() == "L" else (_turned(wide, A), wide)
    whole = op_.Where(below, one, other)
    bound = op_.ReduceMax(op_.ReduceSum(op_.Abs(whole), _axis(-1)), _axis(-2))
    shifted = op_.Add(whole, op_.Mul(op_.Cast(op_.EyeLike(flat), to=_DOUBLE), bound))
    sizes, order, _, vectors = _decomposed(shifted, A, largest=0)
    values = op_.Sub(sizes, op_.Squeeze(bound, _axis(-1)))
    count = op_.Shape(A, start=-1)
    return op_.CastLike(values, A), op_.CastLike(_columns(vectors, order, count), A) if compute_v else _nothing(A)


def translate_svd(A: Any, full_matrices: bool = False, compute_uv: bool = True, driver: Any = None) -> Any:
    """U, the singular values, the largest first, and V'; of A and A' the one with more rows is taken apart."""
    wide, (rows, columns) = op_.Cast(A, to=_DOUBLE), A.shape[-2:]
    tall = not (isinstance(rows, int) and isinstance(columns, int) and rows < columns)
    sizes, order, parts, vectors = _decomposed(wide if tall else _turned(wide, A), A, largest=1)
    if not compute_uv:
        return _nothing(A), op_.CastLike(sizes, A), _nothing(A)
    across = op_.Unsqueeze(sizes, _axis(-2))
    zero, one = (op_.CastLike(op_.Constant(value_float=number), across) for number in (0.0, 1.0))
    left = op_.Div(
        _columns(parts, order, op_.Shape(parts, start=-2, end=-1)), op_.Where(op_.Equal(across, zero), one, across)
    )
    right = _columns(vectors, order, op_.Shape(order, start=-1))
    left = _completed(left, A) if full_matrices and rows != columns else left
    first, second = (left, right) if tall else (right, left)
    return op_.CastLike(first, A), op_.CastLike(sizes, A), op_.CastLike(_turned(second, A), A)


def _decomposed(matrix: Any, like: Any, *, largest: int) -> tuple[Any, Any, Any, Any]:
    """Singular values in order, where they are, and what was rotated into what."""
    count = op_.Shape(matrix, start=-1)
    odd = op_.Mod(count, op_.Constant(value_ints=[2]))
    pads = op_.Concat(op_.Constant(value_ints=[0] * (2 * len(like.shape) - 1)), odd, axis=0)
    both, rows = orthogonalised(op_.Pad(matrix, pads), rounds=_ROUNDS), op_.Shape(matrix, start=-2, end=-1)
    parts = op_.Slice(both, op_.Constant(value_ints=[0]), rows, _axis(-2))
    vectors = op_.Slice(both, rows, op_.Constant(value_ints=[2**62]), _axis(-2))
    sizes = op_.Sqrt(op_.ReduceSumSquare(parts, _axis(-2), keepdims=0))
    last_row = op_.Slice(vectors, _axis(-1), op_.Constant(value_ints=[2**62]), _axis(-2))
    padding = op_.ReduceSum(last_row, _axis(-2), keepdims=0)
    added = op_.And(op_.Equal(padding, op_.CastLike(op_.Constant(value_float=1.0), sizes)), op_.Cast(odd, to=_BOOL))
    last = op_.CastLike(op_.Constant(value_float=-1.0 if largest else float("inf")), sizes)
    values, order = op_.TopK(op_.Where(added, last, sizes), count, axis=-1, largest=largest)
    return values, order, parts, vectors


def _columns(matrix: Any, order: Any, rows: Any) -> Any:
    """The first rows of some columns, in order."""
    shape = op_.Concat(op_.Shape(order, end=-1), rows, op_.Shape(order, start=-1), axis=0)
    part = op_.Slice(matrix, op_.Constant(value_ints=[0]), rows, _axis(-2))
    return op_.GatherElements(part, op_.Expand(op_.Unsqueeze(order, _axis(-2)), shape), axis=-1)


def _completed(left: Any, like: Any) -> Any:
    """Orthogonal columns, with others added until there are as many as rows."""
    packed, factors = split_reflections(reflected(left), left)
    rows, columns = op_.Shape(left, start=-2, end=-1), op_.Shape(left, start=-1)
    square = op_.EyeLike(op_.ConstantOfShape(op_.Concat(rows, rows, axis=0)))
    wide = op_.Expand(op_.CastLike(square, left), op_.Concat(op_.Shape(left, end=-2), rows, rows, axis=0))
    rest = op_.Slice(reflections_of(packed, factors, wide, backwards=1), columns, rows, _axis(-1))
    return op_.Concat(left, rest, axis=-1)


def _axis(axis: int) -> Any:
    return op_.Constant(value_ints=[axis])


def _turned(matrix: Any, like: Any) -> Any:
    rank = len(like.shape)
    return op_.Transpose(matrix, perm=[*range(rank - 2), rank - 1, rank - 2])


def _nothing(like: Any) -> Any:
    return op_.CastLike(op_.ConstantOfShape(op_.Constant(value_ints=[0])), like)


def pinv(
    input: torch.Tensor,
    *,
    atol: torch.Tensor | None = None,
    rtol: torch.Tensor | None = None,
    hermitian: bool = False,
) -> torch.Tensor:
    """The pseudo-inverse, from the singular values that are not negligible."""
    whole = input.tril() + input.tril(-1).mT if hermitian else input
    left, sizes, right = torch.linalg.svd(whole, full_matrices=False)
    default = max(input.shape[-2:]) * torch.finfo(input.dtype).eps
    least = torch.zeros_like(sizes[..., :1]) if atol is None else atol.unsqueeze(-1)
    share = rtol.unsqueeze(-1) if rtol is not None else torch.where(least > 0, 0.0, default)
    kept = sizes > torch.maximum(least, share * sizes[..., :1])
    inverse = torch.where(kept, 1 / sizes, 0.0)
    return (right.mT * inverse.unsqueeze(-2)) @ left.mT


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
