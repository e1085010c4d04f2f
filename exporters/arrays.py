"""What the pipeline asks of a framework's arrays, and the answers for NumPy's."""

from __future__ import annotations

from typing import Any, Protocol, TypeAlias

import numpy as np

from entrepot.parity.tolerance import classify

Array: TypeAlias = Any
"""An array of some framework, with ``shape`` and ``dtype``."""


class Arrays(Protocol):
    """One framework's arrays; a framework whose functions take and give NumPy's subclasses this and adds nothing.

    Attributes:
        constants: Further types of values that are baked into a graph, besides Python's scalars.
    """

    constants: tuple[type, ...] = ()

    def leaf(self, value: Any, name: str) -> Array | None:
        """The array that a value in an argument or a result stands for, or ``None`` if it is none.

        Raises:
            InputError: It stands for an array that cannot be had; ``name`` says which.
        """
        return value if isinstance(value, np.ndarray | np.generic) else None

    def is_symbolic(self, value: Any) -> bool:
        """Whether a value is a number that a capture computes from sizes."""
        return False

    def of_number(self, value: Any) -> Array:
        """A Python number, or a symbolic one, as an array."""
        return np.asarray(value, np.int64 if isinstance(value, int) else np.float32)

    def kind(self, array: Array) -> str:
        """The kind of its elements: ``float``, ``integer``, ``bool``, ``complex`` or ``string``."""
        return classify(array.dtype)

    def resized(self, array: Array, axis: int, size: int) -> Array:
        """The array with one axis at another size, filled from its own values in their own order."""
        old = array.shape[axis]
        if old == 0:
            return np.zeros([*array.shape[:axis], size, *array.shape[axis + 1 :]], array.dtype)
        return np.take(array, np.arange(size) * old // max(size, 1), axis)

    def to_numpy(self, array: Array) -> np.ndarray:
        """The same values as NumPy's array; types that NumPy lacks are those of ml_dtypes."""
        return np.asarray(array)

    def from_numpy(self, array: np.ndarray) -> Array:
        """The inverse of ``to_numpy``, as a copy."""
        return np.array(array)


class NumpyArrays(Arrays):
    """NumPy's own."""


NUMPY = NumpyArrays()
