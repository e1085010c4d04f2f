"""What the nodes of unrolled loops read, as something that holds for every iteration and every size."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import onnx_ir

from entrepot.exporters.paths.expression import Expression
from entrepot.exporters.paths.fitting import fitted
from entrepot.exporters.paths.outline import array_of
from entrepot.exporters.paths.path import Sizes
from entrepot.exporters.paths.unrolled import Key, Place, Unrolled

STEP = "step_"
"""The symbol for the number of an iteration."""

_MOST_NUMBERS = 64  # in one constant: shapes, pads and the like


class Irregular(Exception):  # noqa: N818 - an answer, not a fault
    """Iterations, or captures, differ in a way that nothing here can express.

    Attributes:
        loop: The loop whose iterations differ.
    """

    loop: int | None = None


@dataclass(frozen=True)
class Same:
    """The same value in all captures: that of the first one."""


@dataclass(frozen=True)
class Computed:
    """A constant whose elements are formulas."""

    parts: tuple[Expression | float, ...]


@dataclass(frozen=True)
class Local:
    """A value of the same iteration."""

    key: Key


@dataclass(frozen=True)
class Carried:
    """A value of the iteration before; at first another one."""

    key: Key
    first: Any
    where: Any


@dataclass(frozen=True)
class Item:
    """What one iteration of a loop made."""

    loop: int
    key: Key
    step: Expression | int


@dataclass(frozen=True)
class Last:
    """What the last iteration of a loop made."""

    loop: int
    key: Key


@dataclass(frozen=True)
class Items:
    """What the iterations of a loop made, from one to another."""

    loop: int
    key: Key
    first: Expression | int
    last: Expression | int
    whole: bool
    down: bool


Read: TypeAlias = Same | Computed | Local | Carried | Item | Last | Items
Samples: TypeAlias = Sequence[tuple[int, Sizes]]
"""For each place, its capture, and the sizes there, with the iteration where there is one."""


class Reader:
    """Reads what nodes of several captures read.

    Args:
        captures: Taken apart.
        known: Formulas that are known to occur.
    """

    def __init__(self, captures: Sequence[Unrolled], known: Sequence[Expression]) -> None:
        self._captures = captures
        self._known = known

    def outside(self, values: Sequence[onnx_ir.Value | None]) -> Read:
        """What a node that is no iteration reads; one value per capture."""
        samples = [(at, capture.path.sizes) for at, capture in enumerate(self._captures)]
        return self._read([each.place(value) for each, value in zip(self._captures, values, strict=True)], samples)

    def joined(self, inputs: Sequence[Sequence[onnx_ir.Value]]) -> list[tuple[int, Read]]:
        """What a node with any number of inputs reads, each with the first capture's number of the input."""
        runs = [
            self._runs([each.place(value) for value in mine]) for each, mine in zip(self._captures, inputs, strict=True)
        ]
        if len({len(each) for each in runs}) != 1:
            raise Irregular("a list of values differs")
        found: list[tuple[int, Read]] = []
        for together in zip(*runs, strict=True):
            if any(len(run) > 1 for run in together):
                found.append((0, self._items([list(run) for run in together])))
            else:
                values = [mine[run[0][0]] for mine, run in zip(inputs, together, strict=True)]
                found.append((together[0][0][0], self.outside(values)))
        return found

    def inside(self, loop: int, values: Sequence[Sequence[onnx_ir.Value | None]]) -> Read:
        """What a node of an iteration reads; by capture and iteration."""
        try:
            return self._inside(loop, values)
        except Irregular as reason:
            reason.loop = loop
            raise

    def _inside(self, loop: int, values: Sequence[Sequence[onnx_ir.Value | None]]) -> Read:
        places = [[each.place(value) for value in mine] for each, mine in zip(self._captures, values, strict=True)]
        flat = [place for mine in places for place in mine]
        if all(_is_of(place, loop, flat[0].key, step) for mine in places for step, place in enumerate(mine)):
            return Local(flat[0].key)
        before = places[0][-1]
        if before.kind == "loop" and before.of == loop:
            if not all(_is_of(place, loop, before.key, step) for mine in places for step, place in enumerate(mine[1:])):
                raise Irregular("an iteration reads one that is not the one before")
            first = self.outside([mine[0] for mine in values])
            return Carried(before.key, first, places[0][0])
        samples = [
            (at, {**capture.path.sizes, STEP: step})
            for at, (capture, mine) in enumerate(zip(self._captures, places, strict=True))
            for step in range(len(mine))
        ]
        return self._read(flat, samples)

    def count(self, loop: int) -> Expression | int:
        """How often a loop runs."""
        return self._number(
            [len(each.loops[loop]) for each in self._captures], [each.path.sizes for each in self._captures]
        )

    def _read(self, places: Sequence[Place], samples: Samples) -> Read:
        first = places[0]
        if any(place.kind != first.kind for place in places):
            raise Irregular("a value comes from different places")
        if first.kind == "constant":
            return self._constant(places, samples)
        if first.kind != "loop":
            if all(place == first for place in places):
                return Same()
            raise Irregular("a value comes from different nodes")
        if any((place.of, place.key) != (first.of, first.key) for place in places):
            raise Irregular("a value comes from different nodes of a loop")
        lasts = [len(self._captures[capture].loops[first.of]) - 1 for capture, _ in samples]
        if [place.step for place in places] == lasts:
            return Last(first.of, first.key)
        step = self._number([place.step for place in places], [sizes for _, sizes in samples])
        return Item(first.of, first.key, step)

    def _constant(self, places: Sequence[Place], samples: Samples) -> Read:
        arrays = [array_of(place.of) for place in places]
        first = arrays[0]
        if first is None or any(
            each is None or each.dtype != first.dtype or each.shape != first.shape for each in arrays
        ):
            raise Irregular("constants differ in type or shape")
        if all(np.array_equal(each, first, equal_nan=first.dtype.kind == "f") for each in arrays if each is not None):
            return Same()
        if first.size > _MOST_NUMBERS or first.dtype.kind not in "iuf":
            raise Irregular("large constants differ")
        columns = zip(*(np.ravel(each).tolist() for each in arrays if each is not None), strict=True)
        return Computed(tuple(self._number(column, [sizes for _, sizes in samples]) for column in columns))

    def _number(self, numbers: Sequence[Any], sizes: Sequence[Sizes]) -> Any:
        found = fitted(numbers, sizes, self._known)
        if found is None:
            raise Irregular("a number is no formula of the sizes")
        return found

    def _runs(self, places: Sequence[Place]) -> list[list[tuple[int, Place]]]:
        """Places, those of consecutive iterations together."""
        runs: list[list[tuple[int, Place]]] = []
        for at, place in enumerate(places):
            run = runs[-1] if runs else []
            if run and place.kind == "loop" and _follows(run, place):
                run.append((at, place))
            else:
                runs.append([(at, place)])
        return runs

    def _items(self, runs: Sequence[list[tuple[int, Place]]]) -> Items:
        heads, tails = [run[0][1] for run in runs], [run[-1][1] for run in runs]
        first = heads[0]
        if any((place.of, place.key) != (first.of, first.key) for place in heads):
            raise Irregular("a list of values differs")
        sizes = [each.path.sizes for each in self._captures]
        down = any(head.step > tail.step for head, tail in zip(heads, tails, strict=True))
        counts = [len(each.loops[first.of]) for each in self._captures]
        whole = not down and all(
            head.step == 0 and tail.step == count - 1 for head, tail, count in zip(heads, tails, counts, strict=True)
        )
        ends = ([place.step for place in each] for each in (heads, tails))
        return Items(first.of, first.key, *(self._number(each, sizes) for each in ends), whole, down)


def _is_of(place: Place, loop: int, key: Key, step: int) -> bool:
    return (place.kind, place.of, place.key, place.step) == ("loop", loop, key, step)


def _follows(run: Sequence[tuple[int, Place]], place: Place) -> bool:
    last = run[-1][1]
    if (last.kind, last.of, last.key) != ("loop", place.of, place.key):
        return False
    step = place.step - last.step
    return abs(step) == 1 and (len(run) == 1 or step == last.step - run[-2][1].step)
