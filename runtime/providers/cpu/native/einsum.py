"""Einsum of two operands as one stack of matrix products: NumPy's own loop does not use BLAS where a batch is left."""

from __future__ import annotations

import string
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from entrepot.ir.errors import InputError
from entrepot.runtime.kernels.precision import accumulation_dtype
from entrepot.runtime.providers.cpu.products import matmul
from entrepot.runtime.providers.cpu.table import native
from entrepot.runtime.threads import one_blas_thread

Array: TypeAlias = np.ndarray[Any, Any]


@native("Einsum", 28)
def einsum(*Inputs: Array, equation: str) -> Array:
    """The sum over every index that the right-hand side of ``equation`` does not name."""
    dtype = Inputs[0].dtype
    wide = [x.astype(accumulation_dtype(dtype), copy=False) for x in Inputs]
    terms, result = spelled_out(equation, [x.ndim for x in wide])
    if len(wide) == 2 and all(len(set(term)) == len(term) for term in terms) and _sizes_agree(terms, wide):
        y = _two(wide[0], wide[1], terms[0], terms[1], result)
    else:
        with one_blas_thread:
            y = np.einsum(f"{','.join(terms)}->{result}", *wide, optimize=len(wide) > 2)
    return np.asarray(y).astype(dtype, copy=False)


def spelled_out(equation: str, ranks: Sequence[int]) -> tuple[list[str], str]:
    """One letter per axis for every operand and the result: ellipses replaced, an implied right-hand side written.

    Raises:
        InputError: The equation does not fit the operands' ranks.
    """
    left, arrow, right = equation.replace(" ", "").partition("->")
    terms = left.split(",")
    if len(terms) != len(ranks):
        raise InputError(f"Einsum {equation!r} has {len(terms)} terms for {len(ranks)} inputs")
    spare = "".join(letter for letter in string.ascii_letters if letter not in equation)
    widths = [rank - len(term.replace("...", "")) for term, rank in zip(terms, ranks, strict=True)]
    for term, width in zip(terms, widths, strict=True):
        if width < 0 or (width and "..." not in term):
            raise InputError(f"Einsum {equation!r}: term {term!r} does not fit an input of rank {len(term) + width}")
    dots = spare[: max((width for term, width in zip(terms, widths, strict=True) if "..." in term), default=0)]
    if not arrow:
        letters = left.replace(",", "").replace("...", "")
        right = "..." * bool("..." in left) + "".join(sorted(c for c in set(letters) if letters.count(c) == 1))
    written = [
        term.replace("...", dots[len(dots) - width :]) if width or "..." in term else term
        for term, width in zip(terms, widths, strict=True)
    ]
    return written, right.replace("...", dots)


def _sizes_agree(terms: Sequence[str], inputs: Sequence[Array]) -> bool:
    """Whether no axis of size 1 is broadcast to a larger one: that is left to NumPy."""
    sizes: dict[str, int] = {}
    pairs = [pair for term, x in zip(terms, inputs, strict=True) for pair in zip(term, x.shape, strict=True)]
    return all(sizes.setdefault(letter, size) == size for letter, size in pairs)


def _two(a: Array, b: Array, left: str, right: str, result: str) -> Array:
    a, left = _without_lonely(a, left, right + result)
    b, right = _without_lonely(b, right, left + result)
    batch = [c for c in left if c in right and c in result]
    inner = [c for c in left if c in right and c not in result]
    rows, columns = [c for c in left if c not in right], [c for c in right if c not in left]
    sizes = dict(zip(left + right, a.shape + b.shape, strict=True))
    stacked = matmul(
        _as_matrices(a, left, batch, rows, inner, sizes), _as_matrices(b, right, batch, inner, columns, sizes)
    )
    made = [*batch, *rows, *columns]
    return stacked.reshape([sizes[c] for c in made]).transpose([made.index(c) for c in result])


def _without_lonely(x: Array, term: str, elsewhere: str) -> tuple[Array, str]:
    """Sum the axes that only this operand names."""
    axes = tuple(axis for axis, letter in enumerate(term) if letter not in elsewhere)
    kept = "".join(letter for letter in term if letter in elsewhere)
    return (x.sum(axis=axes, dtype=x.dtype), kept) if axes else (x, term)


def _as_matrices(
    x: Array, term: str, batch: Sequence[str], rows: Sequence[str], columns: Sequence[str], sizes: dict[str, int]
) -> Array:
    """(*batch, rows, columns), each of the two one axis."""
    moved = x.transpose([term.index(letter) for letter in (*batch, *rows, *columns)])
    shape = [sizes[c] for c in batch]
    return moved.reshape(*shape, int(np.prod([sizes[c] for c in rows])), int(np.prod([sizes[c] for c in columns])))
