"""Which operation, on which line of the user's code, fixed an axis or stopped the capture."""

from __future__ import annotations

import contextlib
import re
import traceback
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch

from entrepot.exporters.torch.capture.casts import casts_followed
from entrepot.exporters.torch.capture.decided import decisions_followed
from entrepot.exporters.torch.capture.extremes import extremes_followed
from entrepot.exporters.torch.capture.flexible import flexible_attention
from entrepot.exporters.torch.capture.held import held_values
from entrepot.exporters.torch.capture.moving import modules_stay
from entrepot.exporters.torch.capture.numpy_arrays import numpy_of_sizes
from entrepot.exporters.torch.capture.orders import orders_of_the_sample
from entrepot.exporters.torch.capture.rewriting import Rewriting, decided_flags
from entrepot.exporters.torch.capture.rounding import remainders_by_nothing, rounded_sizes
from entrepot.exporters.torch.capture.settings import capture_settings
from entrepot.exporters.torch.capture.settled import settled_weights
from entrepot.exporters.torch.capture.sparing import sparing
from entrepot.exporters.torch.capture.sparse_weights import sparse_laid_open
from entrepot.exporters.torch.capture.uncompiled import uncompiled
from entrepot.exporters.torch.capture.upstream import factors_stay_numbers, transforms_ended
from entrepot.exporters.torch.capture.watching import Watch
from entrepot.exporters.torch.lowering.custom import foreign_operator
from entrepot.exporters.torch.messages import is_about_sizes, is_about_transforms, is_about_values
from entrepot.exporters.torch.quantised.mode import quantised
from entrepot.exporters.torch.rewriting.reading import named_weights
from entrepot.exporters.torch.rewriting.stored import forget_stores, stores_begun, stores_put_back
from entrepot.exporters.torch.rewriting.substitution import substitutions_solved
from entrepot.exporters.torch.running.errors import MODEL_ERRORS
from entrepot.exporters.torch.running.guard import quiet
from entrepot.exporters.torch.running.spotting import user_line
from entrepot.exporters.torch.scripts.parts import scripts_opened
from entrepot.exporters.torch.translations.packing import padded_recurrences
from entrepot.exporters.torch.upstream import (
    SizeNotes,
    custom_operator,
    export_with,
    has_transforms,
    masks_as_they_are,
    size_notes,
    unchecked_distributions,
    unsolved_divisions,
)
from entrepot.ir.errors import ConversionError, EntrepotError, UnsupportedOpError

if TYPE_CHECKING:
    from entrepot.exporters.axes.groups import Axis, Group
    from entrepot.exporters.torch.capture.flat import FlatModule

DIM_SUFFIX = "__axis"
"""Suffix of names for torch.export, which reads them as formulas: ``sequence`` or ``N`` would be functions."""


def plain(error: BaseException) -> str:
    """The text of an error of torch.export, with our names for the symbols."""
    return str(error).replace(DIM_SUFFIX, "")


def captured_blame(
    error: BaseException,
    flat: FlatModule,
    tensors: Sequence[torch.Tensor],
    groups: Sequence[Group],
    names: Sequence[str],
) -> EntrepotError:
    """The error to raise for one of torch.export's."""
    refused = [group for group in groups if re.search(rf"\b{re.escape(group.symbol)}\b", plain(error))]
    if is_about_sizes(plain(error)) and refused:
        return _axis_blame(error, flat, tensors, groups, refused[0], names)
    line = user_line(traceback.extract_tb(error.__traceback__))
    if isinstance(error, EntrepotError):
        return type(error)(f"{error.message}{_at(line)}", value=error.value, hint=error.hint)
    first = next(iter(str(error).splitlines()), type(error).__name__)
    codes = [frame.f_code for frame, _ in traceback.walk_tb(error.__traceback__)]
    operator = next(filter(None, (custom_operator(code) or foreign_operator(code) for code in codes)), "")
    if operator:
        return UnsupportedOpError(
            f"the custom operator {operator} cannot be followed{_at(line)}: {type(error).__name__}: {first}",
            hint=f'say how it is exported: ep.register_translation("{operator}", function), or make it a node by ep.op',
        )
    if is_about_values(str(error)):
        return ConversionError(
            f"forward branches on the values of a tensor{_at(line)}, which a graph cannot follow: {first}",
            hint="write a branch with torch.cond, a loop with torch.while_loop, or bound the size with torch._check",
        )
    return ConversionError(
        f"torch.export cannot capture the module{_at(line)}: {type(error).__name__}: {first}",
        hint="run torch.export.export(module, args) to see the whole traceback",
    )


def _axis_blame(
    error: BaseException,
    flat: FlatModule,
    tensors: Sequence[torch.Tensor],
    groups: Sequence[Group],
    group: Group,
    names: Sequence[str],
) -> ConversionError:
    line = guard_line(flat, tensors, groups, group)
    reason = next(
        (
            text.strip(" -")
            for text in plain(error).splitlines()
            if re.search(rf"\b{group.symbol}\b", text) and not text.startswith("Constraints")
        ),
        "",
    )
    return required_blame(group, line, reason, names)


