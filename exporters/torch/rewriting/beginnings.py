"""The first rows of a tensor: ``x[:3]`` may be fewer than three, but a block that goes on with them makes three.

Where one arm of a branch does, what comes out has no size that anybody knows (a loop has a first turn by itself). So
they are three where sizes are decided as in the sample, and the capture needs as many.
"""

from __future__ import annotations

from typing import Any

import torch

from entrepot.exporters.torch.rewriting.environment import expression, hint
from entrepot.exporters.torch.rewriting.part import State
from entrepot.exporters.torch.rewriting.reaching import SIZES
from entrepot.exporters.torch.upstream import size_functions


def settle_beginnings(state: State) -> None:
    """Take variables that are first rows for as many as they are in the sample, if sizes are decided."""
    values = state.get()
    found = {at: axes for at, value in enumerate(values) if (axes := _beginnings(value))}
    SIZES.met |= bool(found)
    if found and SIZES.decide:
        state.put(tuple(_cut(value, found[at]) if at in found else value for at, value in enumerate(values)))


def _beginnings(value: Any) -> dict[int, int]:
    """The axes of a tensor that have the least of a number and a size, and that number in the sample."""
    if not isinstance(value, torch.Tensor):
        return {}
    return {axis: int(hint(size)) for axis, size in enumerate(value.shape) if _is_number_in_sample(size)}


def _is_number_in_sample(size: Any) -> bool:
    if not isinstance(size, torch.SymInt):
        return False
    least = expression(size)
    return least.func is size_functions.Min and any(each.is_Integer and each == hint(size) for each in least.args)


def _cut(tensor: torch.Tensor, axes: dict[int, int]) -> torch.Tensor:
    for axis, size in axes.items():
        tensor = tensor.narrow(axis, 0, size)
    return tensor
