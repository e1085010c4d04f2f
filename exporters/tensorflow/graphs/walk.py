"""Every node of a graph, translated in turn."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir
import tensorflow as tf

from entrepot.exporters.building import Builder, typed
from entrepot.exporters.tensorflow.arrays import texts
from entrepot.exporters.tensorflow.dtypes import numpy_type, onnx_type
from entrepot.exporters.tensorflow.graphs.body import Body, Ref, Step
from entrepot.exporters.tensorflow.graphs.expanding import Flat, Library, expanded
from entrepot.exporters.tensorflow.graphs.folding import folded
from entrepot.exporters.tensorflow.graphs.inference import Placed, inferred
from entrepot.exporters.tensorflow.node import Node, known, merged_shape
from entrepot.exporters.tensorflow.table import Rule, rules
from entrepot.ir.errors import UnsupportedOpError

_SMALL = 64
"""Elements of a constant that may be a shape; larger ones, and matrices, are called after their node."""


class Walk:
    """The translation of a graph and of the functions in it.

    Args:
        library: Its functions.
    """

    def __init__(self, library: Library) -> None:
        self._library = library

    def function(self, name: str, build: Builder, values: Sequence[Any]) -> list[Any]:
        """What a function returns for values; see ``body``."""
        return self.body(self._library.body(name), build, values, _argument_types(self._library.definitions[name]))

    def body(self, body: Body, build: Builder, values: Sequence[Any], types: Sequence[tf.DType]) -> list[Any]:
        """Write the nodes of a body, applied to values; returns its results.

        Raises:
            UnsupportedOpError: An operator has no counterpart.
            ConversionError: TensorFlow does not take the graph for these values.
        """
        flat = expanded(body, self._library)
        places = {ref: _place(value, dtype) for ref, value, dtype in zip(flat.arguments, values, types, strict=True)}
        graph = inferred(flat, places, self._library)
        return self._walked(flat, graph, dict(zip(flat.arguments, values, strict=True)), build)

    def _walked(self, flat: Flat, graph: tf.Graph, values: dict[Ref, Any], build: Builder) -> list[Any]:
        for step in flat.steps:
            with build.module(step.path) if step.path else contextlib.nullcontext():
                results = self._translated(step, graph, [values[ref] for ref in step.inputs], build)
            values.update({(step.name, at): result for at, result in enumerate(results)})
        return [values[ref] for ref in flat.results]

    def _translated(self, step: Step, graph: tf.Graph, inputs: Sequence[Any], build: Builder) -> Sequence[Any]:
        if step.op == "Const":
            return [_constant(step, build)]
        node = Node(graph.get_operation_by_name(step.name), step, inputs, self.function)
        constants = folded(node)
        if constants is not None:
            return [build.constant(array, onnx_type(array.dtype)) for array in constants]
        rule = _rule(node)
        made = rule.function(node, build, *inputs)
        results = made if isinstance(made, tuple | list) else (made,)
        return [_stated(build, node, at, result) for at, result in enumerate(results)]


def _rule(node: Node) -> Rule:
    rule = rules().get(node.op)
    if rule is None:
        where = f" in layer '{node.step.path}'" if node.step.path else ""
        raise UnsupportedOpError(
            f"TensorFlow's {node.op} has no counterpart{where}",
            node=f"node '{node.name}' ({node.op} of TensorFlow)",
            hint="express it with other operators of TensorFlow, or leave it out of what is exported",
        )
    if not rule.handles and not all(isinstance(value, ir.Value) for value in node.values):
        node.refuse("reads something that is not a tensor")
    return rule


def _stated(build: Builder, node: Node, at: int, result: Any) -> Any:
    """A result with the type and shape that TensorFlow states."""
    if not isinstance(result, ir.Value):
        return result
    dtype = node.result_dtype(at)
    wanted = onnx_type(dtype)
    if result.dtype is not None and result.dtype != wanted:
        result = build.cast(result, wanted)
    if result.producer() is None:  # an input or a constant, which knows best
        return result
    dims = node.result_shape(at)
    if dims is None:
        return typed(result, wanted, None if result.shape is None else list(result.shape))
    return typed(result, wanted, _combined((*dims, 2) if dtype.kind == "c" else dims, result))


def _combined(dims: Sequence[int | None], value: ir.Value) -> list[int | str | None]:
    """Sizes as TensorFlow knows them, and where it does not, as the value does."""
    if value.shape is None or len(value.shape) != len(dims):
        return list(dims)
    own = [dim if isinstance(dim, int) else dim.value for dim in value.shape]
    return [mine if size is None else size for size, mine in zip(dims, own, strict=True)]


def _place(value: Any, dtype: tf.DType) -> Placed:
    if not isinstance(value, ir.Value):
        described = getattr(value, "place", None)
        return Placed(dtype, None) if described is None else described
    array = known(value)
    shape = merged_shape(None, value, numpy_type(dtype))
    small = array is not None and array.size <= _SMALL and dtype.is_integer
    return Placed(dtype, shape, array if small else None)


def _argument_types(definition: Any) -> list[tf.DType]:
    return [tf.as_dtype(argument.type) for argument in definition.signature.input_arg]


def _constant(step: Step, build: Builder) -> ir.Value:
    array = tf.make_ndarray(step.attributes["value"].tensor)
    if array.dtype.kind == "c":
        array = np.stack([array.real, array.imag], -1)
    array = texts(array)
    weight = array.ndim > 1 or array.size > _SMALL
    if weight and array.dtype.kind != "O":
        return build.weight(step.name, array.astype(onnx_type(array.dtype).numpy(), copy=False))
    return build.constant(array, onnx_type(array.dtype))
