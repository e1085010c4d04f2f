"""A model that is called as one side of a comparison: NumPy in, NumPy out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from entrepot.exporters.axes.groups import Group
from entrepot.exporters.exporter import Callee, Refusal, Source
from entrepot.ir.errors import InputError
from entrepot.parity.sources import SourceRefusal
from entrepot.parity.tolerance import classify

_MOST_COPIED = 1 << 29
"""Bytes of weights in float64."""


class Called:
    """A source that parity can run.

    Args:
        source: The model.
        input_names: Graph inputs, in the order of the flat arrays.
        output_names: Graph outputs, in the order of the flat results.
        groups: Axes that the caller wants, or the model takes, only at some sizes; others are refused.
    """

    def __init__(
        self, source: Source, input_names: Sequence[str], output_names: Sequence[str], groups: Sequence[Group] = ()
    ) -> None:
        self._source = source
        self._inputs = list(input_names)
        self._outputs = list(output_names)
        self._groups = groups
        self.name = source.name

    def run(self, feeds: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Call the model.

        Raises:
            SourceRefusal: It does not accept these feeds.
            InputError: It returns a different number of results than the graph.
        """
        for group in self._groups:
            index, axis = min(group.axes)
            size = feeds[self._inputs[index]].shape[axis]
            if not group.wants(size):
                raise SourceRefusal(f"{size} is not among the sizes of '{group.symbol}'")
        try:
            found = self._call(self._source, feeds)
        except Refusal as refusal:
            raise SourceRefusal(str(refusal)) from refusal
        if len(found) != len(self._outputs):
            noun = self._source.noun
            if any(np.size(value) == 0 for value in feeds.values()):
                raise SourceRefusal(f"for empty inputs, the {noun} returns something else")
            raise InputError(f"the {noun} gives {len(found)} tensors, the model {len(self._outputs)} outputs")
        return dict(zip(self._outputs, found, strict=True))

    def draw(self, feeds: Mapping[str, np.ndarray], seed: int) -> dict[str, np.ndarray]:
        """Call the model with its generators at a seed; see ``run``."""
        self._source.seed = seed
        try:
            return self.run(feeds)
        finally:
            self._source.seed = 0

    def steps(self, feeds: Mapping[str, np.ndarray]) -> dict[str, float]:
        """How far each result may move where the model rounds to steps; empty if it is not known to do so."""
        unsteadiness = getattr(self._source, "unsteadiness", None)
        if unsteadiness is None:
            return {}
        try:
            found = unsteadiness([self._source.arrays.from_numpy(feeds[name]) for name in self._inputs])
        except Refusal:
            return {}
        return dict(zip(self._outputs, found, strict=False))

    def first_of_equal(self, feeds: Mapping[str, np.ndarray]) -> dict[str, np.ndarray] | None:
        """What the model computes where it chooses the first of equal elements; ``None`` if it cannot be told to."""
        choosing = getattr(self._source, "first_of_equal", None)
        if choosing is None:
            return None
        try:
            with choosing():
                return self.run(feeds)
        except SourceRefusal:
            return None

    @property
    def counts_turns(self) -> bool:
        """Whether a loop that never ends is a refusal."""
        return self._source.counts_turns

    @property
    def precision(self) -> np.dtype | None:
        """The least exact type that the model computes in, where it says so."""
        return self._source.precision()

    def _call(self, callee: Callee, feeds: Mapping[str, np.ndarray]) -> list[np.ndarray]:
        flat = callee([callee.arrays.from_numpy(feeds[name]) for name in self._inputs])
        return [callee.arrays.to_numpy(array) for array in flat.tensors]


class CalledExactly(Called):
    """One that can be called in float64 as well."""

    _double: Callee | None = None

    def exact(self, feeds: Mapping[str, np.ndarray]) -> dict[str, np.ndarray] | None:
        """Call the model's form in float64; ``None`` if it is too large, or insists on another type."""
        source: Any = self._source
        try:
            self._double = self._double or source.in_double(_MOST_COPIED)
            found = self._call(self._double, {name: _widened(feeds[name]) for name in self._inputs})
        except Refusal:
            return None
        return dict(zip(self._outputs, found, strict=True)) if len(found) == len(self._outputs) else None

    def choosing(self, feeds: Mapping[str, np.ndarray], choices: Sequence[np.ndarray]) -> dict[str, np.ndarray] | None:
        """Call the model where it chooses as a graph has; ``None`` if it cannot be told to."""
        choosing = getattr(self._source, "choosing_as", None)
        if choosing is None:
            return None
        try:
            with choosing(choices):
                return self.run(feeds)
        except SourceRefusal:
            return None

    def exact_choosing(
        self, feeds: Mapping[str, np.ndarray], choices: Sequence[np.ndarray]
    ) -> dict[str, np.ndarray] | None:
        """The same in float64."""
        choosing = getattr(self._source, "choosing_as", None)
        if choosing is None:
            return None
        with choosing(choices):
            return self.exact(feeds)


def called(source: Source, input_names: Sequence[str], output_names: Sequence[str], groups: Sequence[Group]) -> Called:
    """The source for a comparison, by what it can do."""
    kind = CalledExactly if hasattr(source, "in_double") else Called
    return kind(source, input_names, output_names, groups)


def _widened(array: np.ndarray) -> np.ndarray:
    return array.astype(np.float64) if classify(np.asarray(array).dtype) == "float" else array
