"""What flows between the parts of a session, from device to device."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import onnx_ir as ir

from entrepot.runtime.device import HOST, Device, is_copy, moved
from entrepot.runtime.dividing.partition import Part
from entrepot.runtime.providers import Compiled

Observer: TypeAlias = Callable[[str, Any], None]
"""Told the name and value of everything computed."""


@dataclass(frozen=True)
class Crossing:
    """A value that is moved to another device; without a ``source``, from wherever it was fed."""

    value: ir.Value
    source: Device | None
    target: Device
    taken: int
    put: int


@dataclass(frozen=True)
class _Stage:
    """One part, by numbers of slots: what is moved first, what it takes and makes, and what nobody needs after it."""

    crossings: tuple[Crossing, ...]
    takes: tuple[int, ...]
    makes: tuple[int, ...]
    done: tuple[int, ...] = ()


class Flow:
    """The parts in order, with where every value that crosses from one to another is.

    A value is moved once to each device that needs it, when it is first needed there, and let go after its last use.

    Args:
        parts: What runs.
        inputs: The main graph's values that are fed, in order.
        wanted: The main graph's values that come out, in order.
        devices: Where feeds may be, besides the host.

    Attributes:
        devices: Where feeds may be, besides the host.
        is_far: Whether anything is computed elsewhere than on the host.
    """

    def __init__(
        self,
        parts: Sequence[tuple[Part, Compiled]],
        inputs: Sequence[ir.Value],
        wanted: Sequence[ir.Value],
        devices: Iterable[Device] = (),
    ) -> None:
        self._parts, self._inputs, self._wanted = tuple(parts), tuple(inputs), tuple(wanted)
        used = [part.provider.device for part, _ in parts]
        self.devices = tuple(device for device in dict.fromkeys([*used, *devices]) if device is not HOST)
        self.is_far = bool(self.devices)
        self._slots: dict[tuple[ir.Value, str], int] = {}
        self._homes: dict[ir.Value, Device | None] = dict.fromkeys(inputs, None if self.is_far else HOST)
        for value in inputs:
            self._slot(value, self._homes[value])
        self._stages = self._with_ends([self._stage(part, compiled) for part, compiled in self._parts])

    def _slot(self, value: ir.Value, device: Device | None) -> int:
        return self._slots.setdefault((value, device.name if device else ""), len(self._slots))

    def _stage(self, part: Part, compiled: Compiled) -> _Stage:
        crossings: list[Crossing] = []
        takes = tuple(
            self._taken(value, self._needed_on(position, value, part, compiled), crossings)
            for position, value in enumerate(part.inputs)
        )
        for position, value in enumerate(part.outputs):
            self._homes[value] = HOST if position in compiled.made_on_host else part.provider.device
        return _Stage(tuple(crossings), takes, tuple(self._slot(value, self._homes[value]) for value in part.outputs))

    def _needed_on(self, position: int, value: ir.Value, part: Part, compiled: Compiled) -> Device | None:
        """The device on which a part takes an input; where only its shape matters, where it is."""
        device, home = part.provider.device, self._homes[value]
        near = self.devices == (device,) if home is None else home in (HOST, device)
        if position in compiled.unread and near:
            return home
        return HOST if position in compiled.on_host else device

    def _taken(self, value: ir.Value, device: Device | None, crossings: list[Crossing]) -> int:
        """The slot that has a value on a device, after it was moved there if need be."""
        home = self._homes[value]
        if device is not home and (value, device.name if device else "") not in self._slots:
            assert device is not None
            if device is not HOST and device.shares_host and home is not None and not home.shares_host:
                self._taken(value, HOST, crossings)  # one copy serves all that share the host's memory
                home = HOST
            crossings.append(Crossing(value, home, device, self._slot(value, home), self._slot(value, device)))
        return self._slot(value, device)

    def _with_ends(self, stages: Sequence[_Stage]) -> tuple[_Stage, ...]:
        kept = {slot for value in self._wanted for slot in self._results_of(value)}
        ended: list[_Stage] = []
        for stage in reversed(stages):
            touched = dict.fromkeys([*stage.takes, *stage.makes, *(each.taken for each in stage.crossings)])
            done = tuple(slot for slot in touched if slot not in kept)
            kept.update(done)
            ended.append(_Stage(stage.crossings, stage.takes, stage.makes, done))
        return tuple(ended[::-1])

    def _results_of(self, value: ir.Value) -> tuple[int, ...]:
        """Where a result is: at home, and perhaps on the host, too."""
        near = self._slots.get((value, HOST.name))
        own = self._slot(value, self._homes[value])
        return (own,) if near in (None, own) else (own, near)

    def crossings(self) -> Iterator[tuple[ir.Value, str, str]]:
        """What is moved in a run, from where and to where, if it is fed from the host and returned there."""
        for stage in self._stages:
            for each in stage.crossings:
                if is_copy(each.source or HOST, each.target):
                    yield each.value, (each.source or HOST).name, each.target.name
        for value in dict.fromkeys(self._wanted):
            home = self._homes[value] or HOST
            if is_copy(home, HOST) and len(self._results_of(value)) == 1:
                yield value, home.name, HOST.name

    def runner(self, observe: Observer | None = None) -> Callable[..., Sequence[Any]]:
        """One callable for all parts; a single part on the host takes the inputs directly and is that callable itself.

        Results are NumPy arrays; or, if one of the feeds was on a device, arrays of that device.

        Args:
            observe: Every part must have an ``observed`` form if it is given.
        """
        calls = [
            compiled.run if observe is None or compiled.observed is None else partial(compiled.observed, observe)
            for _, compiled in self._parts
        ]
        if len(calls) == 1 and not self.is_far:
            return calls[0]
        results = [self._results_of(value) for value in self._wanted]
        empty = [None] * (len(self._slots) - len(self._inputs))

        def run(*feeds: Any) -> Sequence[Any]:
            slots = [*feeds, *empty]
            for stage, call in zip(self._stages, calls, strict=True):
                for each in stage.crossings:
                    slots[each.put] = self._moved(slots[each.taken], each.source, each.target)
                made = call(*[slots[slot] for slot in stage.takes])
                for slot, value in zip(stage.makes, made, strict=True):
                    slots[slot] = value
                for slot in stage.done:
                    slots[slot] = None
            if self.is_far:
                return self._handed_over(slots, results, feeds)
            return tuple([slots[slot] for slot, *_ in results])

        return self._for_arrays(calls, run) if self.is_far else run

    def _for_arrays(
        self, calls: Sequence[Callable[..., Sequence[Any]]], run: Callable[..., Sequence[Any]]
    ) -> Callable[..., Sequence[Any]]:
        """The same function, by a short way if all feeds are NumPy arrays and one part makes all results."""
        if len(calls) != 1 or self._wanted != self._parts[0][0].outputs:
            return run
        came_from = {each.put: (each.taken, each.target) for each in self._stages[0].crossings}
        takes = [came_from.get(slot, (slot, HOST)) for slot in self._stages[0].takes]
        homes = [self._homes[value] or HOST for value in self._wanted]
        stays = {HOST, *homes, *(target for _, target in takes)} == {HOST}
        call, order = calls[0], [at for at, _ in takes]

        def run_arrays(*feeds: Any) -> Sequence[Any]:
            for feed in feeds:
                if type(feed) is not np.ndarray:
                    return run(*feeds)
            if stays:
                return call(*[feeds[at] for at in order])
            made = call(*[moved(feeds[at], HOST, target) for at, target in takes])
            return [moved(value, home, HOST) for value, home in zip(made, homes, strict=True)]

        return run_arrays

    def _moved(self, value: Any, source: Device | None, target: Device) -> Any:
        return moved(value, self._device_of(value) if source is None else source, target)

    def _device_of(self, feed: Any) -> Device:
        """Where a feed is, or a member of it."""
        if type(feed) is np.ndarray:
            return HOST
        if isinstance(feed, list):
            return next((device for device in map(self._device_of, feed) if device is not HOST), HOST)
        return next((device for device in self.devices if device.holds(feed)), HOST)

    def _handed_over(self, slots: list[Any], results: Sequence[tuple[int, ...]], feeds: Sequence[Any]) -> list[Any]:
        target = next((device for device in map(self._device_of, feeds) if device is not HOST), HOST)
        found: dict[ir.Value, Any] = {}
        for value, (home, *near) in zip(self._wanted, results, strict=True):
            if target is HOST and near:
                found[value] = slots[near[0]]
            elif value not in found:
                found[value] = self._moved(_writable(slots[home]), self._homes[value], target)
        return target.own([found[value] for value in self._wanted], feeds)


def _writable(value: Any) -> Any:
    """A result; what is read-only is a constant's memory, which a device that shares the host's would hand over."""
    if isinstance(value, list):
        return [_writable(member) for member in value]
    return value.copy() if isinstance(value, np.ndarray) and not value.flags.writeable else value
