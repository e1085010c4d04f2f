"""What comes out of a branch or a loop: which tensors, of which types and sizes, and what they stand for outside."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from entrepot.exporters.torch.rewriting.flows import Template
from entrepot.exporters.torch.rewriting.shapes import as_tensor
from entrepot.exporters.torch.rewriting.trees import Undefined, UnlikeError


class Results:
    """The results of one operator.

    Attributes:
        templates: What they are like.
        sizes: Sizes that the templates refer to.
    """

    def __init__(self) -> None:
        self.templates: list[Template] = []
        self.sizes: list[Any] = []

    def add(self, dtype: torch.dtype, shape: Sequence[Any]) -> int:
        """Another one; sizes are numbers, sizes of torch, ``None`` where nobody knows, or names of unknown ones."""
        self.templates.append(Template(dtype, tuple(self._size(size) for size in shape)))
        return len(self.templates) - 1

    def _size(self, size: Any) -> Any:
        if size is None or type(size) in (int, str):
            return size
        self.sizes.append(size)
        return (len(self.sizes) - 1,)


def type_of(leaf: Any) -> torch.dtype:
    """The element type in which a tensor or number leaves a body."""
    if isinstance(leaf, torch.Tensor):
        return leaf.dtype
    if isinstance(leaf, bool | torch.SymBool):
        return torch.bool
    return torch.int64 if isinstance(leaf, int | torch.SymInt) else torch.float64


def as_result(leaf: Any, template: Template) -> torch.Tensor:
    """A tensor, number or nothing, as a body returns it."""
    if isinstance(leaf, Undefined):  # nobody reads it
        return torch.zeros([size if isinstance(size, int) else 1 for size in template.shape], dtype=template.dtype)
    tensor = as_tensor(leaf).to(template.dtype)
    missing = len(template.shape) - tensor.dim()
    if missing and not isinstance(leaf, torch.Tensor):
        if not all(isinstance(size, int) for size in template.shape):
            raise UnlikeError("a number becomes a tensor whose size varies")
        tensor = tensor.expand(*template.shape)
    return tensor.clone()


def outside(tensor: torch.Tensor, kind: Any) -> Any:
    """A result as the program goes on with it: a whole number as a number again."""
    return tensor.item() if isinstance(kind, int | torch.SymInt) and not isinstance(kind, bool) else tensor
