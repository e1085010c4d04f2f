"""Of equal elements, the first: what ONNX prescribes, and torch leaves open."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from entrepot.exporters.torch.upstream import TorchDispatchMode


class FirstOfEqual(TorchDispatchMode):
    """While it is on, the largest elements and the order of a sort are those of a stable sort."""

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """The operator, or its stable form."""
        return _STABLE.get(func, func)(*args, **(kwargs or {}))


def _topk(x: torch.Tensor, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> tuple[Any, ...]:
    if not x.ndim:
        return torch.topk(x, k, dim, largest)
    values, indices = torch.sort(x, dim=dim, descending=largest, stable=True)
    return values.narrow(dim, 0, k), indices.narrow(dim, 0, k)


def _sort(x: torch.Tensor, dim: int = -1, descending: bool = False, **_: bool | None) -> tuple[Any, ...]:
    """A sort that is stable, even if it is said that it need not be."""
    return torch.sort(x, dim=dim, descending=descending, stable=True)


def _argsort(x: torch.Tensor, dim: int = -1, descending: bool = False, **_: bool | None) -> torch.Tensor:
    return torch.argsort(x, dim=dim, descending=descending, stable=True)


_aten = torch.ops.aten
_STABLE: dict[Any, Callable[..., Any]] = {
    _aten.topk.default: _topk,
    _aten.sort.default: _sort,
    _aten.argsort.default: _argsort,
    _aten.sort.stable: _sort,
    _aten.argsort.stable: _argsort,
}
