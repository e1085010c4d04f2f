"""Python's slices of several axes, as TensorFlow's masks write them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from entrepot.exporters.building import Builder
from entrepot.exporters.tensorflow.node import Node
from entrepot.exporters.tensorflow.sizes import END, int64, joined


@dataclass(frozen=True)
class Strides:
    """What each entry of a slice does.

    Attributes:
        axes: The axis of each entry that takes part of one, by the entry's place.
        steps: How far apart elements are, by the entry's place.
        single: Entries that take one element.
        whole: Entries that begin, or end, where the axis does.
        new: Where there are new axes in the result.
    """

    axes: dict[int, int]
    steps: dict[int, int]
    single: frozenset[int]
    whole: tuple[frozenset[int], frozenset[int]]
    new: tuple[int, ...]

    @classmethod
    def of(cls, node: Node, rank: int, strides: Any) -> Strides:
        """Read the masks of a node."""
        count = len(strides)
        masked = {name: _bits(node[f"{name}_mask"], count) for name in ("begin", "end", "ellipsis", "new_axis")}
        ellipsis = min(masked["ellipsis"], default=count)
        new_axes = masked["new_axis"] - {ellipsis}
        single = _bits(node["shrink_axis_mask"], count) - new_axes - {ellipsis}
        taken = count - len(new_axes) - (ellipsis < count)
        axes: dict[int, int] = {}
        new, axis, place = [], 0, 0
        for at in range(count):
            if at == ellipsis:
                axis, place = axis + rank - taken, place + rank - taken
            elif at in new_axes:
                new.append(place)
                place += 1
            else:
                axes[at] = axis
                axis, place = axis + 1, place + (at not in single)
        steps = {at: int(strides[at]) for at in axes}
        return cls(axes, steps, single, (masked["begin"], masked["end"]), tuple(new))

    def sliced(self, build: Builder, x: Any, begin: Any, end: Any) -> Any:
        """The slice of a value."""
        starts, ends = _Bounds(build, begin), _Bounds(build, end)
        entries = [at for at in self.axes if not self._everything(at)]
        if entries:
            first = [self._start(starts, at) for at in entries]
            last = [self._end(starts, ends, at) for at in entries]
            x = build.op(
                "Slice", x, joined(build, *first), joined(build, *last), [self.axes[at] for at in entries],
                [1 if at in self.single else self.steps[at] for at in entries],
            )  # fmt: skip
        if self.single:
            x = build.op("Squeeze", x, sorted(self.axes[at] for at in self.single))
        if self.new:
            x = build.op("Unsqueeze", x, list(self.new))
        return x if entries or self.single or self.new else build.op("Identity", x)

    def _everything(self, at: int) -> bool:
        return at not in self.single and self.steps[at] == 1 and all(at in masked for masked in self.whole)

    def _start(self, starts: _Bounds, at: int) -> Any:
        if at in self.whole[0] and at not in self.single:
            return [0 if self.steps[at] > 0 else END]
        return starts.entry(at)

    def _end(self, starts: _Bounds, ends: _Bounds, at: int) -> Any:
        if at in self.single:
            return starts.after(at)
        if at in self.whole[1]:
            return [END if self.steps[at] > 0 else -END]
        return ends.entry(at)


class _Bounds:
    """Where a slice begins or ends, entry by entry."""

    def __init__(self, build: Builder, value: Any) -> None:
        self._build, self._value = build, value
        self._known = None if value.const_value is None else [int(each) for each in value.const_value.numpy()]

    def entry(self, at: int) -> Any:
        if self._known is not None:
            return [self._known[at]]
        return int64(self._build, self._build.op("Slice", self._value, [at], [at + 1], [0]))

    def after(self, at: int) -> Any:
        """The next element; that after the last one, counted from the end, is the end."""
        if self._known is not None:
            return [END if self._known[at] == -1 else self._known[at] + 1]
        entry = self.entry(at)
        return self._build.op("Where", self._build.op("Equal", entry, -1), END, self._build.op("Add", entry, 1))


def _bits(mask: int, count: int) -> frozenset[int]:
    return frozenset(int(at) for at in np.flatnonzero([mask >> place & 1 for place in range(count)]))
