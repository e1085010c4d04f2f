"""Linear algebra on matrices of complex numbers, by that of real matrices with twice as many rows and columns.

Each number becomes two rows and two columns ``[[re, -im], [im, re]]``; sums, products, inverses and exponentials of
such matrices are such matrices again. Eigenvalues and singular values of these come twice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from entrepot.exporters.torch.translations.pair import Pair, bilinear, pair_of
from entrepot.exporters.torch.translations.pair_functions import FUNCTIONS

aten = torch.ops.aten
_product = bilinear(torch.matmul)
_divided, _size, _direction = FUNCTIONS[aten.div], FUNCTIONS[aten.abs], FUNCTIONS[aten.sgn]


def as_real(one: Pair) -> torch.Tensor:
    """All real parts before all imaginary ones."""
    return torch.cat([torch.cat([one.re, -one.im], -1), torch.cat([one.im, one.re], -1)], -2)


def _woven(one: Pair) -> torch.Tensor:
    """The parts of a number beside each other, so that a triangle stays one if the numbers on its diagonal are real."""
    rows, columns = one.re.shape[-2:]
    above, below = torch.stack([one.re, -one.im], -1), torch.stack([one.im, one.re], -1)
    return torch.stack([above, below], -3).reshape(*one.re.shape[:-2], 2 * rows, 2 * columns)


def as_pair(matrix: torch.Tensor) -> Pair:
    """The numbers that a matrix made by ``as_real`` stands for."""
    return _numbers(matrix[..., : matrix.shape[-1] // 2])


def _columns(one: Pair) -> torch.Tensor:
    return torch.cat([one.re, one.im], -2)


def _numbers(columns: torch.Tensor) -> Pair:
    size = columns.shape[-2] // 2
    return Pair(columns[..., :size, :], columns[..., size:, :])


def _each(one: Pair, change: Callable[[torch.Tensor], torch.Tensor]) -> Pair:
    return Pair(change(one.re), change(one.im))


def _turned(one: Pair) -> Pair:
    return _each(one, lambda part: part.mT)


def _adjoint(one: Pair) -> Pair:
    return Pair(one.re.mT, -one.im.mT)


def _solved(matrix: Pair, right: Pair) -> Pair:
    return _numbers(torch.linalg.solve(as_real(matrix), _columns(right)))


def _solve(A: Any, B: Any, *, left: bool = True, check_errors: bool = False) -> tuple[Any, ...]:
    """X with A @ X = B, for matrices or vectors B, or with X @ A = B; the factors are of no use to anyone."""
    matrix, right = pair_of(A), pair_of(B)
    known = right.re.shape
    vectors = len(known) == 1 or (len(known) == matrix.re.dim() - 1 and known == matrix.re.shape[:-1])
    if vectors:
        right = _each(right, lambda part: part.unsqueeze(-1))
    found = _solved(matrix, right) if left else _turned(_solved(_turned(matrix), _turned(right)))
    return (_each(found, lambda part: part.squeeze(-1)) if vectors else found), matrix, *_status(matrix), _info(matrix)


def _inverse(A: Pair, *, check_errors: bool = False) -> tuple[Pair, torch.Tensor]:
    return as_pair(torch.linalg.inv(as_real(A))), _info(A)


def _exponential(one: Pair) -> Pair:
    return as_pair(torch.linalg.matrix_exp(as_real(one)))


def _root(one: Pair, *, upper: bool = False, check_errors: bool = False) -> tuple[Pair, torch.Tensor]:
    """L with L @ L' = A, of which the lower triangle is read; its diagonal is real, and so is that of the result."""
    lower = _adjoint(one) if upper else one
    found = torch.linalg.cholesky(_woven(Pair(lower.re, lower.im.tril(-1))))
    result = Pair(found[..., ::2, ::2], found[..., 1::2, ::2])
    return (_adjoint(result) if upper else result), _info(one)


def _triangular(A: Any, B: Any, *, upper: bool, left: bool = True, unitriangular: bool = False) -> Pair:
    """X with A @ X = B, or X @ A = B, where only one triangle of A counts."""
    half = _each(pair_of(A), torch.triu if upper else torch.tril)
    if unitriangular:
        diagonal = torch.eye(half.re.shape[-1]) > 0
        half = Pair(torch.where(diagonal, 1.0, half.re), torch.where(diagonal, 0.0, half.im))
    right = pair_of(B)
    return _solved(half, right) if left else _turned(_solved(_turned(half), _turned(right)))


def _by_root(right: Any, root: Any, upper: bool = False) -> Pair:
    """X with L @ L' @ X = B."""
    lower = _adjoint(pair_of(root)) if upper else pair_of(root)
    return _triangular(_adjoint(lower), _triangular(lower, right, upper=False), upper=True)


