"""TensorFlow's tensors as the pipeline sees them: NumPy's arrays, which become tensors when the model is called."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

from entrepot.exporters.arrays import Arrays
from entrepot.ir.errors import InputError

_COMPOSITE = (tf.RaggedTensor, tf.SparseTensor, tf.IndexedSlices)


class TensorFlowArrays(Arrays):
    """Tensors and variables by their values, strings as Python's."""

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
            return texts(np.asarray(value.numpy()))
        return texts(value) if isinstance(value, np.ndarray | np.generic) else None


class TracedArrays(Arrays):
    """Tensors of a graph that is being traced."""

    constants = TensorFlowArrays.constants

    def leaf(self, value: Any, name: str) -> tf.Tensor | None:
        """The tensor itself."""
        refuse_composite(value, name)
        return (
            tf.convert_to_tensor(value)
            if isinstance(value, tf.Tensor | tf.Variable | np.ndarray | np.generic)
            else None
        )


TENSORFLOW = TensorFlowArrays()
TRACED = TracedArrays()


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


def shared(tensor: Any) -> np.ndarray[Any, Any]:
    """The value of an eager tensor, without a copy where NumPy has its type."""
    try:
        return np.from_dlpack(tensor)
    except (BufferError, RuntimeError, TypeError, ValueError, tf.errors.OpError):
        return np.asarray(tensor.numpy())
