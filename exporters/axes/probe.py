"""Which axes a model really allows to vary, found by running it at other sizes.

A capture could be asked instead, but torch.export's automatic dimensions, for one, turn refusals into silently fixed
sizes. Here an axis is dynamic when the model itself accepts other sizes and its results keep their structure and rank.
Axes that fail apart and pass together are linked: they share a symbol. A size of 1 is enlarged first, if the model
allows it: otherwise broadcasting would make a tied axis look free, and the capture would take the 1 for a constant.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from entrepot.exporters.arrays import Array, Arrays
from entrepot.exporters.axes.clashing import without_clashing
from entrepot.exporters.axes.gaps import with_gaps
from entrepot.exporters.axes.groups import Axis, Group, all_axes, resized
from entrepot.exporters.axes.multiples import (
    beside_square,
    sizes_around,
    smallest_step,
    smallest_step_back,
    squares_around,
)
from entrepot.exporters.axes.ones import enlarge_ones
from entrepot.exporters.axes.related import may_be_related, related_groups
from entrepot.exporters.axes.relations import Relation, derived_groups, merged
from entrepot.exporters.axes.telling import Telling
from entrepot.exporters.axes.together import free_groups
from entrepot.exporters.exporter import Callee, Refusal, StructureRefusal
from entrepot.exporters.structure import Flat, same_structure

_MOST_ELEMENTS = 1 << 24
_LARGEST_TRIAL = 256
"""The elements of a trial: so many, or as many times those of the sample; guessed relations may ask for far more."""


class Prober:
    """Tries sizes on a model.

    Args:
        callee: The model.
        tensors: The flat sample; ``Prober.base`` becomes the same with sizes of 1 enlarged.
        result: What the model returns for it; a trial at another size must return the same structure.

    Attributes:
        sample: The flat sample as it was given.
        base: What trials change.
        relations: What follows from what: whatever is tried, these axes follow.
        clashes: Axes that vary alone but not beside each other, with how the model refuses that.
    """

    def __init__(self, callee: Callee, tensors: Sequence[Array], result: Flat) -> None:
        self._callee = callee
        self.sample = tuple(tensors)
        self.base = list(tensors)
        self.result = result
        self.relations: list[Relation] = []
        self.clashes: Mapping[Axis, Refusal] = {}
        self._open: list[Axis] | None = None
        self._totals: list[str] = []
        self._telling = Telling(callee.arrays)
        self._answers: dict[frozenset[tuple[Axis, int]], Refusal | None] = {}
        self._steps: dict[int, None] = {}
        """Those that axes have been found to vary in."""

    @property
    def shapes(self) -> list[tuple[int, ...]]:
        """The sizes of what trials change."""
        return [tuple(tensor.shape) for tensor in self.base]

    def find_groups(self, among: Sequence[Axis] | None = None) -> list[Group]:
        """Every group of axes that may vary, in the order of the inputs; symbols are not named yet.

        Args:
            among: The axes to try; by default all.
        """
        self._open = None if among is None else list(among)
        self._open_gaps()
        enlarge_ones(self)
        groups = free_groups(self)
        if may_be_related(self, groups):
            groups = related_groups(self, groups)
        if len(self.result.tensors) > 1:
            groups, self.clashes = without_clashing(self, groups)
        return derived_groups(self.relations, groups, self.sizes)

    def with_values(self, tensors: Sequence[Array]) -> Prober | None:
        """One that starts from other values at the sizes of the base; ``None`` if the model refuses them."""
        other = Prober(self._callee, tensors, self.result)
        other.relations = self.relations
        return other if other.takes({}) is None else None

    def start_from(self, tensors: Sequence[Array]) -> None:
        """Take another sample for the base, with everything that was tried forgotten if its sizes are others."""
        if any(one.shape != other.shape for one, other in zip(self.base, tensors, strict=True)):
            self.base = list(tensors)
            self.forget()
            self._open_gaps()

    def _open_gaps(self) -> None:
        """Let masks leave something out, if the model takes such masks."""
        gapped = with_gaps(self._callee.arrays, self.base)
        if gapped is not None and self.open_axes and self._run(gapped) is None:
            self.base = gapped
            self.forget()

    def said(self, tensors: Sequence[Array], equal: Sequence[Collection[Axis]]) -> list[Relation] | None:
        """What the source says that follows from what, as far as it is true of some tensors.

        Args:
            tensors: What the model takes.
            equal: Axes that are known to have one size.
        """
        found = self._callee.relations(tensors, equal)
        sizes = {axis: tensors[axis[0]].shape[axis[1]] for axis in all_axes(tensors)}
        true = [each for each in found or () if {sizes[axis] for axis in each.axes} == {each.size(sizes)}]
        return None if found is None else merged(true)

    def size(self, axis: Axis) -> int:
        """The size of an axis of the base sample."""
        return self.base[axis[0]].shape[axis[1]]

    @property
    def sizes(self) -> dict[Axis, int]:
        """The size of every axis of the base sample."""
        return {axis: self.size(axis) for axis in all_axes(self.base)}

    def completed(self, sizes: Mapping[Axis, int]) -> dict[Axis, int] | None:
        """Sizes with those that follow from them; ``None`` if there are no such sizes."""
        before, result = self.sizes, dict(sizes)
        for relation in self.relations:
            size = relation.size({**before, **sizes})
            if size is None:
                return None
            result |= {axis: size for axis in relation.axes if axis not in sizes and size != before[axis]}
        return result

    def takes(self, sizes: Mapping[Axis, int]) -> Refusal | None:
        """Run the model at changed sizes, and those that follow from them; ``None`` if it accepts them."""
        complete = self.completed(sizes)
        if complete is None:
            return Refusal(ValueError("sizes that follow from these would be negative"))
        key = frozenset(complete.items())
        if key not in self._answers:
            self._answers[key] = self._try(complete)
        return self._answers[key]

    def takes_with_small_numbers(self, sizes: Mapping[Axis, int], numbers: Sequence[int] = (1, 0)) -> bool:
        """Whether the model accepts changed sizes with other integers: lengths in a sample are no limits."""
        complete, arrays, base = self.completed(sizes), self._callee.arrays, self.base
        if complete is None:
            return False
        for number in numbers:
            self.base = [_filled(arrays, tensor, number) for tensor in base]
            try:
                if (
                    any(new is not old for new, old in zip(self.base, base, strict=True))
                    and self._try(complete) is None
                ):
                    return True
            finally:
                self.base = base
        return False

    def takes_shape(self, axes: Iterable[Axis], size: int) -> bool:
        """Whether the model accepts a size that is too large to run it with."""
        chosen = self.completed(dict.fromkeys(axes, size)) or {}
        shapes = [
            [chosen.get((index, axis), old) for axis, old in enumerate(tensor.shape)]
            for index, tensor in enumerate(self.base)
        ]
        return self._callee.takes_shapes(self.base, shapes)

    def resized(self, sizes: Mapping[Axis, int]) -> list[Array]:
        """The base at other sizes, and at those that follow from them, with integers that tell them if need be."""
        tensors = resized(self._callee.arrays, self.base, self.completed(sizes) or {})
        return self._telling.fitted(self.base, tensors)

    def with_fixed(self, groups: Iterable[Group]) -> list[Array]:
        """The base, whose axes have the sizes of the sample where they do not vary."""
        varying = frozenset[Axis]().union(*(group.axes for group in groups))
        sizes = {axis: self.sample[axis[0]].shape[axis[1]] for axis in all_axes(self.base) if axis not in varying}
        changed = {axis: size for axis, size in sizes.items() if size != self.size(axis)}
        return resized(self._callee.arrays, self.base, changed)

    def _try(self, sizes: Mapping[Axis, int]) -> Refusal | None:
        if _elements(self.base, sizes) > max(_MOST_ELEMENTS, _LARGEST_TRIAL * _elements(self.base, {})):
            return Refusal(MemoryError("what is guessed to follow from these sizes is too large to be tried"))
        tensors = self.resized(sizes)
        refusal = self._run(tensors)
        if refusal is None or self._telling.is_needed(self.base, tensors, lambda each: self._run(each) is None):
            return None
        return refusal

    def _run(self, tensors: Sequence[Array]) -> Refusal | None:
        try:
            result = self._callee(tensors)
        except Refusal as refusal:
            return refusal
        if self._comparable(result):
            return None
        return StructureRefusal()

    def fresh_sizes(self, size: int, taken: Iterable[int] = (), step: int = 1) -> list[int]:
        """Up to two larger and two smaller sizes, whole steps away; none of them happens to occur in the sample."""
        return sizes_around(size, {dim for tensor in self.base for dim in tensor.shape} | {*taken, 0, 1}, step)

    def enlarge(self, axes: Iterable[Axis], size: int) -> None:
        """Start from another size of some axes, and what follows from it."""
        self.base = self.resized(dict.fromkeys(axes, size))
        self.forget()

    def _comparable(self, result: Flat) -> bool:
        return same_structure(result.tree, self.result.tree) and all(
            len(a.shape) == len(b.shape) and a.dtype == b.dtype
            for a, b in zip(result.tensors, self.result.tensors, strict=True)
        )

    def candidates(self) -> list[Axis]:
        """The axes that are to be tried and do not follow from others."""
        following = frozenset[Axis]().union(*(relation.axes for relation in self.relations))
        return [axis for axis in self.open_axes if axis not in following]

    @property
    def open_axes(self) -> list[Axis]:
        """The axes that may vary, as far as the caller is concerned."""
        return all_axes(self.base) if self._open is None else self._open

    def forget(self) -> None:
        """Try everything anew: the base is another."""
        self._answers.clear()

    def other_sizes(self, axes: Iterable[Axis]) -> list[int]:
        """Two other sizes that the model accepts when ``axes`` have them together, or none.

        One is not enough: a pooling that rounds down accepts 29 instead of 28 without letting the axis vary.
        """
        axes = list(axes)
        return self._two_sizes(axes, self.step(axes)) or self._two_squares(axes)

    def step(self, axes: Sequence[Axis]) -> int:
        """What the sizes that the model accepts differ by; 1 unless those next to the present one are refused."""
        size = self.size(axes[0])
        near = self._two_sizes(axes, 1)
        if (near and math.gcd(*(other - size for other in near)) == 1) or self._two_squares(axes):
            return 1

        def accepts(other: int) -> bool:
            return self.takes(dict.fromkeys(axes, other)) is None

        step = smallest_step(size, accepts, lambda: not self._follows_others(axes), [*self._steps])
        step = smallest_step_back(size, accepts) if step == 1 else step
        step = 1 if step > 1 and self._follows_others(axes, step) else step
        self._steps |= {step: None} if step > 1 else {}
        return step

    def _follows_others(self, axes: Sequence[Axis], step: int = 0) -> bool:
        """Whether axes that do not take what is near, but in steps, take it with all others of their size.

        Then they are refused for being alone, not for what a size is divided by. ``x.view(rows, -1, 8)`` takes twice
        the rows as well, as rows that are twice as long.
        """
        size = self.size(axes[0])
        alike = [axis for axis in self.candidates() if self.size(axis) == size]
        together = self._two_sizes(alike, 1) if set(axes) < set(alike) else []
        return any(not step or (other - size) % step for other in together)

    def stepped(self, group: Group, beyond: int) -> Group | None:
        """The same group in steps that lead beyond a size that is refused; ``None`` if there are none.

        Sizes between the steps are left out, accepted or not.
        """
        members = sorted(group.axes)
        size = self.size(members[0])

        def accepts(other: int) -> bool:
            step = other - size
            far = beyond + (size - beyond) % step
            return all(self.takes(dict.fromkeys(members, each)) is None for each in (other, far, far + 2 * step))

        step = smallest_step(size, accepts)
        sizes = self._two_sizes(members, step) if step > 1 else []
        return replace(group, sizes=[size, *sizes], step=step) if sizes else None

    def group(self, axes: Collection[Axis], symbol: str = "", *, required: bool = False) -> Group | None:
        """Axes that vary together, with the sizes that show it; ``None`` if they do not."""
        members = sorted(axes)
        step = self.step(members)
        sizes, beside, present = self._two_sizes(members, step), None, self.size(members[0])
        if not sizes:
            sizes, beside = self._two_squares(members), beside_square(present)
        if not sizes:
            return None
        return Group(frozenset(axes), symbol, [present, *sizes], step=step, beside=beside, required=required)

    def _two_squares(self, axes: Sequence[Axis]) -> list[int]:
        sizes = squares_around(self.size(axes[0]))
        return sizes if all(self.takes(dict.fromkeys(axes, size)) is None for size in sizes) else []

    def _two_sizes(self, axes: Sequence[Axis], step: int) -> list[int]:
        sizes = self.fresh_sizes(self.size(axes[0]), step=step)
        accepted = (size for size in sizes if self.takes(dict.fromkeys(axes, size)) is None)
        found = list(itertools.islice(accepted, 2))
        if len(found) == 1:  # positions in the sample may leave no room for more
            other = (size for size in sizes if size not in found)
            # not with ones: a mask of them may not be read at all
            small = (size for size in other if self.takes_with_small_numbers(dict.fromkeys(axes, size), (0,)))
            found += itertools.islice(small, 1)
        return found if len(found) == 2 else []


def _filled(arrays: Arrays, tensor: Array, number: int) -> Array:
    """Integers alike; so are those that are a column of a table of numbers, such as the pictures that boxes are in."""
    kind = arrays.kind(tensor)
    if kind not in ("integer", "float") or (kind == "float" and (len(tensor.shape) != 2 or 0 in tensor.shape)):
        return tensor
    values = arrays.to_numpy(tensor)
    columns = ((values == np.floor(values)) & (values >= 0)).all(0) if kind == "float" else True
    return arrays.from_numpy(np.where(columns, np.asarray(number, values.dtype), values)) if np.any(columns) else tensor


def _elements(tensors: Sequence[Array], sizes: Mapping[Axis, int]) -> int:
    """The elements of tensors with some axes at other sizes."""
    shapes = ([sizes.get((at, axis), old) for axis, old in enumerate(each.shape)] for at, each in enumerate(tensors))
    return sum(map(math.prod, shapes))
