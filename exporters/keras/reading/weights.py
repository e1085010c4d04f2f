"""Variables of a model as initializers that are called as Keras calls them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import onnx_ir as ir

from entrepot.exporters.building import Builder
from entrepot.exporters.keras.arrays import numpy_of


class Weights:
    """The variables that a graph uses, each once.

    Args:
        build: The outermost graph.
    """

    def __init__(self, build: Builder) -> None:
        self._build = build
        self._arrays: dict[object, np.ndarray[Any, Any]] = {}
        self._kept: list[Any] = []

    def value(self, variable: Any) -> ir.Value:
        """The initializer of a variable."""
        if id(variable) not in self._arrays:
            self._kept.append(variable)
            self._arrays[id(variable)] = _now(variable)
        return self._build.weight(str(variable.path), self._arrays[id(variable)])

    def changed(self, value: ir.Value, change: Callable[[Any], Any]) -> ir.Value:
        """An initializer whose array is another arrangement of that of a given one; computed where it is none.

        Args:
            value: A weight.
            change: NumPy to NumPy.
        """
        tensor = value.const_value
        assert tensor is not None, "only what is known can be rearranged"
        key = (id(tensor), change)
        if key not in self._arrays:
            self._kept.append((tensor, change))
            self._arrays[key] = np.ascontiguousarray(change(tensor.numpy()))
        return self._build.weight(str(value.name), self._arrays[key])


def _now(variable: Any) -> np.ndarray[Any, Any]:
    """What a variable holds now, whatever is assigned to it later.

    TensorFlow never writes into what somebody holds, so that there nothing is copied: for a network of a gigabyte,
    memory that nobody has used yet takes longer than all else that is read.
    """
    if keras.backend.backend() != "tensorflow":
        return numpy_of(variable.value)
    import tensorflow as tf

    return np.asarray(tf.convert_to_tensor(variable.value))
