"""What Keras takes and returns: arrays of its backend, which are NumPy's here."""

from __future__ import annotations

import warnings
from typing import Any

import keras
import numpy as np

from entrepot.exporters.arrays import Arrays
from entrepot.ir.errors import InputError


def numpy_of(tensor: Any) -> np.ndarray[Any, Any]:
    """The values of a tensor or a variable of the backend."""
    with warnings.catch_warnings():
        # keras 3.15 copies TensorFlow's tensors in a way that NumPy 2 warns of
        warnings.filterwarnings("ignore", "__array__ implementation", DeprecationWarning)
        return np.asarray(keras.ops.convert_to_numpy(tensor))


class KerasArrays(Arrays):
    """NumPy's; tensors of the backend are converted."""

    def leaf(self, value: Any, name: str) -> np.ndarray[Any, Any] | None:
        """An array, or a tensor of any backend.

        Raises:
            InputError: It is sparse or ragged.
        """
        if isinstance(value, np.ndarray | np.generic):
            return _text(np.asarray(value))
        if type(value).__name__ in ("SparseTensor", "RaggedTensor", "BCOO"):
            raise InputError(
                f"a {type(value).__name__} cannot be an input or output of a graph",
                value=name or None, hint="use a dense tensor, padded where it has to be",
            )  # fmt: skip
        if keras.ops.is_tensor(value) or isinstance(value, keras.Variable):
            return _text(numpy_of(value))
        if type(value).__module__.partition(".")[0] in ("tensorflow", "torch", "jax", "jaxlib"):
            return _text(np.asarray(value.detach() if hasattr(value, "detach") else value))
        return None


def _text(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Strings as objects of Python's, as ONNX's tools have them."""
    if array.dtype.kind in "SO":
        return np.array([item.decode() if isinstance(item, bytes) else item for item in array.ravel()], object).reshape(
            array.shape
        )
    return array.astype(object) if array.dtype.kind == "U" else array


KERAS = KerasArrays()
