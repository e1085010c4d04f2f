"""Where a provider keeps its arrays, and how they get there and back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeAlias

import numpy as np
import onnx_ir as ir

from entrepot.runtime.arrays import array_of

Array: TypeAlias = Any
"""An array of a provider's library."""


Place: TypeAlias = Callable[[np.ndarray[Any, Any]], Array]
"""Takes a constant to a device."""


HOST_ONLY = frozenset(
    kind for kind in ir.DataType if kind == ir.DataType.STRING or (kind != ir.DataType.UNDEFINED and kind.bitwidth < 8)
)
"""Element types that no device has: strings, and what is smaller than a byte."""

_HOST_ONLY = frozenset(np.dtype(kind.numpy()) for kind in HOST_ONLY)


class Device(Protocol):
    """A memory with its arrays; all providers of one device share an instance.

    Arrays come from NumPy, or from any library through DLPack where both sides have it.
    """

    @property
    def name(self) -> str:
        """As the library writes it: ``cpu``, ``cuda:0``."""

    @property
    def shares_host(self) -> bool:
        """Whether its arrays lie in the host's memory, so that moving them to NumPy and back copies nothing."""

    @property
    def stream(self) -> int | None:
        """The stream that work is queued on, as DLPack numbers it; ``None`` where there are none."""

    def holds(self, value: Any) -> bool:
        """Whether a value is an array of this device, ready to be computed with."""

    def adopted(self, value: Any) -> Any:
        """An array of another library as one of this device over the same memory; what is elsewhere as it is."""

    def dtype(self, array: Array) -> np.dtype[Any]:
        """The element type of an array that it holds."""

    def shape(self, array: Array) -> tuple[int, ...]:
        """The shape of an array that it holds."""

    def to_device(self, value: Any) -> Array:
        """An array of this device with the values of a NumPy array, or of any array with ``__dlpack__``.

        What it holds already is returned as it is. Memory that NumPy may change later is never shared.
        """

    def to_host(self, array: Array) -> np.ndarray[Any, Any]:
        """A NumPy array of the same values; waits until they are computed."""

    def own(self, arrays: Sequence[Any], fed: Sequence[Any]) -> list[Any]:
        """Arrays that belong to whoever gets them: copies of those that lie in a constant's memory, or in what was fed.

        Args:
            arrays: Arrays of this device, or sequences of them; anything else stays as it is.
            fed: What the caller has the memory of already.
        """

    def synchronize(self) -> None:
        """Wait until all work that was queued is done."""


class Host:
    """NumPy's memory: nothing moves."""

    name = "cpu"
    shares_host = True
    stream = None

    def holds(self, value: Any) -> bool:
        """Whether it is a NumPy array."""
        return isinstance(value, np.ndarray)

    def adopted(self, value: Any) -> Any:
        """The value as it is."""
        return value

    def dtype(self, array: Array) -> np.dtype[Any]:
        """The element type of an array."""
        return array.dtype

    def shape(self, array: Array) -> tuple[int, ...]:
        """The shape of an array."""
        return array.shape

    def to_device(self, value: Any) -> Array:
        """The array itself."""
        return value

    def to_host(self, array: Array) -> np.ndarray[Any, Any]:
        """The array itself; a scalar of NumPy as one of rank 0."""
        return array_of(array)

    def own(self, arrays: Sequence[Any], fed: Sequence[Any]) -> list[Any]:
        """The arrays: whoever hands NumPy arrays over sees to that."""
        return list(arrays)

    def synchronize(self) -> None:
        """Nothing is queued."""


HOST: Device = Host()
"""The device of all providers that compute on NumPy arrays."""


def is_copy(source: Device, target: Device) -> bool:
    """Whether moving a value from one device to another takes a copy."""
    return source is not target and not (source.shares_host and target.shares_host)


def moved(value: Any, source: Device, target: Device) -> Any:
    """A value of one device on another, members of sequences one by one; ``None`` and maps stay what they are.

    What ``source`` does not hold is on the host: strings, and what was computed there.
    """
    if value is None or isinstance(value, dict):
        return value
    if isinstance(value, list):
        return [moved(member, source, target) for member in value]
    if not source.holds(value):
        source, value = HOST, array_of(value)
    if source is target or (source is HOST and value.dtype in _HOST_ONLY):
        return value
    if target is HOST:
        return source.to_host(value)
    return target.to_device(value if source is HOST or hasattr(value, "__dlpack__") else source.to_host(value))


_SMALL = 1 << 20
"""Bytes; what a file holds as a list of numbers is read anew for each choice of outputs, and recognised up to here."""


class Placed:
    """Constants of a session on a device, each moved there once, whichever parts and choices of outputs read it."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self._moved: dict[tuple[Any, ...], tuple[np.ndarray[Any, Any], Array]] = {}

    def __call__(self, constant: np.ndarray[Any, Any]) -> Array:
        """The constant on the device."""
        key = _identity(constant)
        if key not in self._moved:
            # the constant is kept, so that no other array takes its address
            self._moved[key] = constant, moved(constant, HOST, self._device)
        return self._moved[key][1]


def _identity(constant: np.ndarray[Any, Any]) -> tuple[Any, ...]:
    """Equal for the same memory, and for small arrays of the same content."""
    small = constant.nbytes <= _SMALL
    what = constant.tobytes() if small else (constant.__array_interface__["data"][0], constant.strides)
    return constant.shape, str(constant.dtype), what
