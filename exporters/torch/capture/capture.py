"""A module as a ``torch.export.ExportedProgram`` whose dynamic axes are those that were found to vary."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from entrepot.exporters.axes.conditions import holding_range
from entrepot.exporters.axes.groups import Axis, Group, all_axes, axis_name, axis_word, resized, word_axis
from entrepot.exporters.axes.groups import settled as still_varying
from entrepot.exporters.axes.probe import Prober
from entrepot.exporters.axes.related import tied_groups
from entrepot.exporters.notes import CAPTURED, Fixed
from entrepot.exporters.structure import Flat, Tree, flatten, unflatten
from entrepot.exporters.torch.arrays import TORCH
from entrepot.exporters.torch.capture.automatic import Broken, broken_condition
from entrepot.exporters.torch.capture.blame import DIM_SUFFIX, captured_blame, export_flat, guard_line, plain
from entrepot.exporters.torch.running.eager import MODEL_ERRORS
from entrepot.exporters.torch.running.stepping import Stepper
from entrepot.exporters.torch.upstream import (
    of_size,
    specialised,
    suggested_bounds,
    suggested_fixes,
    unmet_conditions,
)
from entrepot.ir.errors import ConversionError, EntrepotError
from entrepot.ir.typing.formula import Formula

_MOST_ATTEMPTS = 12  # each attempt settles at least one axis; more attempts mean that settling does not converge


@dataclass
class Capture:
    """What torch.export made of a module.

    Attributes:
        program: The graph.
        tensors: The flat sample it was captured with.
        groups: The axes that are dynamic in it.
        fixed: Axes that the module allows to vary but the graph does not, each with the reason.
        numbers: Results that are Python numbers in the module but outputs of the graph, because they depend on a size.
    """

    program: torch.export.ExportedProgram
    tensors: list[torch.Tensor]
    groups: list[Group]
    fixed: dict[Axis, Fixed] = field(default_factory=dict)
    numbers: frozenset[str] = frozenset()


class FlatModule(torch.nn.Module):
    """A module behind a signature of flat tensors.

    Attributes:
        numbers: The results of the last call that were Python numbers and depend on a size.
    """

    def __init__(
        self,
        module: torch.nn.Module,
        tree: Tree,
        stepper: Stepper | None = None,
        groups: Sequence[Group] = (),
        *,
        tied: bool = False,
    ) -> None:
        super().__init__()
        self.module = module
        self._stepper = stepper
        self._tree = tree
        self._stepped = [group for group in groups if group.step > 1 and group.automatic]
        self._derived = [(group.axes, group.formula) for group in groups if group.formula is not None]
        self._equal = [sorted(group.axes) for group in groups if tied and group.formula is None]
        self.numbers: set[str] = set()  # changed in place: torch.export takes back assignments

    def forward(self, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Call the module with the structure it expects."""
        for axes, formula in self._derived:
            sizes = {word: _size(tensors, word_axis(word)) for word in formula.names}
            for axis in axes:
                torch._check(_size(tensors, axis) == formula.compute(sizes))  # noqa: SLF001 - documented
        for first, *others in self._equal:
            for axis in others:
                torch._check(_size(tensors, first) == _size(tensors, axis))  # noqa: SLF001 - documented
        for group in self._stepped:
            torch._check(_size(tensors, min(group.axes)) % group.step == group.remainder)  # noqa: SLF001 - documented
        args, kwargs = unflatten(self._tree, tensors)
        flat = flatten((self._stepper or self.module)(*args, **kwargs), arrays=TORCH)
        self.numbers.clear()
        self.numbers.update(flat.numbers)
        return tuple(flat.tensors)


