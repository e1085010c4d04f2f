"""What can be called, traced and translated with as many open axes as it allows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from entrepot.exporters.arrays import Array
from entrepot.exporters.axes.groups import Axis, Group
from entrepot.exporters.calls import MODEL_ERRORS
from entrepot.exporters.notes import CAPTURED, Fixed
from entrepot.exporters.tensorflow.arrays import tensor_of
from entrepot.exporters.tensorflow.translation import Translated, translated
from entrepot.exporters.tensorflow.upstream import reason_of
from entrepot.exporters.tree import Flat
from entrepot.ir.errors import ConversionError

if TYPE_CHECKING:
    from entrepot.exporters.tensorflow.sources.callable import CallableSource

FAILURES: tuple[type[Exception], ...] = (*MODEL_ERRORS, tf.errors.OpError)
"""What a user's function may raise."""
_CHANNELS = "a convolution has as many groups as its image has channels for"


class Tracing:
    """The traces of a source.

    Args:
        source: It.
        sample: What it is called with.
        result: What that call returns.
    """

    def __init__(self, source: CallableSource, sample: Sequence[Array], result: Flat) -> None:
        self._source, self._sample, self._result = source, sample, result

    def widest(self, groups: Sequence[Group]) -> tuple[Translated, list[Group], dict[Axis, Fixed]]:
        """A translation in which as many groups vary as it allows, which those are, and why others do not."""
        function, kept, fixed = self.traced(groups)
        found = self._translated(function, kept)
        if kept and found.ungrouped:
            found, kept, unknown = self._with_channels(kept)
            fixed |= unknown
        return found, kept, fixed

    def _with_channels(self, groups: Sequence[Group]) -> tuple[Translated, list[Group], dict[Axis, Fixed]]:
        """Leave no axis open that hides how many groups a convolution has: files state it, and few vary in it."""
        found = self._translated(self._trace([]), [])
        kept: list[Group] = []
        fixed: dict[Axis, Fixed] = {}
        hidden = found.ungrouped
        for group in groups:
            wider = self._translated(self._trace([*kept, group]), [*kept, group])
            if wider.ungrouped <= hidden:
                found = wider
                kept.append(group)
            else:
                fixed |= dict.fromkeys(group.axes, Fixed(CAPTURED, _CHANNELS))
        return found, kept, fixed

    def _translated(self, function: Any, groups: Sequence[Group]) -> Translated:
        source = self._source
        return translated(function, source.call.names, self.dims(groups), source.name, source.opened.names or {})

    def dims(self, groups: Sequence[Group]) -> list[list[int | str]]:
        """The shapes of what is traced: names for the sizes of axes that vary."""
        symbols = {axis: group.symbol for group in groups for axis in group.axes}
        return [
            [symbols.get((at, axis), size) for axis, size in enumerate(array.shape)]
            for at, array in enumerate(self._sample)
        ]

    def traced(self, groups: Sequence[Group]) -> tuple[Any, list[Group], dict[Axis, Fixed]]:
        """A trace in which as many groups vary as it allows."""
        try:
            return self._trace(groups), list(groups), {}
        except FAILURES as error:
            if not groups:
                raise self._untraceable(error) from error
        kept: list[Group] = []
        fixed: dict[Axis, Fixed] = {}
        function = None
        for group in groups:
            try:
                function = self._trace([*kept, group])
                kept.append(group)
            except FAILURES as error:
                fixed |= dict.fromkeys(group.axes, Fixed(CAPTURED, *reason_of(error)))
        try:
            return function if kept and function is not None else self._trace([]), kept, fixed
        except FAILURES as error:
            raise self._untraceable(error) from error

    def _untraceable(self, error: BaseException) -> ConversionError:
        text, line = reason_of(error)
        return ConversionError(f"the {self._source.noun} cannot be traced: {text}{line and f', at {line}'}")

    def _trace(self, groups: Sequence[Group]) -> Any:
        open_axes = {axis for group in groups for axis in group.axes}
        specs = [
            tf.TensorSpec(
                [None if (at, axis) in open_axes else size for axis, size in enumerate(array.shape)],
                tensor_of(array).dtype,
                name=f"input_{at}",
            )
            for at, array in enumerate(self._sample)
        ]
        return self._source.traced(specs, self._result)
