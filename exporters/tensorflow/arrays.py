"""TensorFlow's tensors as the pipeline sees them: NumPy's arrays, which become tensors when the model is called."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

from entrepot.exporters.arrays import Arrays
from entrepot.ir.errors import InputError

_COMPOSITE = (tf.RaggedTensor, tf.SparseTensor, tf.IndexedSlices)


class TensorFlowArrays(Arrays):
    """Tensors and variables by their values, strings as Python's, complex numbers as pairs along a last axis."""

    constants = (tf.DType, tf.TensorShape)

    def leaf(self, value: Any, name: str) -> np.ndarray[Any, Any] | None:
        """A tensor's value.

        Raises:
            InputError: It is ragged or sparse, or its type has no counterpart.
        """
        refuse_composite(value, name)
        if isinstance(value, tf.Tensor | tf.Variable):
            if value.dtype in (tf.resource, tf.variant):
                raise InputError(f"a tensor of {value.dtype.name} cannot be an input or output", value=name or None)
            return _pairs(texts(np.asarray(value.numpy())))
        return _pairs(texts(value)) if isinstance(value, np.ndarray | np.generic) else None


class NotingArrays(TensorFlowArrays):
    """The same, noting which leaves are complex.

    Attributes:
        are_complex: For each leaf, in order.
    """

    def __init__(self) -> None:
        self.are_complex: list[bool] = []

    def leaf(self, value: Any, name: str) -> np.ndarray[Any, Any] | None:
        """A tensor's value."""
        found = super().leaf(value, name)
        if found is not None:
            self.are_complex.append(np.dtype(getattr(value.dtype, "as_numpy_dtype", value.dtype)).kind == "c")
        return found


class TracedArrays(Arrays):
    """Tensors of a graph that is being traced."""

    constants = TensorFlowArrays.constants

    def leaf(self, value: Any, name: str) -> tf.Tensor | None:
        """The tensor itself, or its pairs."""
        refuse_composite(value, name)
        if not isinstance(value, tf.Tensor | tf.Variable | np.ndarray | np.generic):
            return None
        tensor = tf.convert_to_tensor(value)
        return tf.stack([tf.math.real(tensor), tf.math.imag(tensor)], -1) if tensor.dtype.is_complex else tensor


TENSORFLOW = TensorFlowArrays()
TRACED = TracedArrays()


def joined(pairs: Any) -> tf.Tensor:
    """Complex numbers of pairs along a last axis.

    Raises:
        ValueError: They are no pairs.
    """
    if pairs.shape.rank and pairs.shape[-1] not in (2, None):
        raise ValueError(f"complex numbers are pairs along a last axis, and this is of shape {pairs.shape}")
    return tf.complex(pairs[..., 0], pairs[..., 1])


def _pairs(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return np.stack([array.real, array.imag], -1) if array.dtype.kind == "c" else array


def refuse_composite(value: Any, name: str) -> None:
    """Refuse what is several tensors in one.

    Raises:
        InputError: It is such a thing.
    """
    if isinstance(value, _COMPOSITE):
        raise InputError(
            f"a tf.{type(value).__name__} cannot be an input or output of a graph",
            value=name or None,
            hint="use a dense tensor: to_tensor() with the lengths beside it, tf.sparse.to_dense",
        )


def texts(array: Any) -> np.ndarray[Any, Any]:
    """An array as it is, or of Python's strings where it holds bytes."""
    array = np.asarray(array)
    if array.dtype.kind not in "OS":
        return array
    texts = [text.decode("utf-8", "surrogateescape") if isinstance(text, bytes) else text for text in array.ravel()]
    return np.array(texts, object).reshape(array.shape)


def tensor_of(array: Any) -> tf.Tensor:
    """An array as a tensor; strings as the bytes that ``texts`` read, which need not be text."""
    if getattr(array, "dtype", None) != np.dtype(object):
        return tf.constant(array)
    found = (each.encode("utf-8", "surrogateescape") if isinstance(each, str) else each for each in array.ravel())
    return tf.constant([*found], tf.string, array.shape)


def shared(tensor: Any) -> np.ndarray[Any, Any]:
    """The value of an eager tensor, without a copy where NumPy has its type."""
    try:
        return np.from_dlpack(tensor)
    except (BufferError, RuntimeError, TypeError, ValueError, tf.errors.OpError):
        return np.asarray(tensor.numpy())
