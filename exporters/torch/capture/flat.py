"""What is captured: a module behind flat tensors, the sizes at which that is done, and what comes out."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from entrepot.exporters.axes.groups import Axis, Group, all_axes, word_axis
from entrepot.exporters.axes.probe import Prober
from entrepot.exporters.calls import call
from entrepot.exporters.notes import Fixed
from entrepot.exporters.structure import Flat, Tree, flatten, unflatten
from entrepot.exporters.torch.arrays import TORCH
from entrepot.exporters.torch.capture.decided import decisions_followed
from entrepot.exporters.torch.rewriting.environment import note_ones
from entrepot.exporters.torch.running.errors import MODEL_ERRORS
from entrepot.exporters.torch.running.stepping import Stepper
from entrepot.exporters.torch.upstream import SizeNotes, notes_while_captured

_MOST_DOUBLED = 1024  # the module is run to see if it takes twice as much


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

    Args:
        module: Called with the structure that it expects.
        tree: That structure.
        stepper: Called instead of the module, where its state is among the arguments.
        groups: The axes that vary.
        tied: Whether what follows is told at the beginning that the axes of a group are equal.

    Attributes:
        numbers: The results of the last call that were Python numbers and depend on a size.
        noted: What asks for the notes of the last capture, if one was begun in which sizes vary.
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
        self._equal = [sorted(group.axes) for group in groups if tied and group.formula is None]
        self._stepper = stepper
        self._tree = tree
        self._stepped = [group for group in groups if group.step > 1 and group.automatic]
        self._derived = [(group.axes, group.formula) for group in groups if group.formula is not None]
        self._often_one = [min(group.axes) for group in groups if group.often_one]
        self.numbers: set[str] = set()  # changed in place: torch.export takes back assignments
        self.noted: list[Callable[[], SizeNotes]] = []

    def forward(self, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Call the module with the structure it expects; the truths that it decides by, if wanted, come last."""
        if (notes := notes_while_captured(tensors)) is not None:
            self.noted[:] = [notes]
        for first, *others in self._equal:
            for axis in others:
                torch._check(_size(tensors, axis) == _size(tensors, first))  # noqa: SLF001 - documented
        for axes, formula in self._derived:
            sizes = {word: _size(tensors, word_axis(word)) for word in formula.names}
            for axis in axes:
                torch._check(_size(tensors, axis) == formula.compute(sizes))  # noqa: SLF001 - documented
        for group in self._stepped:
            torch._check(_size(tensors, min(group.axes)) % group.step == group.remainder)  # noqa: SLF001 - documented
        for axis in self._often_one:
            note_ones(_size(tensors, axis))
        args, kwargs = unflatten(self._tree, tensors)
        flat = flatten(call(self._stepper or self.module, args, kwargs, MODEL_ERRORS), arrays=TORCH)
        self.numbers.clear()
        self.numbers.update(flat.numbers)
        decisions = decisions_followed()
        return tuple(flat.tensors) if decisions is None else (*flat.tensors, *decisions.conditions)


def capture_sample(call: Flat, prober: Prober, groups: list[Group]) -> list[torch.Tensor]:
    """The sample with every dynamic axis at 2 or more, no two groups of equal size; unchanged if that is refused.

    Axes that do not vary, or no longer, have the sizes of the caller's sample, which the prober may have enlarged.
    """
    varying = {axis for group in groups for axis in group.axes}
    sizes = {axis: call.tensors[axis[0]].shape[axis[1]] for axis in all_axes(call.tensors) if axis not in varying}
    used: set[int] = set()
    for group in (group for group in groups if group.formula is None):
        choices = _choices(group, prober, used)
        wanted = (size for size in choices if size >= 2 * group.step and size not in used and group.wants(size))
        size = next(wanted, prober.size(min(group.axes)))
        used.add(size)
        sizes.update(dict.fromkeys(group.axes, size))
    changed = {axis: size for axis, size in sizes.items() if size != prober.size(axis)}
    if not groups:
        return list(call.tensors)
    return prober.resized(changed if prober.takes(changed) is None else {})


def _choices(group: Group, prober: Prober, used: Collection[int]) -> Iterator[int]:
    """Sizes for a capture, first those that divide evenly wherever that of the sample does: padding is another path."""
    first, *others = group.sizes
    yield first
    if first <= _MOST_DOUBLED and prober.takes(dict.fromkeys(group.axes, 2 * first)) is None:
        yield 2 * first
    yield from others
    yield from prober.fresh_sizes(max(group.sizes), used, group.step)


def _size(tensors: Sequence[torch.Tensor], axis: Axis) -> Any:
    return tensors[axis[0]].shape[axis[1]]
