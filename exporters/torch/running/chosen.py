"""A module that chooses the elements which a graph has chosen, where they are as large as those of its own choice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch

from entrepot.exporters.torch.upstream import TorchDispatchMode
from entrepot.parity.scale import typical_magnitude
from entrepot.parity.tolerance import default_tolerance

_APART = 8 * float(torch.finfo(torch.float32).eps)
"""Up to what part of the largest double elements count as equal: single precision does not tell them apart."""


class ChoosingAs(TorchDispatchMode):
    """While it is on, the largest elements and the order of a sort are those of a graph, one call after the other.

    Args:
        choices: The places that each has chosen. What is smaller than the module's own choice at any rank is not taken.
    """

    def __init__(self, choices: Sequence[np.ndarray]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._left = [torch.from_numpy(np.array(each, np.int64)) for each in choices]

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """The operator, with the places of the next choice."""
        result = func(*args, **(kwargs or {}))
        if func not in _AXES or not self._left:
            return result
        own, places = result
        choice, at = self._left.pop(0), _AXES[func]
        dim = args[at] if len(args) > at else (kwargs or {}).get("dim", -1)
        return (args[0].gather(dim, choice), choice) if _is_as_good(args[0], own, places, choice, dim) else result


def _is_as_good(x: torch.Tensor, own: torch.Tensor, places: torch.Tensor, choice: torch.Tensor, dim: int) -> bool:
    """Whether a choice takes no place twice, and at each rank what differs by no more than rounding."""
    if not x.dim() or not x.is_floating_point() or choice.shape != places.shape or not choice.numel():
        return False
    if choice.min() < 0 or choice.max() >= x.shape[dim] or (choice.sort(dim).values.diff(dim=dim) == 0).any():
        return False
    return bool(((x.gather(dim, choice) - own).abs() <= _limit(x, own)).all())


def _limit(x: torch.Tensor, own: torch.Tensor) -> torch.Tensor:
    """By how much elements may be off: in single precision, as much as results that are compared may be."""
    if x.dtype is not torch.float32:
        return _APART * own.abs().max()
    rule = default_tolerance(np.dtype(np.float32)).at_scale(typical_magnitude(x.detach().numpy()))
    return rule.atol + rule.rtol * own.abs()


_aten = torch.ops.aten
_AXES: dict[Any, int] = {_aten.topk.default: 2, _aten.sort.default: 1, _aten.sort.stable: 1}
"""Where each operator has its axis, if that is not given by name."""