def required_blame(group: Group, line: str, reason: str, names: Sequence[str]) -> ConversionError:
    """The error to raise for a group that has to vary and does not, because of a line of the user's, if known."""
    where = " and ".join(f"axis {axis} of '{names[index]}'" for index, axis in sorted(group.axes))
    return ConversionError(
        f"{where} cannot be dynamic as '{group.symbol}'{_fixed_at(line)}: {reason}",
        value=names[min(group.axes)[0]],
        hint="leave it out of dynamic, or use x.shape in that line instead of Python numbers computed from it",
    )


def guard_line(flat: FlatModule, tensors: Sequence[torch.Tensor], groups: Sequence[Group], group: Group) -> str:
    """The user's line that fixed a group in a capture that failed, found by capturing again if it did not begin."""
    if not flat.noted:
        automatic = {axis: torch.export.Dim.AUTO for each in groups for axis in each.axes}
        with contextlib.suppress(*MODEL_ERRORS):
            export_flat(flat, tensors, automatic)
    return _line(flat.noted[0](), tensors, group) if flat.noted else ""


def noted_line(program: torch.export.ExportedProgram, tensors: Sequence[torch.Tensor], group: Group) -> str:
    """The same, where there is a capture already, made with ``tensors``."""
    return _line(size_notes(program), tensors, group)


def _line(notes: SizeNotes, tensors: Sequence[torch.Tensor], group: Group) -> str:
    size = tensors[min(group.axes)[0]].shape[min(group.axes)[1]]
    for guard in notes.guards:
        if size in {notes.sizes.get(symbol) for symbol in guard.condition.free_symbols}:
            return (
                user_line([guard.place]) if isinstance(guard.place, traceback.FrameSummary) else str(guard.place or "")
            )
    return ""


def export_flat(
    flat: torch.nn.Module, tensors: Sequence[torch.Tensor], dims: Mapping[Axis, Any], watch: Watch | None = None
) -> torch.export.ExportedProgram:
    """``torch.export.export`` with ``dims`` for some axes of the flat tensors, the others fixed.

    Raises:
        CaptureEnded: ``watch`` found that it is of no use.
    """
    with casts_followed(flat) as met:
        try:
            with stores_put_back(flat):
                return _exported(flat, tensors, dims, watch)
        except MODEL_ERRORS:
            if not met.sizes:
                raise
    if watch is not None:  # what it does with a size may need a number of Python
        watch.begin_again()
    with stores_put_back(flat):
        return _exported(flat, tensors, dims, watch)


def _exported(
    flat: torch.nn.Module, tensors: Sequence[torch.Tensor], dims: Mapping[Axis, Any], watch: Watch | None
) -> torch.export.ExportedProgram:
    if (decisions := decisions_followed()) is not None:
        decisions.look(tensors)
    spec: list[dict[int, Any]] = [{} for _ in tensors]
    for (index, axis), dim in dims.items():
        spec[index][axis] = dim
    upstream = masks_as_they_are(), unchecked_distributions(), unsolved_divisions()
    flags = (
        transforms_ended(),
        numpy_of_sizes(),
        decided_flags(),
        flexible_attention(),
        remainders_by_nothing(),
        rounded_sizes(),
        extremes_followed(),
        orders_of_the_sample(),
        padded_recurrences(),
        modules_stay(),
        uncompiled(),
        factors_stay_numbers(),
        *upstream,
    )
    forget_stores()
    with quiet(), scripts_opened(flat), settled_weights(flat), quantised(flat), contextlib.ExitStack() as stack:
        for flag in (
            *flags,
            sparse_laid_open(flat),
            Rewriting(),
            held_values(flat),
            named_weights(flat),
            stores_begun(flat),
            substitutions_solved(flat),
            capture_settings(),
        ):
            stack.enter_context(flag)
        stack.enter_context(sparing(watch.node_made if watch else None))
        stack.enter_context(watch.watching() if watch else contextlib.nullcontext())
        return _program(flat, tuple(tensors), (tuple(spec),))


def _program(flat: torch.nn.Module, tensors: tuple[torch.Tensor, ...], shapes: Any) -> torch.export.ExportedProgram:
    """Captured before gradients are computed, or, where forward itself transforms functions, after that."""
    try:
        program = torch.export.export(flat, tensors, dynamic_shapes=shapes, strict=False)
    except (AttributeError, RuntimeError) as error:
        if not is_about_transforms(str(error)):
            raise
    else:
        if not has_transforms(program):
            return program
    return export_with(flat, tensors, dynamic_shapes=shapes, strict=False, pre_dispatch=False)


def _at(line: str) -> str:
    return f" at {line}" if line else ""


def _fixed_at(line: str) -> str:
    return f", which is fixed at {line}" if line else ""
