"""What flows between the parts of a session, from device to device."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeAlias

import onnx_ir as ir

from entrepot.runtime.device import HOST, Device, moved
from entrepot.runtime.partition import Part
from entrepot.runtime.providers import Compiled

Observer: TypeAlias = Callable[[str, Any], None]
"""Told the name and value of everything computed."""


class Flow:
    """The parts in order, with where every value that crosses from one to another is.

    Args:
        parts: What runs.
        inputs: The main graph's values that are fed, in order.
        wanted: The main graph's values that come out, in order.

    Attributes:
        devices: Per input, the device of the first part that reads it: arrays of that device are fed as they are.
        is_far: Whether anything is computed elsewhere than on the host.
    """

    def __init__(
        self, parts: Sequence[tuple[Part, Compiled]], inputs: Sequence[ir.Value], wanted: Sequence[ir.Value]
    ) -> None:
        self._parts = tuple(parts)
        self._inputs, self._wanted = tuple(inputs), tuple(wanted)
        self._home: dict[ir.Value, Device] = {}
        for part, _ in parts:
            self._home.update(dict.fromkeys(part.outputs, part.provider.device))
            for value in part.inputs:
                self._home.setdefault(value, part.provider.device)
        self.devices = tuple(self._home.get(value, HOST) for value in inputs)
        self.is_far = any(part.provider.device is not HOST for part, _ in parts)

    def runner(self, observe: Observer | None = None) -> Callable[..., Sequence[Any]]:
        """One callable for all parts; a single part on the host takes the inputs directly and is that callable itself.

        Args:
            observe: Every part must have an ``observed`` form if it is given.
        """
        runs = [
            compiled.run if observe is None or compiled.observed is None else partial(compiled.observed, observe)
            for _, compiled in self._parts
        ]
        if len(runs) == 1 and not self.is_far:
            return runs[0]

        def run(*feeds: Any) -> Sequence[Any]:
            values = dict(zip(self._inputs, feeds, strict=True))
            for (part, compiled), call in zip(self._parts, runs, strict=True):
                results = call(*self._given(part, compiled, values))
                values.update(zip(part.outputs, results, strict=True))
            return tuple(values[value] for value in self._wanted)

        return run

    def _given(self, part: Part, compiled: Compiled, values: dict[ir.Value, Any]) -> list[Any]:
        if not self.is_far:
            return [values[value] for value in part.inputs]
        device = part.provider.device
        return [
            moved(values[value], self._home[value], HOST if position in compiled.on_host else device)
            for position, value in enumerate(part.inputs)
        ]

    def handed_over(self, results: Sequence[Any], feeds: Sequence[Any]) -> list[Any]:
        """Results as the caller gets them: NumPy arrays; or, if one of the feeds was on a device, where they are."""
        homes = [self._home.get(value, HOST) for value in self._wanted]
        far = next((device for device, feed in zip(self.devices, feeds, strict=True) if _is_there(feed, device)), HOST)
        handed = [moved(result, home, far) for result, home in zip(results, homes, strict=True)]
        return [far.copy(value) if any(feed is value for feed in feeds) else value for value in handed]


def _is_there(feed: Any, device: Device) -> bool:
    """Whether a feed, or a member of it, is on a device that is not the host."""
    if isinstance(feed, list):
        return any(_is_there(member, device) for member in feed)
    return device is not HOST and device.holds(feed)
