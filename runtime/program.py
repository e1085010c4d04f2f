"""What a session runs for one choice of outputs: feeds are checked, parts called, results handed over."""

from __future__ import annotations

import contextvars
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import onnx_ir as ir

from entrepot.ir.errors import EntrepotError, ExecutionError
from entrepot.ir.typing import plain
from entrepot.runtime.arrays import array_of
from entrepot.runtime.device import Device
from entrepot.runtime.dividing.flow import Flow, Observer
from entrepot.runtime.dividing.partition import Part
from entrepot.runtime.feeds import arrays, check_names, input_spec
from entrepot.runtime.planning.fold import KERNEL_ERRORS
from entrepot.runtime.providers import Compiled
from entrepot.runtime.room import out_of_memory
from entrepot.runtime.turns import in_turn

Array: TypeAlias = np.ndarray[Any, Any]

_SHAPES_KEPT = 64


class Program:
    """One compiled choice of outputs.

    Args:
        names: The outputs, in order.
        inputs: The main graph's values that are fed, in order.
        wanted: The main graph's values that come out, in order.
        parts: What runs.
        context: Where it runs.
        related: What has to hold for sizes; see ``Model.related``.
        steps: What sizes are divided by, and what has to be left, by symbol; see ``Model.steps``.
        devices: Where feeds may be, besides the host.

    Attributes:
        specs: What is fed, in order.
        parts: What runs.
        flow: What flows between them.
    """

    def __init__(
        self,
        names: Sequence[str],
        inputs: Sequence[ir.Value],
        wanted: Sequence[ir.Value],
        parts: Sequence[tuple[Part, Compiled]],
        context: contextvars.Context,
        related: Collection[str] = (),
        steps: Mapping[str, tuple[int, int]] | None = None,
        devices: Iterable[Device] = (),
    ) -> None:
        self.parts = tuple(parts)
        self._context = context
        self._related = related
        self._steps = steps
        self._names = tuple(names)
        self.specs = tuple(input_spec(value.name or "", plain.of_value(value)) for value in inputs)
        self.flow = Flow(parts, inputs, wanted, devices)
        self._function = self.flow.runner()
        if all(compiled.emitted is not None for _, compiled in self.parts):  # those of other libraries free the lock
            self._function = in_turn(self._function, sum(len(part.graph) for part, _ in self.parts))
        self._fed = tuple(spec.name for spec in self.specs)
        self._accepted: dict[tuple[Any, ...], bool] = {}  # types and shapes, and whether all are of NumPy

    def values(self, feeds: Mapping[str, Any]) -> Sequence[Any]:
        """The feeds in input order, checked; element types and shapes that were right before are accepted at once.

        Raises:
            InputError: They do not fit the model.
        """
        if len(feeds) == len(self._fed):
            try:
                values = [feeds[name] for name in self._fed]
                kinds = tuple([(type(value), value.dtype, value.shape) for value in values])
                if kinds in self._accepted and (self._accepted[kinds] or self._are_held(values)):
                    return values
            except (AttributeError, KeyError, TypeError):
                pass  # something is missing or not an array: the slow path says what
        return self._checked(feeds)

    def _checked(self, feeds: Mapping[str, Any]) -> list[Any]:
        check_names(self.specs, feeds)
        values = arrays(self.specs, feeds, self.flow.devices, self._related, self._steps)
        if all(isinstance(value, np.ndarray) or _is_held(value, feeds[name]) for name, value in zip(self._fed, values)):  # noqa: B905
            if len(self._accepted) >= _SHAPES_KEPT:
                self._accepted.clear()
            kinds = tuple((type(value), value.dtype, value.shape) for value in values)
            self._accepted[kinds] = all(isinstance(value, np.ndarray) for value in values)
        return values

    def _are_held(self, values: Sequence[Any]) -> bool:
        """Whether all are arrays of a device now, too: tensors of one type and shape may be anywhere, and sparse."""
        return all(
            isinstance(value, np.ndarray) or any(device.holds(value) for device in self.flow.devices)
            for value in values
        )

    def run(self, feeds: Mapping[str, Any], observe: Observer | None = None) -> dict[str, Any]:
        """The outputs by name.

        Args:
            feeds: By name, in order or not.
            observe: Told the name and value of everything computed, by parts that let themselves be observed.

        Raises:
            InputError: Feeds do not fit the model.
            ExecutionError: A node failed; the message names it.
        """
        values = self.values(feeds)
        try:
            function = self._function if observe is None else self.flow.runner(observe)
            results = self._context.copy().run(function, *values)
        except EntrepotError as error:
            error.node = error.node or self._where(error)
            raise
        except MemoryError as error:
            raise out_of_memory(error, self._where(error)) from error
        except KERNEL_ERRORS as error:
            raise ExecutionError(f"{type(error).__name__}: {error}", node=self._where(error)) from error
        if all_fresh(results, values):
            return dict(zip(self._names, results))  # noqa: B905 - as many as there are names
        fed = list(_arrays(values))
        return {name: _own(value, fed) for name, value in zip(self._names, results, strict=True)}

    def _where(self, error: BaseException) -> str:
        return next(filter(None, (compiled.locate(error) for _, compiled in self.parts)), "")


def _is_held(value: Any, feed: Any) -> bool:
    """Whether a feed is an array of a device, which took it as it is."""
    return value is feed and hasattr(feed, "__dlpack__")


def all_fresh(results: Sequence[Any], feeds: Sequence[Any]) -> bool:
    """Whether all results are whole arrays made in this run; constants are views, so they are not whole."""
    for value in results:
        if type(value) is not np.ndarray or value.base is not None:
            return False
        for feed in feeds:
            if value is feed:
                return False
    return True


def _arrays(values: Sequence[Any]) -> Iterator[Array]:
    """The arrays among feeds, members of sequences included."""
    for value in values:
        if isinstance(value, list):
            yield from _arrays(value)
        elif isinstance(value, np.ndarray):
            yield value


def _own(value: Any, feeds: Sequence[Array]) -> Any:
    """A result that belongs to the caller: never a constant of the model, nor memory that was fed."""
    if type(value) is not np.ndarray:
        if isinstance(value, list):
            return [_own(member, feeds) for member in value]
        return array_of(value) if isinstance(value, np.generic | str) else value
    if value.base is None:  # constants are views, so this is fresh or fed
        return value.copy() if any(feed is value for feed in feeds) else value
    if min(value.strides, default=0) < 0:  # which ``torch.from_numpy``, for one, does not take
        return value.copy()
    if value.flags.writeable and not any(np.may_share_memory(value, feed) for feed in feeds):
        return value
    return value.copy()
