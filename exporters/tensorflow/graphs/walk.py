"""Every node of a graph, translated in turn."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir
import tensorflow as tf

from entrepot.exporters.building import Builder, typed
from entrepot.exporters.cutting import CUT, REFUSALS
from entrepot.exporters.tensorflow.arrays import texts
from entrepot.exporters.tensorflow.dtypes import numpy_type, onnx_type
from entrepot.exporters.tensorflow.graphs.body import SAME, Body, Ref, Step
from entrepot.exporters.tensorflow.graphs.expanding import Flat, Library, expanded
from entrepot.exporters.tensorflow.graphs.folding import folded, follow_sizes
from entrepot.exporters.tensorflow.graphs.inference import Placed, inferred
from entrepot.exporters.tensorflow.node import Node, Shape, dims_of, known, merged_shape
from entrepot.exporters.tensorflow.table import Rule, pair_rules, rules
from entrepot.ir.errors import UnsupportedOpError

_SMALL = 64
"""Elements of a constant that may be a shape; larger ones, and vectors of floats, are called after their node."""


class Walk:
    """The translation of a graph and of the functions in it.

    Args:
        library: Its functions.

    Attributes:
        ungrouped: Names of the convolutions that were written without knowing how many groups they have.
    """

    def __init__(self, library: Library) -> None:
        self.library = library
        self.ungrouped: set[str] = set()

    def beside(self, library: Library) -> Walk:
        """The translation of a part of the same graph that has functions of its own."""
        walk = Walk(library)
        walk.ungrouped = self.ungrouped
        return walk

    def flat(self, name: str) -> Flat:
        """A function without calls."""
        return expanded(self.library.body(name), self.library)

    def types(self, name: str) -> list[tf.DType]:
        """The element types of a function's arguments."""
        return [tf.as_dtype(each.type) for each in self.library.definitions[name].signature.input_arg]

    def function(self, name: str, build: Builder, values: Sequence[Any]) -> list[Any]:
        """What a function returns for values; see ``body``."""
        return self.flatly(self.flat(name), build, values, self.types(name))

    def body(self, body: Body, build: Builder, values: Sequence[Any], types: Sequence[tf.DType]) -> list[Any]:
        """Write the nodes of a body, applied to values; returns its results.

        Raises:
            UnsupportedOpError: An operator has no counterpart.
            ConversionError: TensorFlow does not take the graph for these values.
        """
        return self.flatly(expanded(body, self.library), build, values, types)

    def flatly(self, flat: Flat, build: Builder, values: Sequence[Any], types: Sequence[tf.DType]) -> list[Any]:
        """The same for a body without calls."""
        places = {ref: place(value, dtype) for ref, value, dtype in zip(flat.arguments, values, types, strict=True)}
        graph = inferred(flat, places, self.library)
        return self._walked(flat, graph, dict(zip(flat.arguments, values, strict=True)), build)

    def shapes(
        self,
        refs: Sequence[Ref],
        flat: Flat,
        values: Sequence[Any],
        types: Sequence[tf.DType],
        dims: Mapping[int, Shape],
    ) -> list[Shape]:
        """The shapes of what a function computes, for values of which some have other shapes.

        Args:
            refs: What is asked for.
            flat: The function.
            values: Its arguments.
            types: Their element types.
            dims: The shapes of some arguments, by number, which are then not taken for constants.
        """
        graph = self._inferred(flat, values, types, dims)
        return [dims_of(graph.get_tensor_by_name(f"{name}:{at}")) for name, at in refs]

    def _inferred(
        self, flat: Flat, values: Sequence[Any], types: Sequence[tf.DType], dims: Mapping[int, Shape]
    ) -> tf.Graph:
        places = {}
        for at, (ref, value, dtype) in enumerate(zip(flat.arguments, values, types, strict=True)):
            places[ref] = Placed(dtype, dims[at]) if at in dims and isinstance(value, ir.Value) else place(value, dtype)
        return inferred(flat, places, self.library)

    def _walked(self, flat: Flat, graph: tf.Graph, values: dict[Ref, Any], build: Builder) -> list[Any]:
        for step in flat.steps:
            results = self.results_of(step, graph, [values[ref] for ref in step.inputs], build)
            values.update({(step.name, at): result for at, result in enumerate(results)})
        return [values[ref] for ref in flat.results]

    def results_of(self, step: Step, graph: tf.Graph, inputs: Sequence[Any], build: Builder) -> Sequence[Any]:
        """Write a node; returns its results.

        Args:
            step: It.
            graph: Has the same node, with shapes.
            inputs: What it reads.
            build: Where it is written.
        """
        with build.module(step.path) if step.path else contextlib.nullcontext():
            return self._translated(step, graph, inputs, build)

    def _translated(self, step: Step, graph: tf.Graph, inputs: Sequence[Any], build: Builder) -> Sequence[Any]:
        if step.op == "Const":
            return [_constant(step, build)]
        if step.op in SAME:
            return inputs
        node = Node(graph.get_operation_by_name(step.name), step, inputs, self)
        constants = folded(node)
        if constants is not None:
            return [build.constant(array, onnx_type(array.dtype)) for array in constants]
        try:
            made = _rule(node).function(node, build, *inputs)
        except REFUSALS as error:
            if node.has_text():
                error.hint = CUT
            raise
        results = made if isinstance(made, tuple | list) else (made,)
        stated = [_stated(build, node, at, result) for at, result in enumerate(results)]
        follow_sizes(node, stated)
        return stated


def _rule(node: Node) -> Rule:
    rule = rules().get(node.op)
    if node.is_complex() and not (rule is not None and rule.handles):
        rule = pair_rules().get(node.op)
        if rule is None and node.op in rules():
            node.refuse("has no counterpart for complex numbers")
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


def place(value: Any, dtype: tf.DType) -> Placed:
    """What TensorFlow is told of a value."""
    if not isinstance(value, ir.Value):
        described = getattr(value, "place", None)
        return Placed(dtype, None) if described is None else described
    array = known(value)
    shape = merged_shape(None, value, numpy_type(dtype))
    small = array is not None and array.size <= _SMALL and dtype.is_integer
    return Placed(dtype, shape, array if small else None)


def _constant(step: Step, build: Builder) -> ir.Value:
    array = tf.make_ndarray(step.attributes["value"].tensor)
    if array.dtype.kind == "c":
        array = np.stack([array.real, array.imag], -1)
    array = texts(array)
    kind = onnx_type(array.dtype)
    if array.size > _SMALL or (array.ndim and kind.is_floating_point()):
        own = step.name.rpartition("/")[2]
        name = f"{step.path}/{own}" if step.path else own
        return build.weight(name, array.astype(kind.numpy(), copy=False) if kind != ir.DataType.STRING else array)
    return build.constant(array, onnx_type(array.dtype))
