"""One call of a layer or an operation that is being written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import keras
import numpy as np
import onnx_ir as ir

from entrepot.exporters.building import Builder, typed
from entrepot.exporters.keras.arrays import numpy_of
from entrepot.exporters.keras.dtypes import element_of, keras_dtype
from entrepot.ir.errors import ConversionError

if TYPE_CHECKING:
    from entrepot.exporters.keras.reading.reader import Reader


@dataclass
class Step:
    """What a rule works with.

    Attributes:
        reader: What follows calls that have no rule.
        operation: The layer or operation that is called.
        results: The symbolic tensors that it returns.
    """

    reader: Reader
    operation: Any
    results: Sequence[Any]

    @property
    def build(self) -> Builder:
        """What nodes are written with."""
        return self.reader.build

    @property
    def dtype(self) -> ir.DataType:
        """The type of the first result: that in which a layer computes, where nothing is said of it."""
        return element_of(self.results[0].dtype if self.results else self.operation.compute_dtype)

    @property
    def shape(self) -> tuple[int | None, ...]:
        """The shape of the first result."""
        return tuple(self.results[0].shape)

    def op(self, op_type: str, *operands: Any, **attributes: Any) -> Any:
        """Write a node."""
        return self.build.op(op_type, *operands, **attributes)

    def refuse(self, why: str, hint: str | None = None) -> ConversionError:
        """Why this call has no counterpart, and what can be done about it."""
        name = getattr(self.operation, "name", "")
        return ConversionError(f"'{name}', a {type(self.operation).__name__}: {why}", hint=hint)

    def value(self, item: Any, dtype: Any = None) -> ir.Value:
        """An operand as a value, of a certain type."""
        kind = None if dtype is None else element_of(dtype)
        if isinstance(item, list | tuple) and any(isinstance(part, ir.Value) for part in item):
            return self._stacked(item, kind)
        if isinstance(item, keras.Variable):
            item = self.reader.variable(item)
        value = item if isinstance(item, ir.Value) else self._constant(item, kind)
        return value if kind is None else self.build.cast(value, kind)

    def _stacked(self, items: Sequence[Any], kind: ir.DataType | None) -> ir.Value:
        parts = self.operands(*items) if kind is None else [self.value(item, kind) for item in items]
        joined = self.op("Concat", *(self.op("Unsqueeze", part, [0]) for part in parts), axis=0)
        return typed(joined, parts[0].dtype, [len(parts), *shape_of(parts[0])])

    def _constant(self, item: Any, kind: ir.DataType | None) -> ir.Value:
        if isinstance(item, bool | int | float):
            kind = kind or element_of(keras.backend.result_type(type(item)))
        elif not isinstance(item, np.ndarray | np.generic):
            item = numpy_of(keras.ops.convert_to_tensor(item))
        return self.build.constant(item, kind)

    def common(self, *items: Any) -> ir.DataType:
        """The type that operands have together, by Keras' rules."""
        kinds = [keras_dtype(item.dtype) if hasattr(item, "dtype") else type(item) for item in items]
        return element_of(keras.backend.result_type(*kinds))

    def operands(self, *items: Any) -> list[ir.Value]:
        """Operands, all of the type that they have together."""
        kind = self.common(*items)
        return [self.value(item, kind) for item in items]

    def transposed(self, value: ir.Value, order: Sequence[int]) -> ir.Value:
        """The value with its axes in another order."""
        if list(order) == sorted(order):
            return value
        shape = shape_of(value)
        return typed(self.op("Transpose", value, perm=list(order)), value.dtype, [shape[axis] for axis in order])

    def reshaped(self, value: ir.Value, sizes: Sequence[Any]) -> ir.Value:
        """The value in another shape: numbers, -1, and int64 scalars of the graph."""
        shape = [size if isinstance(size, int) and size >= 0 else None for size in sizes]
        if all(isinstance(size, int) for size in sizes):
            target = self.build.constant(np.array(sizes, np.int64))
        else:
            target = self.vector(sizes)
        return typed(self.op("Reshape", value, target), value.dtype, shape)

    def vector(self, sizes: Sequence[Any]) -> ir.Value:
        """Numbers and int64 scalars of the graph as one vector."""
        if all(isinstance(size, int) for size in sizes):
            return self.build.constant(np.array(sizes, np.int64))
        parts = [
            self.op("Unsqueeze", size, [0]) if isinstance(size, ir.Value) else self.build.constant(np.array([size]))
            for size in sizes
        ]
        return typed(self.op("Concat", *parts, axis=0), np.int64, [len(parts)])

    def sizes(self, value: ir.Value) -> list[Any]:
        """The sizes of a value's axes: numbers where they are known, else int64 scalars of the graph."""
        return [
            size if isinstance(size, int) else self.build.size(value, axis) for axis, size in enumerate(shape_of(value))
        ]

    def weight(self, value: ir.Value, change: Any) -> ir.Value:
        """A weight in another arrangement, under its own name; what is computed is arranged by the graph."""
        return self.reader.weights.changed(value, change)

    def follow(self, function: Any, *args: Any, **kwargs: Any) -> Any:
        """The result of a function that is written in operations and layers of Keras."""
        return self.reader.follow(function, args, kwargs)

    def follow_layer(self, function: Any, *args: Any, **kwargs: Any) -> Any:
        """The result of a function of the layer, whose variables it finds to be symbolic."""
        return self.reader.follow_layer(function, self.operation, args, kwargs)

    def call(self, layer: Any, *args: Any, **kwargs: Any) -> Any:
        """The result of another layer."""
        return self.reader.call(layer, args, kwargs)


def shape_of(value: ir.Value) -> list[int | None]:
    """The sizes of a value's axes, as far as they are known."""
    assert value.shape is not None, f"'{value.name}' has no shape"
    return [size if isinstance(size, int) else None for size in value.shape]


def rank_of(value: ir.Value) -> int:
    """How many axes a value has."""
    return len(shape_of(value))
