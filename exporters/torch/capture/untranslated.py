"""Captures with fewer axes, where ONNX has an operator at given sizes only."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import replace

import onnx_ir
import torch

from entrepot.exporters.axes.groups import Group, settled
from entrepot.exporters.axes.probe import Prober
from entrepot.exporters.notes import FAILED, UNTRANSLATED, Fixed
from entrepot.exporters.torch.capture.flat import Capture
from entrepot.ir.errors import ConversionError, EntrepotError

REWRITTEN = "what was rewritten cannot be captured"
"""How a refusal begins that is of the capture of a branch or a loop."""


def translated(
    captured: Capture,
    prober: Prober,
    lower: Callable[[torch.export.ExportedProgram], onnx_ir.Model],
    again: Callable[[list[Group]], Capture],
) -> tuple[Capture, onnx_ir.Model]:
    """The graph of a capture, or of one along as many of its axes as can be translated.

    Args:
        captured: Along all axes that the capture allows.
        prober: Holds the sample.
        lower: Translates a program.
        again: Captures along the axes of these groups.

    Raises:
        ConversionError: It cannot be translated at the sizes of the sample either, or without an axis that is required.
    """
    try:
        return captured, lower(captured.program)
    except ConversionError as refusal:
        found = _along_some(captured.groups, prober, lower, again)
        if found is None:
            raise
        reason = Fixed(FAILED if refusal.message.startswith(REWRITTEN) else UNTRANSLATED, refusal.message)
    varying = {axis for group in found[0].groups for axis in group.axes}
    lost = {axis for group in captured.groups for axis in group.axes} - varying
    return replace(found[0], fixed={**captured.fixed, **found[0].fixed, **dict.fromkeys(lost, reason)}), found[1]


def _along_some(
    groups: Sequence[Group],
    prober: Prober,
    lower: Callable[[torch.export.ExportedProgram], onnx_ir.Model],
    again: Callable[[list[Group]], Capture],
) -> tuple[Capture, onnx_ir.Model] | None:
    """Along no axis that is not required at first, then along one more after the other."""

    def tried(without: Sequence[Group]) -> tuple[Capture, onnx_ir.Model] | None:
        kept = settled(
            [group for group in copy.deepcopy(list(groups)) if group.symbol not in names(without)], prober.base
        )
        try:
            captured = again(kept)
            return captured, lower(captured.program)
        except EntrepotError:
            return None

    def names(some: Sequence[Group]) -> set[str]:
        return {group.symbol for group in some}

    without = [group for group in groups if group.formula is None and not group.required]
    best = tried(without) if without else None
    for group in list(without) if best is not None and len(without) > 1 else ():
        fewer = [each for each in without if each is not group]
        if (found := tried(fewer)) is not None:
            best, without = found, fewer
    return best
