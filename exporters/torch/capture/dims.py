"""Groups of axes in torch.export's terms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from entrepot.exporters.axes.groups import Group, axis_word
from entrepot.exporters.torch.capture.blame import DIM_SUFFIX, export_flat
from entrepot.exporters.torch.capture.squares import squares_known
from entrepot.exporters.torch.capture.watching import Watch
from entrepot.ir.typing.formula import Formula


def export_along(
    flat: torch.nn.Module, tensors: list[torch.Tensor], groups: Sequence[Group], watch: Watch | None = None
) -> torch.export.ExportedProgram:
    """``torch.export.export`` with the axes of ``groups`` dynamic; ``watch`` as of ``export_flat``."""
    dims = {group.symbol: _dim(group) for group in groups if group.formula is None}
    dims |= {group.symbol: _derived_dim(group, dims) for group in groups if group.formula is not None}
    grids = ((group.beside, group.axes) for group in groups if group.beside is not None)
    with squares_known({(tensors[index].shape[axis], beside) for beside, axes in grids for index, axis in axes}):
        return export_flat(flat, tensors, {axis: dims[group.symbol] for group in groups for axis in group.axes}, watch)


def _dim(group: Group) -> Any:
    if group.automatic:
        return torch.export.Dim.AUTO(**group.bounds)
    if group.step == 1:
        return torch.export.Dim(group.symbol + DIM_SUFFIX, **group.bounds)
    bounds = {which: (bound - group.remainder) // group.step for which, bound in group.bounds.items()}
    steps = torch.export.Dim(f"{group.symbol}_by_{group.step}{DIM_SUFFIX}", **bounds | {"min": max(2, bounds["min"])})
    return group.step * steps + group.remainder if group.remainder else group.step * steps


def leave_open(groups: Sequence[Group]) -> None:
    """Leave sizes to torch of which others are powers: it has no terms for these, and refuses a name for what it is."""
    powers = {group.formula.names for group in groups if group.formula is not None and group.formula.is_power}
    for group in groups:
        group.automatic |= any((axis_word(axis),) in powers for axis in group.axes)


def _derived_dim(group: Group, dims: Mapping[str, Any]) -> Any:
    """A multiple of one size in torch's terms; for the rest, ``FlatModule`` says what it follows from."""
    formula = Formula.of(group.symbol)
    factor, offset = (formula and formula.slope()) or (0, 0)
    root = dims.get(formula.names[0]) if formula is not None and factor > 0 else None
    if not isinstance(root, torch.export.Dim):
        return torch.export.Dim.AUTO
    return factor * root + offset if offset else factor * root
