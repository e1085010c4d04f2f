"""A concrete function of TensorFlow as a graph of ONNX."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import onnx_ir as ir
import tensorflow as tf

from entrepot.exporters.building import Builder
from entrepot.exporters.tensorflow.arrays import texts
from entrepot.exporters.tensorflow.dtypes import numpy_type, onnx_type
from entrepot.exporters.tensorflow.flow.variables import Handle
from entrepot.exporters.tensorflow.graphs.body import Body, of_graph
from entrepot.exporters.tensorflow.graphs.expanding import Library
from entrepot.exporters.tensorflow.graphs.walk import Walk
from entrepot.exporters.tensorflow.upstream import captured, variable_names
from entrepot.ir.errors import ConversionError, InputError


class Translated(NamedTuple):
    """A graph, and what is known of it.

    Attributes:
        graph: It.
        weights: The names of the initializers in it that are weights.
        ungrouped: Convolutions whose channels are not known, and so not how many groups they have.
    """

    graph: ir.Model
    weights: frozenset[str]
    ungrouped: frozenset[str]


def translated(
    function: Any,
    names: Sequence[str],
    dims: Sequence[Sequence[int | str | None]],
    title: str,
    called: Mapping[int, str],
) -> Translated:
    """The graph of a concrete function.

    Args:
        function: It takes flat tensors, and returns flat tensors.
        names: Of its inputs.
        dims: Their shapes.
        title: What the graph is called.
        called: What variables are called, by ``id`` of their handles.

    Raises:
        UnsupportedOpError: An operator has no counterpart.
    """
    build = Builder(title)
    begun = opened_graph(function, build, names, dims, title, called)
    walk = Walk(begun.library)
    outputs = walk.body(begun.body, build, begun.values, begun.types)
    for tensor, value in zip(function.graph.outputs, outputs, strict=True):
        _refuse_result(tensor, value)
    _refuse_state(outputs, begun.values)
    model = build.model([_own(build, value) for value in outputs])
    return Translated(model, build.weights & model.graph.initializers.keys(), frozenset(walk.ungrouped))


class Begun(NamedTuple):
    """A graph whose inputs are written.

    Attributes:
        body: What it computes.
        library: The functions that it calls.
        values: Its arguments: inputs, then handles and constants from around it.
        types: Their element types.
        outer: What comes from around it, TensorFlow's own, in the order of the last arguments.
    """

    body: Body
    library: Library
    values: Sequence[Any]
    types: Sequence[tf.DType]
    outer: Sequence[Any]


def opened_graph(
    function: Any,
    build: Builder,
    names: Sequence[str],
    dims: Sequence[Sequence[int | str | None]],
    title: str,
    called: Mapping[int, str],
) -> Begun:
    """What a concrete function computes, for inputs of a graph; see ``translated``."""
    definition = function.graph.as_graph_def()
    outer = dict(captured(function))
    free = [tensor for tensor in function.graph.inputs if tensor.op.name not in outer]
    values = [_input(build, *each) for each in zip(free, names, dims, strict=True)]
    handles = [_outside(build, value, function, called) for value in outer.values()]
    arguments = [(tensor.op.name, 0) for tensor in free] + [(name, 0) for name in outer]
    types = [tensor.dtype for tensor in free] + [value.dtype for value in outer.values()]
    results = [(tensor.op.name, tensor.value_index) for tensor in function.graph.outputs]
    library = Library(definition.library.function)
    body = library.functional(of_graph(title, definition.node, arguments, results), types)
    return Begun(body, library, [*values, *handles], types, list(outer.values()))


def _input(build: Builder, tensor: Any, name: str, dims: Sequence[int | str | None]) -> ir.Value:
    dtype = numpy_type(tensor.dtype)
    if dtype.kind == "c":
        raise InputError("an input is complex, and no runtime takes such tensors", value=name)
    return build.input(name, onnx_type(dtype), dims)


def _refuse_result(tensor: Any, value: Any) -> None:
    if not isinstance(value, ir.Value):
        raise ConversionError(f"a result is no tensor: {tensor.name}")
    if tensor.dtype.is_complex:
        raise ConversionError("a result is complex, and no runtime returns such tensors", hint="return its parts")


def _refuse_state(outputs: Sequence[ir.Value], handles: Sequence[Any]) -> None:
    """Refuse results that depend on what a call leaves in a variable for the next one."""
    changed = {
        handle.initial: handle for handle in handles if isinstance(handle, Handle) and handle.current is not None
    }
    if not changed:
        return
    waiting, seen = list(outputs), set[ir.Value]()
    while waiting:
        value = waiting.pop()
        if value in seen:
            continue
        seen.add(value)
        if value in changed:
            raise ConversionError(
                f"a result depends on variable '{changed[value].name}', which each call changes",
                hint="take its value as an argument, and return what it becomes",
            )
        node = value.producer()
        if node is not None:
            waiting += [each for each in _read_by(node) if each is not None]


def _read_by(node: ir.Node) -> Iterator[ir.Value | None]:
    """What a node and the bodies in it read."""
    yield from node.inputs
    for attribute in node.attributes.values():
        if attribute.type == ir.AttributeType.GRAPH:
            yield from attribute.as_graph().outputs
            for inner in attribute.as_graph():
                yield from _read_by(inner)


def _own(build: Builder, value: ir.Value) -> ir.Value:
    """The value, as one that a node of the graph makes."""
    return value if value.producer() is not None else build.op("Identity", value)


def _outside(build: Builder, value: Any, function: Any, called: Mapping[int, str]) -> Any:
    """What a function reads from around it: a handle, or a constant."""
    if value.dtype in (tf.resource, tf.variant):
        return Handle.of(value, variable_names(function, called).get(id(value), "variable"))
    array = texts(value.numpy())
    return build.constant(array, onnx_type(array.dtype)) if array.ndim == 0 else build.weight("captured", array)