def _eigh(A: Pair, UPLO: str = "L", compute_v: bool = True) -> tuple[torch.Tensor, Pair | None]:
    """Eigenvalues of a Hermitian matrix, of which one triangle is read, and vectors if its size is known."""
    lower = A if UPLO == "L" else _adjoint(A)
    below = _each(lower, lambda part: part.tril(-1))
    diagonal = torch.diag_embed(lower.re.diagonal(dim1=-2, dim2=-1))
    hermitian = Pair(below.re + below.re.mT + diagonal, below.im - below.im.mT)
    values, vectors = torch.linalg.eigh(as_real(hermitian))
    return values[..., ::2], _halved(_numbers(vectors)) if isinstance(A.re.shape[-1], int) else None


def _halved(twice: Pair) -> Pair:
    """Of vectors that come twice, each up to a factor, those that are orthogonal to each other.

    Where eigenvalues are equal, every vector is some combination of all that belong to them. At each place, the first
    vectors of the two lists have more directions than those that were chosen before, and whichever has most of its
    length in another direction is chosen.
    """
    chosen = _each(twice, lambda part: part[..., :0])
    for place in range(twice.re.shape[-2]):
        left = _each(twice, lambda part, place=place: part[..., : 2 * place + 2])  # type: ignore[misc]
        for _ in range(2 if place else 0):  # what rounding leaves goes the second time
            left -= _product(chosen, _product(_adjoint(chosen), left))
        best = (left.re.square() + left.im.square()).sum(-2).argmax(-1)
        vector = _each(left, lambda part, at=best: part.gather(-1, _rows(at, part.mT).mT))  # type: ignore[misc]
        length = (vector.re.square() + vector.im.square()).sum(-2, keepdim=True).sqrt()
        chosen = Pair(
            *(torch.cat([part, each / length], -1) for part, each in ((chosen.re, vector.re), (chosen.im, vector.im)))
        )
    return chosen


def _singular_values(A: Pair, full_matrices: bool = False, compute_uv: bool = True, **_how: Any) -> tuple[Any, ...]:
    return None, torch.linalg.svdvals(as_real(A))[..., ::2], None


def _pivots(one: Pair) -> tuple[Sequence[Pair], torch.Tensor]:
    """What stands on the diagonal when a matrix is brought to a triangle, and the sign of the order of its rows."""
    sign, size = torch.ones_like(one.re.sum((-2, -1))), one.re.shape[-1]
    if not isinstance(size, int):
        raise NotImplementedError("determinants of complex matrices whose size varies")
    found = []
    for left in range(size, 0, -1):
        places = _size(_each(one, lambda part: part[..., 0])).argmax(-1)
        first = _each(one, lambda part, at=places: part.gather(-2, _rows(at, part)))  # type: ignore[misc]
        isolated = torch.arange(left) == places[..., None]
        others = Pair(*(torch.where(isolated[..., None], part[..., :1, :], part) for part in (one.re, one.im)))
        pivot = _each(first, lambda part: part[..., 0, 0])
        sign = torch.where(places == 0, sign, -sign)
        found.append(pivot)
        below = _each(others, lambda part: part[..., 1:, :1])
        share = _divided(below, _each(pivot, lambda part: part[..., None, None]))
        rest = _each(others, lambda part: part[..., 1:, 1:])
        one = rest - share * _each(first, lambda part: part[..., 1:])
    return found, sign


def _rows(places: torch.Tensor, part: torch.Tensor) -> torch.Tensor:
    return places[..., None, None].expand(*part.shape[:-2], 1, part.shape[-1])


def _determinant(A: Pair) -> tuple[Any, ...]:
    pivots, sign = _pivots(A)
    result = Pair(sign, torch.zeros_like(sign))
    for pivot in pivots:
        result = result * pivot
    return result, A, *_status(A)


def _logarithm(A: Pair) -> tuple[Any, ...]:
    """The direction of a determinant, and the logarithm of its size."""
    pivots, sign = _pivots(A)
    direction, size = Pair(sign, torch.zeros_like(sign)), torch.zeros_like(sign)
    for pivot in pivots:
        direction, size = direction * _direction(pivot), size + _size(pivot).log()
    return direction, size, A, *_status(A)


def _status(matrix: Pair) -> tuple[torch.Tensor]:
    """In place of the numbers of exchanged rows."""
    return (torch.zeros_like(matrix.re[..., 0], dtype=torch.int32),)


def _info(matrix: Pair) -> torch.Tensor:
    """No errors."""
    return torch.zeros_like(matrix.re[..., 0, 0], dtype=torch.int32)


MATRICES: dict[Any, Callable[..., Any]] = {
    aten._linalg_solve_ex: _solve,  # noqa: SLF001 - what torch.linalg.solve becomes
    aten.linalg_inv_ex: _inverse,
    aten.linalg_matrix_exp: _exponential,
    aten.linalg_cholesky_ex: _root,
    aten.linalg_solve_triangular: _triangular,
    aten.cholesky_solve: _by_root,
    aten._linalg_eigh: _eigh,  # noqa: SLF001 - what torch.linalg.eigh becomes
    aten._linalg_svd: _singular_values,  # noqa: SLF001 - what torch.linalg.svdvals becomes
    aten._linalg_det: _determinant,  # noqa: SLF001 - what torch.linalg.det becomes
    aten._linalg_slogdet: _logarithm,  # noqa: SLF001 - what torch.linalg.slogdet becomes
}
"""By operator."""