def capture(
    module: torch.nn.Module,
    call: Flat,
    prober: Prober,
    groups: list[Group],
    *,
    progress: Callable[[str], None],
    stepper: Stepper | None = None,
    tied: bool = False,
) -> Capture:
    """Capture ``module`` with the axes of ``groups`` dynamic.

    Args:
        module: In evaluation mode.
        call: The flat sample.
        prober: Holds the enlarged sample and knows what the module accepts.
        groups: Axes to make dynamic; one that cannot be is an error if it is required, and otherwise fixed at the size
            in the sample.
        progress: Told which axes were given up.
        stepper: What is called instead of the module, where its state is among the arguments.
        tied: Whether what follows is told at the beginning that the axes of a group are equal.

    Raises:
        ConversionError: The module cannot be captured, or an axis that is required cannot be dynamic.
    """
    fixed: dict[Axis, Fixed] = {}
    first: EntrepotError | None = None
    settled: tuple[list[Group], list[tuple[Group, str]]] | None
    for _ in range(_MOST_ATTEMPTS):
        tensors = _capture_sample(call, prober, groups)
        flat = FlatModule(module, call.tree, stepper, groups, tied=tied)
        flat.training = False
        _leave_open(groups)
        try:
            program = _export(flat, tensors, groups)
            broken = [(group, why) for group in groups if group.automatic and (why := broken_condition(program, group))]
            if not broken:
                return Capture(program, tensors, groups, fixed, frozenset(flat.numbers))
            settled = _without_broken(groups, broken, prober)
        except MODEL_ERRORS as error:
            required = {group.symbol for group in groups if group.required}
            settled = _settle(plain(error), groups, prober, tensors)
            if settled is None:
                first = first or captured_blame(error, flat, tensors, groups, call.names)
                settled = _fewer(groups, prober, first)
            if settled is None or required - {group.symbol for group in settled[0]}:
                raise first or captured_blame(error, flat, tensors, groups, call.names) from error
        before, (groups, reasons) = groups, settled
        groups = still_varying(groups, prober.base)
        for group, reason in reasons:
            line = guard_line(flat, tensors, [*before, group], group)
            for axis in sorted(group.axes):
                fixed[axis] = Fixed(CAPTURED, reason, line)
                progress(f"axis {axis_name(axis, call.names)} is fixed: {fixed[axis]}")
    raise ConversionError(
        "torch.export kept refusing the dynamic axes", hint="name them yourself: dynamic={...} or dynamic=False"
    )


def _without_broken(
    groups: list[Group], broken: Sequence[tuple[Group, Broken]], prober: Prober
) -> tuple[list[Group], list[tuple[Group, str]]]:
    """What to try when a capture holds for some sizes only: where others matter, axes of one size bound, else fewer.

    Raises:
        ConversionError: An axis is required.
    """
    for group, why in broken:
        bound = prober.bind(group, groups) if why.shared else None
        if bound is not None:
            return bound, []
    for group, why in broken:
        if group.required:
            raise ConversionError(f"'{group.symbol}' cannot be dynamic: {why.reason}")
    lost = [group for group, _ in broken]
    return [group for group in groups if group not in lost], [(group, why.reason) for group, why in broken]


def _fewer(
    groups: list[Group], prober: Prober, error: EntrepotError
) -> tuple[list[Group], list[tuple[Group, str]]] | None:
    """What else to try when a capture fails without a suggestion: axes of one size bound, then one axis, then none."""
    tied = tied_groups(prober, groups)
    if tied is not None:
        return tied, []
    for group in groups:
        bound = prober.bind(group, groups)
        if bound is not None:
            return bound, []
    free = [group for group in groups if group.formula is None]
    kept = free[:1] if len(free) > 1 else []
    dropped = [(group, f"the capture fails with it dynamic: {error.message}") for group in groups if group not in kept]
    return (kept, dropped) if dropped else None


def _export(flat: FlatModule, tensors: list[torch.Tensor], groups: list[Group]) -> torch.export.ExportedProgram:
    dims = {group.symbol: _dim(group) for group in groups if group.formula is None}
    dims |= {group.symbol: _derived_dim(group, dims) for group in groups if group.formula is not None}
    return export_flat(flat, tensors, {axis: dims[group.symbol] for group in groups for axis in group.axes})


