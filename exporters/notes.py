"""What a user should know about an export that went well: sizes that are fixed and why, the mode, what was left out."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

import onnx_ir

from entrepot.exporters.axes.groups import Axis, Group, all_axes, axis_name
from entrepot.exporters.axes.probe import Prober
from entrepot.exporters.naming import output_name
from entrepot.exporters.structure import Flat, constants
from entrepot.ir.errors import ConversionError
from entrepot.ir.model import Model
from entrepot.ir.passes.absorbed import absorbing_weights
from entrepot.parity.report.facts import REFUSED, ModelFacts
from entrepot.parity.report.report import Report

CAPTURED = "the capture fixed it"
FAILED = "the capture fails with it dynamic"
UNFOLLOWED = "the graph does not follow other sizes"
UNCOMPUTED = "the source itself computes nothing but NaN and infinities at smaller sizes"
UNTRANSLATED = "ONNX has an operator at given sizes only"
UNASKED = "it was not asked to vary"
PROGRAMMED = "the program was captured so"
_REMEDIES = {
    REFUSED: "it can vary once the module takes other sizes there",
    CAPTURED: "it can vary if that code uses the size in tensor operators, not in Python branches, loops and numbers",
    FAILED: "it can vary if that code uses the size, and values of tensors, in tensor operators only, not in Python",
    UNFOLLOWED: "it can vary if what depends on its size is written with tensor operators",
    UNTRANSLATED: "it can vary if that operator is written with others, or called once for each size",
    UNASKED: "name it in dynamic to let it vary",
    PROGRAMMED: "give dynamic_shapes to torch.export.export to let it vary",
}
_SHOWN = 4
_LONGEST = 240


@dataclass(frozen=True)
class Fixed:
    """Why an axis keeps its size in the sample.

    Attributes:
        why: One of the reasons above.
        detail: What was found, in the words of whatever found it.
        line: The user's line that caused it, if known.
        beyond: The size from which on the model takes another path than the one that was captured, if that is why.
    """

    why: str
    detail: str = ""
    line: str = ""
    beyond: int = 0

    @property
    def remedy(self) -> str:
        """What would let it vary."""
        return _REMEDIES.get(self.why, "")

    def __str__(self) -> str:
        return f"{self.why}{f' at {self.line}' if self.line else ''}{f' ({self.detail})' if self.detail else ''}"


def fixed_axes(
    prober: Prober, groups: Sequence[Group], allowed: Collection[Axis], known: Mapping[Axis, Fixed]
) -> dict[Axis, Fixed]:
    """Every axis that does not vary, with the reason; none where the caller wanted none to vary.

    Args:
        prober: Knows how the module reacts to other sizes.
        groups: The axes that vary.
        allowed: The axes that the caller allows to vary.
        known: Reasons that were found along the way.
    """
    varying = {axis for group in groups for axis in group.axes}
    static = [axis for axis in all_axes(prober.base) if axis not in varying] if allowed else []
    others = {
        axis: _refused(prober, axis) if axis in allowed else Fixed(UNASKED) for axis in static if axis not in known
    }
    return others | {axis: known[axis] for axis in static if axis in known}


def _refused(prober: Prober, axis: Axis) -> Fixed:
    """How the module refuses another size of an axis that it does not allow to vary."""
    sizes = prober.fresh_sizes(prober.size(axis))
    refusal = next((found for size in sizes if (found := prober.takes({axis: size})) is not None), None)
    refusal = prober.clashes.get(axis) or refusal
    return Fixed(REFUSED) if refusal is None else Fixed(REFUSED, str(refusal), refusal.source)


def require_all(fixed: Mapping[Axis, Fixed], names: Sequence[str]) -> None:
    """Refuse axes that the model takes at other sizes and the graph does not.

    Raises:
        ConversionError: There are some; the message has them all.
    """
    ours = (CAPTURED, FAILED, UNFOLLOWED, UNTRANSLATED)
    lost = {axis: reason for axis, reason in sorted(fixed.items()) if reason.why in ours}
    if lost:
        reasons = "; ".join(f"{axis_name(axis, names)}: {_short(reason)}" for axis, reason in lost.items())
        raise ConversionError(
            f"not every axis varies that the model takes at other sizes: {reasons}",
            hint=f'{next(iter(lost.values())).remedy}; dynamic="auto" keeps such axes fixed',
        )


def add_notes(model: onnx_ir.Model, fixed: Mapping[Axis, Fixed], *others: str) -> None:
    """Write into the file why axes of its inputs are fixed, and whatever else there is to say."""
    names = {axis: f"{model.graph.inputs[axis[0]].name}.{axis[1]}" for axis in fixed}
    if fixed:
        reasons = {names[axis]: str(reason) for axis, reason in sorted(fixed.items(), key=lambda item: item[0])}
        model.metadata_props["entrepot.fixed_axes"] = json.dumps(reasons)
    notes = [note for note in others if note] + list(_about_axes(model, fixed, names))
    if notes:
        model.metadata_props["entrepot.notes"] = json.dumps(notes)


def add_note(model: Model, note: str) -> None:
    """Another note, also in the report, where there is one."""
    model.ir.metadata_props["entrepot.notes"] = json.dumps([*model.notes, note])
    if isinstance(model.report, Report):
        model.report = dataclasses.replace(model.report, facts=ModelFacts.of(model))


def constant_notes(call: Flat, result: Flat) -> list[str]:
    """Arguments and results that are not tensors, and so part of the graph instead of its inputs and outputs.

    What an object consists of besides tensors is its own affair; the description of the structure has it.
    """
    given, made = ([place for place in constants(flat.tree) if not place.inside] for flat in (call, result))
    given_texts = [f"{place.name} = {place.value!r}" for place in given if place.value is not None]
    made_texts = [f"{output_name(place.name)} = {place.value!r}" for place in made]
    notes = {"constant, so not inputs": given_texts, "constant, so not outputs": made_texts}
    return [f"{what}: {listed(names)}" for what, names in notes.items() if names]


def weight_notes(model: onnx_ir.Model) -> list[str]:
    """The weights that do the work of normalisations, too, and so are no longer those of the source."""
    names = list(dict.fromkeys(absorbing_weights(model)))
    return [f"normalisations are absorbed into weights, whose values differ: {listed(names)}"] if names else []


def limit_notes(limited: Mapping[Axis, Fixed], groups: Sequence[Group], names: Sequence[str]) -> list[str]:
    """The groups of axes of which the source takes smaller sizes than the graph, and why the graph does not."""
    found = {min(group.axes): group.asked[0] for group in groups if not group.axes.isdisjoint(limited)}
    return [
        f"{axis_name(axis, names)} is at least {least}: {_short(limited[axis])}"
        for axis, least in found.items()
        if axis in limited
    ]


def end_notes(groups: Sequence[Group], names: Sequence[str]) -> list[str]:
    """The groups of axes that end where the source takes another path, and from which size on it does."""
    found = [(group, group.bounds["max"]) for group in groups if group.bounded and "max" in group.bounds]
    return [
        f"{axis_name(min(group.axes), names)} is at most {most}: forward takes another path from size {most + 1} on"
        for group, most in found
    ]


def naming_notes(model: onnx_ir.Model, dynamic: object, names: Sequence[str]) -> list[str]:
    """The axes whose names follow from others, which the caller did not know.

    Args:
        model: The graph, named.
        dynamic: What the caller asked for.
        names: What the caller may call the inputs.
    """
    wanted = [
        (names.index(name), axis, str(symbol))
        for name, axes in (dynamic.items() if isinstance(dynamic, Mapping) else ())
        for axis, symbol in axes.items()
    ]
    found = [(f"{model.graph.inputs[at].name}.{axis}", symbol, _size(model, at, axis)) for at, axis, symbol in wanted]
    return [
        f"{place} is not '{symbol}', but has to be '{size}'"
        for place, symbol, size in found
        if symbol.isidentifier() and isinstance(size, onnx_ir.SymbolicDim) and size.value != symbol
    ]


def _about_axes(model: onnx_ir.Model, fixed: Mapping[Axis, Fixed], names: Mapping[Axis, str]) -> Iterator[str]:
    """One note for all axes that have the same reason."""
    together: dict[tuple[str, str], list[Axis]] = {}
    for axis in sorted(fixed):
        together.setdefault((fixed[axis].why, fixed[axis].line), []).append(axis)
    for axes in together.values():
        sizes = [f"{names[index, axis]} = {_size(model, index, axis)}" for index, axis in axes]
        yield f"fixed: {', '.join(sizes)}: {_short(fixed[axes[0]])}; {fixed[axes[0]].remedy}"


def _short(reason: Fixed) -> str:
    """A reason in one clause: what others say at length is in the metadata."""
    text = str(reason)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def _size(model: onnx_ir.Model, index: int, axis: int) -> object:
    shape = model.graph.inputs[index].shape
    return "?" if shape is None else shape[axis]


def listed(names: Sequence[str]) -> str:
    """The first few, and how many more there are."""
    shown = ", ".join(names[:_SHOWN])
    return shown if len(names) <= _SHOWN else f"{shown} and {len(names) - _SHOWN} more"
