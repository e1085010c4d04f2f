"""Sparse matrices that a forward makes and multiplies by, as their entries: torch.onnx (2.13) translates none.

What is known of one while a module is captured is a Python object, ``Matrix``: a product gathers a row for each entry,
and sums up those of a row. A method that it lacks is an error, which the refusal names.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch


class Matrix:
    """A sparse matrix in coordinates, perhaps with several entries at one place, which count together.

    Args:
        at: The row and the column of each entry.
        entries: What is there.
        shape: Of the matrix.
    """

    is_sparse, layout, device = True, torch.sparse_coo, torch.device("cpu")

    def __init__(self, at: torch.Tensor, entries: torch.Tensor, shape: Sequence[Any]) -> None:
        self._at, self._entries, self.shape = at, entries, tuple(shape)

    @property
    def at(self) -> torch.Tensor:
        """The row and the column of each entry."""
        return self._at

    @property
    def entries(self) -> torch.Tensor:
        """What is there."""
        return self._entries

    @classmethod
    def __torch_function__(
        cls, function: Any, types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """What torch's functions make of one."""
        form = _FORMS.get(getattr(function, "__name__", ""))
        return NotImplemented if form is None else form(*args, **(kwargs or {}))

    @property
    def dtype(self) -> torch.dtype:
        """Of its entries."""
        return self.entries.dtype

    def size(self, dim: int | None = None) -> Any:
        """Its shape, or one size of it."""
        return self.shape if dim is None else self.shape[dim]

    def dim(self) -> int:
        """It is a matrix."""
        return 2

    def coalesce(self) -> Matrix:
        """The same matrix, whose entries nobody can ask for here: torch gives each place one, in their order."""
        return self

    def t(self) -> Matrix:
        """Its transpose."""
        return Matrix(self.at.flip(0), self.entries, self.shape[::-1])

    T = property(t)

    def to(self, *args: Any, **how: Any) -> Matrix:
        """With entries of another type."""
        return Matrix(self.at, self.entries.to(*args, **how), self.shape)

    def to_dense(self) -> torch.Tensor:
        """All elements."""
        return self.entries.new_zeros(self.shape).index_put((self.at[0], self.at[1]), self.entries, accumulate=True)

    def mm(self, other: torch.Tensor) -> torch.Tensor:
        """Its product with a matrix or vector."""
        taken = other.index_select(0, self.at[1])
        weighted = self.entries.reshape(-1, *[1] * (other.dim() - 1)) * taken
        return weighted.new_zeros([self.shape[0], *other.shape[1:]]).index_add(0, self.at[0], weighted)

    matmul = mv = __matmul__ = mm

    def __rmatmul__(self, other: torch.Tensor) -> torch.Tensor:
        return self.t().mm(other.mT).mT if other.dim() > 1 else self.t().mm(other)

    def __mul__(self, number: Any) -> Matrix:
        return Matrix(self.at, self.entries * number, self.shape)

    __rmul__ = __mul__


def _product(one: Any, other: Any) -> Any:
    if isinstance(one, Matrix):
        return NotImplemented if isinstance(other, Matrix) or other.dim() > 2 else one.mm(other)
    return NotImplemented if one.dim() > 2 else other.__rmatmul__(one)


def _added(added: torch.Tensor, one: Any, other: Any, *, beta: float = 1.0, alpha: float = 1.0) -> Any:
    return beta * added + alpha * _product(one, other)


def _sum(matrix: Matrix, dim: Any = None) -> torch.Tensor:
    """Over rows or columns; torch's result is sparse, and ``to_dense`` makes this of it."""
    axes = dim if isinstance(dim, list | tuple) else [dim]
    if dim is None or len(axes) == 2:
        return matrix.entries.sum()
    left = 1 - axes[0] % 2
    return matrix.entries.new_zeros(matrix.shape[left]).index_add(0, matrix.at[left], matrix.entries)


def _transposed(matrix: Matrix, *dims: int) -> Matrix:
    return matrix if dims and (dims[0] - dims[1]) % 2 == 0 else matrix.t()


_FORMS: dict[str, Callable[..., Any]] = {
    **dict.fromkeys(("mm", "mv", "matmul", "_sparse_mm", "__matmul__"), _product),
    **dict.fromkeys(("addmm", "_sparse_addmm"), _added),
    "_sparse_sum": _sum,
    "transpose": _transposed,
    "t": _transposed,
}


def sparse_coo_tensor(indices: Any, values: Any, size: Any = None, **how: Any) -> Any:
    """A matrix of numbers whose size is given; of others, torch's."""
    indices, values = torch.as_tensor(indices), torch.as_tensor(values)
    if size is None or len(size) != 2 or values.dim() != 1:
        return torch.sparse_coo_tensor(indices, values, size, **how)
    return Matrix(indices.to(torch.int64), values.to(how.get("dtype") or values.dtype), size)


def to_sparse(input: torch.Tensor, *how: Any, **more: Any) -> Any:
    """The elements of a matrix that are not zero."""
    if how or more or input.dim() != 2:
        return torch.Tensor.to_sparse(input, *how, **more)
    at = input.nonzero().T
    return Matrix(at, input[at[0], at[1]], input.shape)


REPLACEMENTS: dict[Any, Callable[..., Any]] = {
    torch.sparse_coo_tensor: sparse_coo_tensor,
    torch.Tensor.to_sparse: to_sparse,
}
