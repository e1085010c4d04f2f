"""What a translation sees of a node of TensorFlow."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias

import numpy as np
import onnx_ir as ir
import tensorflow as tf
from tensorflow.core.framework import attr_value_pb2, tensor_pb2, tensor_shape_pb2

from entrepot.exporters.building import Builder
from entrepot.exporters.tensorflow.dtypes import numpy_type
from entrepot.exporters.tensorflow.graphs.body import Step
from entrepot.ir.errors import UnsupportedOpError

if TYPE_CHECKING:
    from entrepot.exporters.tensorflow.graphs.walk import Walk

Shape: TypeAlias = "tuple[int | None, ...] | None"


@dataclass(frozen=True)
class Node:
    """One node, with what is known of what it reads and makes.

    Attributes:
        operation: The node in TensorFlow's own graph, where shapes are inferred.
        step: The node as it was read.
        values: What it reads.
        walk: Translates the functions that attributes name.
    """

    operation: tf.Operation
    step: Step
    values: Sequence[Any]
    walk: Walk

    def run(self, attribute: str, build: Builder, values: Sequence[Any]) -> list[Any]:
        """Write the nodes of the function that an attribute names, applied to values."""
        return self.walk.function(self[attribute], build, values)

    @property
    def op(self) -> str:
        """Its operator."""
        return self.step.op

    @property
    def name(self) -> str:
        """Its name, scopes included."""
        return self.step.name

    def __getitem__(self, attribute: str) -> Any:
        """An attribute: types as NumPy has them, shapes as tuples with ``None``, functions by name, text as ``str``."""
        return _plain(self.operation.get_attr(attribute))

    def get(self, attribute: str, default: Any = None) -> Any:
        """The same, with a default for an attribute that the node lacks."""
        return self[attribute] if self.has(attribute) else default

    def has(self, attribute: str) -> bool:
        """Whether it has such an attribute."""
        try:
            self.operation.get_attr(attribute)
        except ValueError:
            return False
        return True

    def shape(self, index: int) -> Shape:
        """The shape of an input; ``None`` where the rank is not known."""
        return merged_shape(dims_of(self.operation.inputs[index]), self.values[index], self.dtype(index))

    def dtype(self, index: int) -> np.dtype[Any]:
        """The element type of an input, as TensorFlow states it."""
        return numpy_type(self.operation.inputs[index].dtype)

    def result_shape(self, index: int = 0) -> Shape:
        """The shape of a result, as TensorFlow infers it."""
        return dims_of(self.operation.outputs[index])

    def result_dtype(self, index: int = 0) -> np.dtype[Any]:
        """The element type of a result."""
        return numpy_type(self.operation.outputs[index].dtype)

    def is_complex(self) -> bool:
        """Whether it reads or makes complex numbers."""
        return any(each.dtype.is_complex for each in (*self.operation.inputs, *self.operation.outputs))

    def constant(self, index: int) -> np.ndarray[Any, Any] | None:
        """The value of an input, where it is the same in every run."""
        return known(self.values[index])

    def has_text(self) -> bool:
        """Whether it reads or makes text."""
        return any(each.dtype == tf.string for each in (*self.operation.inputs, *self.operation.outputs))

    def refuse(self, reason: str) -> NoReturn:
        """Say that the node has no counterpart, used as it is.

        Raises:
            UnsupportedOpError: Always.
        """
        raise UnsupportedOpError(f"{self.op} {reason}", node=f"node '{self.name}' ({self.op} of TensorFlow)")


VARIABLE = "entrepot.variable"
"""Marks a value as that of a variable, which is a weight and no constant of the graph."""


def known(value: Any) -> np.ndarray[Any, Any] | None:
    """The value of a constant of the graph; ``None`` for anything else, variables included."""
    if isinstance(value, ir.Value) and value.const_value is not None and VARIABLE not in value.meta:
        return value.const_value.numpy()
    return None


def merged_shape(dims: Shape, value: Any, dtype: np.dtype[Any]) -> Shape:
    """A shape with what is known of its value; pairs of reals have one axis more than what they stand for."""
    if not isinstance(value, ir.Value) or value.shape is None:
        return dims
    own = [dim if isinstance(dim, int) else None for dim in value.shape]
    own = own[:-1] if dtype.kind == "c" else own
    if dims is None or len(dims) != len(own):
        return tuple(own)
    return tuple(one if two is None else two for one, two in zip(dims, own, strict=True))


def dims_of(tensor: tf.Tensor) -> Shape:
    """The shape of a tensor of a graph, as TensorFlow infers it."""
    return None if tensor.shape.rank is None else tuple(tensor.shape.as_list())


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return [_plain(each) for each in value]
    for kind, plain in _PLAIN.items():
        if isinstance(value, kind):
            return plain(value)
    return value


def _plain_shape(proto: Any) -> Shape:
    shape = tf.TensorShape(proto)
    return None if shape.rank is None else tuple(shape.as_list())


_PLAIN: dict[type, Callable[[Any], Any]] = {
    tf.DType: numpy_type,
    tensor_shape_pb2.TensorShapeProto: _plain_shape,
    tensor_pb2.TensorProto: tf.make_ndarray,
    attr_value_pb2.NameAttrList: lambda function: function.name,
    bytes: lambda text: text.decode("utf-8", "surrogateescape"),
}