def _dim(group: Group) -> Any:
    if group.automatic:
        return torch.export.Dim.AUTO(**group.bounds)
    if group.step == 1:
        return torch.export.Dim(group.symbol + DIM_SUFFIX, **group.bounds)
    bounds = {which: (bound - group.remainder) // group.step for which, bound in group.bounds.items()}
    steps = torch.export.Dim(f"{group.symbol}_by_{group.step}{DIM_SUFFIX}", **bounds | {"min": max(2, bounds["min"])})
    return group.step * steps + group.remainder if group.remainder else group.step * steps


def _leave_open(groups: Sequence[Group]) -> None:
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


def _size(tensors: Sequence[torch.Tensor], axis: Axis) -> Any:
    return tensors[axis[0]].shape[axis[1]]


def _capture_sample(call: Flat, prober: Prober, groups: list[Group]) -> list[torch.Tensor]:
    """The sample with every dynamic axis at 2 or more, no two groups of equal size; unchanged if that is refused.

    Axes that do not vary, or no longer, have the sizes of the caller's sample, which the prober may have enlarged.
    """
    varying = {axis for group in groups for axis in group.axes}
    sizes = {axis: call.tensors[axis[0]].shape[axis[1]] for axis in all_axes(call.tensors) if axis not in varying}
    used: set[int] = set()
    for group in (group for group in groups if group.formula is None):
        choices = [*group.sizes, *prober.fresh_sizes(max(group.sizes), used, group.step)]
        wanted = (size for size in choices if size >= 2 * group.step and size not in used and group.wants(size))
        size = next(wanted, prober.size(min(group.axes)))
        used.add(size)
        sizes.update(dict.fromkeys(group.axes, size))
    start = prober.base if groups else call.tensors
    changed = {axis: size for axis, size in sizes.items() if size != prober.size(axis)}
    if not changed or prober.takes(changed) is not None:
        return list(start)
    return resized(TORCH, start, prober.completed(changed) or {})


def _settle(
    message: str, groups: list[Group], prober: Prober, tensors: Sequence[torch.Tensor]
) -> tuple[list[Group], list[tuple[Group, str]]] | None:
    """Follow torch.export's conditions and suggestions; ``None`` when there are none that concern our symbols."""
    by_symbol = {group.symbol: group for group in groups if group.formula is None}
    derived = [group for group in groups if group.formula is not None]
    dropped: dict[str, str] = {}
    told = [(symbol, _range(by_symbol, symbol, text, tensors), text) for symbol, text in unmet_conditions(message)]
    told += [(symbol, bounds, "") for symbol, value in suggested_fixes(message) if (bounds := suggested_bounds(value))]
    narrowed: set[str] = set()
    for symbol, bounds, condition in told:
        if symbol in by_symbol and symbol not in dropped:
            reason = _keep_within(by_symbol[symbol], bounds, prober, narrowed)
            if reason:
                dropped[symbol] = f"the capture needs {condition}" if reason == _NO_NEWS else reason
    linked = False
    for symbol, value in suggested_fixes(message):
        if symbol not in by_symbol or symbol in dropped or symbol in narrowed or suggested_bounds(value):
            continue
        if value in by_symbol and value not in dropped and value != symbol:
            by_symbol[value].axes |= by_symbol.pop(symbol).axes
            linked = True
        else:
            dropped[symbol] = f"the capture needs {symbol} = {value}"
    for symbol in specialised(message):
        if symbol in by_symbol:
            dropped.setdefault(symbol, "forward turns it into a constant")
    reasons = [(by_symbol.pop(symbol), reason) for symbol, reason in dropped.items()]
    return ([*by_symbol.values(), *derived], reasons) if linked or narrowed or reasons else None


_NO_NEWS = "the condition is one that holds"
_COSTLY = 2048  # beyond it, what forward builds from a size may not fit into memory
_FAR = 16  # times the size in the sample


def _range(
    by_symbol: Mapping[str, Group], symbol: str, condition: str, tensors: Sequence[torch.Tensor]
) -> dict[str, int]:
    """The sizes for which a condition holds; one that is not understood is taken for one about small sizes."""
    if symbol not in by_symbol:
        return {}
    index, axis = min(by_symbol[symbol].axes)
    present = tensors[index].shape[axis]
    understood = of_size(condition, by_symbol[symbol].axes)
    found = None if understood is None else holding_range(understood, present)
    if found is None:
        return {"min": by_symbol[symbol].sizes[0]}
    smallest, largest = found
    return {"min": smallest} if largest == math.inf else {"min": smallest, "max": int(largest)}


def _keep_within(group: Group, bounds: Mapping[str, int], prober: Prober, narrowed: set[str]) -> str:
    """Narrow a group to bounds; the reason where it cannot vary within them."""
    beyond = bounds.get("max", 0) + 1
    if beyond > 1 and _is_at_stake(group, beyond) and _goes_on(group, beyond, prober):
        return f"forward takes another path from size {beyond} on"
    if _narrow(group, bounds):
        narrowed.add(group.symbol)
    elif group.symbol not in narrowed:
        if group.automatic:
            return _NO_NEWS
        group.automatic = True
        narrowed.add(group.symbol)
    if group.bounds.get("max", math.inf) <= group.bounds["min"]:
        return f"the capture needs size {group.bounds['min']}"
    return ""


def _is_at_stake(group: Group, size: int) -> bool:
    """Whether an axis may not be cut short at a size: a far one is a stated bound, unless more was asked for."""
    near = size <= min(_COSTLY, _FAR * group.sizes[0])
    return group.wants(size) and (near or group.asked[1] is not None)


def _goes_on(group: Group, size: int, prober: Prober) -> bool:
    """Whether the module accepts a size beyond a bound, and so behaves differently there."""
    if size > _COSTLY:
        return prober.takes_shape(group.axes, size)
    return prober.takes(dict.fromkeys(group.axes, size)) is None


def _narrow(group: Group, bounds: Mapping[str, int]) -> bool:
    """Add bounds to those of a group; returns whether they say anything new."""
    before = dict(group.bounds)
    group.bounds["min"] = max(bounds.get("min", 0), before.get("min", 0))
    if "max" in bounds:
        group.bounds["max"] = min(bounds["max"], before.get("max", bounds["max"]))
    return group.bounds != before
