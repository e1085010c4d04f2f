"""Variables, which are frozen, by the handles that graphs know them by."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import tensorflow as tf

from entrepot.exporters.building import Builder
from entrepot.exporters.tensorflow.arrays import shared
from entrepot.exporters.tensorflow.graphs.inference import Placed
from entrepot.exporters.tensorflow.node import VARIABLE, Node
from entrepot.exporters.tensorflow.table import translates
from entrepot.exporters.tensorflow.upstream import variable_of


@dataclass(frozen=True)
class Handle:
    """What refers to a variable or a table.

    Attributes:
        tensor: TensorFlow's own handle.
        name: What it is called.
        place: What TensorFlow's inference is told of it.
    """

    tensor: Any
    name: str
    place: Placed

    @classmethod
    def of(cls, tensor: Any, name: str) -> Handle:
        """A handle by its tensor."""
        dtype, shape = variable_of(tensor)
        if dtype is None:
            return cls(tensor, name, Placed(tensor.dtype, []))
        return cls(tensor, name, Placed(dtype, shape, variable=True))

    def read(self, build: Builder) -> Any:
        """The variable's value, as a weight under its name."""
        value = tf.raw_ops.ReadVariableOp(resource=self.tensor, dtype=self.place.dtype)
        weight = build.weight(self.name, shared(value))
        weight.meta[VARIABLE] = True
        return weight


@translates("ReadVariableOp", handles=True)
def read_variable(node: Node, build: Builder, handle: Handle) -> Any:
    """The value that it has when it is exported."""
    return handle.read(build)
