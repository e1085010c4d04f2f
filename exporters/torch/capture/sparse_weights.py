"""Sparse matrices that a module keeps, such as the edges of a graph: a capture finds their entries in their places."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import torch

from entrepot.exporters.torch.running.sparse import coordinates, is_sparse
from entrepot.exporters.torch.running.swapping import put_back
from entrepot.exporters.torch.translations.sparse import Matrix


class Kept(Matrix):
    """A sparse matrix as two buffers of a module, with each place once.

    Args:
        owner: The module.
        name: What the names of the buffers begin with.
        shape: Of the matrix.
    """

    def __init__(self, owner: torch.nn.Module, name: str, shape: Sequence[int]) -> None:
        self._owner, self._name, self.shape = owner, name, tuple(shape)

    @classmethod
    def of(cls, owner: torch.nn.Module, name: str, value: torch.Tensor) -> Kept:
        """Give a module the buffers."""
        buffers = owner._buffers  # noqa: SLF001
        buffers[f"{name}_indices"], buffers[f"{name}_values"] = coordinates(value)
        return cls(owner, name, value.shape)

    @property
    def at(self) -> torch.Tensor:
        """The row and the column of each entry."""
        return self._kept("indices")

    @property
    def entries(self) -> torch.Tensor:
        """What is there."""
        return self._kept("values")

    def _kept(self, part: str) -> torch.Tensor:
        kept: torch.Tensor = getattr(self._owner, f"{self._name}_{part}")
        return kept

    def indices(self) -> torch.Tensor:
        """The row and the column of each entry."""
        return self.at

    def values(self) -> torch.Tensor:
        """What is there."""
        return self.entries

    _indices, _values = indices, values


@contextlib.contextmanager
def sparse_laid_open(root: torch.nn.Module) -> Iterator[None]:
    """Inside, no module in another keeps a sparse matrix as such."""
    parts = [part for part in root.modules() if not isinstance(part, torch.jit.ScriptModule)]
    owners = [part for part in parts if any(map(_holds_some, _tables(part)))]
    with put_back(owners):
        for part in owners:
            for table in _tables(part):
                _lay_open(part, table)
        yield


def _tables(part: torch.nn.Module) -> tuple[dict[str, Any], ...]:
    return part._buffers, part._parameters, vars(part)  # noqa: SLF001


def _holds_some(table: dict[str, Any]) -> bool:
    return any(
        is_sparse(value) or (type(value) in (list, tuple) and any(map(is_sparse, value))) for value in table.values()
    )


def _lay_open(part: torch.nn.Module, table: dict[str, Any]) -> None:
    for name, value in list(table.items()):
        if _is_matrix(value):
            del table[name]
            vars(part)[name] = Kept.of(part, name, value)
        elif type(value) in (list, tuple) and any(map(_is_matrix, value)):
            items = [Kept.of(part, f"{name}_{at}", each) if _is_matrix(each) else each for at, each in enumerate(value)]
            table[name] = type(value)(items)


def _is_matrix(value: Any) -> bool:
    return is_sparse(value) and value.dim() == 2 and value.dense_dim() == 0
