"""Sizes that a captured program does not follow, found by running it: before it is translated, which takes longer.

A model may look at a mask only where it has gaps, or cut it to what it needs, and so take one of any length; its graph
indexes the mask with the positions of the tokens.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from torch.export.graph_signature import InputKind, InputSpec

from entrepot.exporters.axes.groups import Axis, Group
from entrepot.exporters.axes.probe import Prober
from entrepot.exporters.axes.together import bound_groups
from entrepot.exporters.torch.running.errors import MODEL_ERRORS


def bound_by_program(
    program: torch.export.ExportedProgram, prober: Prober, groups: Sequence[Group]
) -> list[Group] | None:
    """The groups with two of them bound together, where a program takes no other size of one alone; else ``None``.

    Args:
        program: As it was captured, at the sizes of ``groups`` or with all of them open.
        prober: Knows what the module takes.
        groups: The axes that vary in the program.
    """
    together = ((group, bound_groups(prober, group, groups)) for group in groups if group.single and not group.required)
    candidates = [(group, bound) for group, bound in together if bound is not None]
    if not candidates or not _runs(program, prober, {}):
        return None
    return next((bound for group, bound in candidates if not all(_takes(program, prober, group))), None)


def _takes(program: torch.export.ExportedProgram, prober: Prober, group: Group) -> Iterator[bool]:
    """Whether a program runs at each size of a group that the module takes, within the bounds of the capture."""
    for size in group.sizes[1:]:
        if group.bounds["min"] <= size <= group.bounds.get("max", size):
            yield _runs(program, prober, dict.fromkeys(group.axes, size))


def _runs(program: torch.export.ExportedProgram, prober: Prober, sizes: Mapping[Axis, int]) -> bool:
    given = iter(prober.resized(sizes))
    values = [_value(program, spec, given) for spec in program.graph_signature.input_specs]
    if any(isinstance(value, torch.Tensor) and value.is_meta for value in values):
        return not sizes  # there is nothing to run it with
    try:
        with torch.no_grad():
            torch.fx.Interpreter(program.graph_module).run(*values)
    except MODEL_ERRORS:
        return False
    return True


def _value(program: torch.export.ExportedProgram, spec: InputSpec, given: Iterator[Any]) -> Any:
    """What an input is run with; what the program may write into is copied."""
    if spec.kind is InputKind.USER_INPUT:
        return next(given).clone()
    assert spec.target is not None
    if spec.kind is InputKind.PARAMETER:
        return program.state_dict[spec.target]
    known = program.state_dict if spec.target in program.state_dict else program.constants
    value = known[spec.target]
    return value.clone() if isinstance(value, torch.Tensor) else value
