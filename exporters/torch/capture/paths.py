"""A module captured at certain sizes, with the conditions on sizes that this capture relies on."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from entrepot.exporters.axes.groups import Axis, Group
from entrepot.exporters.paths.expression import Expression
from entrepot.exporters.torch.capture.blame import export_flat
from entrepot.exporters.torch.upstream import size_notes

_WORD = re.compile(r"[A-Za-z_]\w*")


def capture_automatic(
    flat: torch.nn.Module, tensors: Sequence[torch.Tensor], groups: Sequence[Group]
) -> torch.export.ExportedProgram:
    """The module as it behaves at the sizes of ``tensors``; an axis that it makes a constant of becomes one."""
    dims = {axis: torch.export.Dim.AUTO for group in groups for axis in group.axes}
    return export_flat(flat, tensors, dims)


def conditions_of(program: torch.export.ExportedProgram, groups: Sequence[Group]) -> list[Expression]:
    """What a capture with automatic axes relied on, over the symbols of ``groups``.

    Raises:
        ValueError: There is a condition that cannot be written so.
    """
    notes = size_notes(program)
    by_axis = {axis: _term(group.symbol) for group in groups for axis in group.axes}
    names = {symbol: by_axis[axis] for symbol, axis in notes.axes.items() if axis in by_axis}
    found = [_renamed(str(guard.condition), names) for guard in notes.guards]
    sizes = _sizes_of_inputs(program, by_axis)
    found += [f"Eq({by_axis[axis]}, {size})" for axis, size in sizes.items() if isinstance(size, int)]
    owners: dict[str, str] = {}
    for axis, size in sizes.items():
        if not isinstance(size, int):
            other = owners.setdefault(str(size), by_axis[axis])
            found += [f"Eq({by_axis[axis]}, {other})"] if other != by_axis[axis] else []
    return [Expression(text) for text in dict.fromkeys(found)]


def _term(symbol: str) -> str:
    return symbol if symbol.isidentifier() else f"({symbol})"


def _renamed(text: str, names: Mapping[str, str]) -> str:
    unknown = [word for word in _WORD.findall(text) if re.fullmatch(r"[su]\d+", word) and word not in names]
    if unknown:
        raise ValueError(text)
    return _WORD.sub(lambda word: names.get(word[0], word[0]), text)


def _sizes_of_inputs(program: torch.export.ExportedProgram, axes: Mapping[Axis, str]) -> dict[Axis, Any]:
    users = set(program.graph_signature.user_inputs)
    values = [node.meta.get("val") for node in program.graph.nodes if node.op == "placeholder" and node.name in users]
    found = {axis: values[axis[0]].shape[axis[1]] for axis in axes}
    return {axis: size if isinstance(size, int) else size.node.expr for axis, size in found.items()}
