"""Shapes and types of all results, as TensorFlow itself infers them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf

from entrepot.exporters.tensorflow.graphs.body import Ref, Step
from entrepot.exporters.tensorflow.graphs.expanding import Flat, Library
from entrepot.ir.errors import ConversionError

_MOST_COPIED = 4096
"""Elements of a constant that may be a shape, a permutation, a table of indices."""

_DROPPED = ("_class", "_output_shapes")


@dataclass(frozen=True)
class Placed:
    """What is known of an argument.

    Attributes:
        dtype: TensorFlow's element type.
        shape: Its sizes, ``None`` for those that vary; ``None`` where the rank is not known.
        value: Its value, where that is known and small.
        variable: Whether it is the handle of a variable of this type and shape.
    """

    dtype: tf.DType
    shape: Sequence[int | None] | None
    value: np.ndarray[Any, Any] | None = None
    variable: bool = False


def inferred(flat: Flat, places: Mapping[Ref, Placed], library: Library) -> tf.Graph:
    """A graph of TensorFlow with the steps of another, whose arguments are placed.

    What a table returns has a shape in Python only, which a graph forgets; it is stated anew until nothing is added.

    Raises:
        ConversionError: TensorFlow refuses it.
    """
    shapes: dict[Ref, Any] = {}
    while True:
        graph = _imported(flat, places, library, shapes)
        found = {ref: shape for ref, shape in _looked_up(flat, graph) if ref not in shapes}
        if not found:
            return graph
        shapes |= found


def _looked_up(flat: Flat, graph: tf.Graph) -> Iterator[tuple[Ref, Any]]:
    """The shapes of what tables return of which TensorFlow knows none: one element for each key."""
    for step in flat.steps:
        if step.op in _LOOKUPS:
            operation = graph.get_operation_by_name(step.name)
            _, keys, default = operation.inputs
            if operation.outputs[0].shape.rank is None and keys.shape.rank is not None and default.shape.rank == 0:
                yield (step.name, 0), keys.shape.as_proto()


_LOOKUPS = ("LookupTableFind", "LookupTableFindV2")


def _imported(flat: Flat, places: Mapping[Ref, Placed], library: Library, shapes: Mapping[Ref, Any]) -> tf.Graph:
    """The graph, with results of some shapes between what makes and what reads them."""
    definition = tf.compat.v1.GraphDef()
    definition.versions.producer = tf.version.GRAPH_DEF_VERSION
    for ref in flat.arguments:
        definition.node.append(_placed(ref[0], places[ref]))
    for step in flat.steps:
        definition.node.append(_node(step, shapes))
    definition.node.extend(_of_shape(ref, shape, flat) for ref, shape in shapes.items())
    definition.library.function.extend(library.called_by(flat.steps))
    graph = tf.Graph()
    try:
        with graph.as_default():
            tf.graph_util.import_graph_def(definition, name="")
    except (ValueError, TypeError, tf.errors.OpError) as error:
        raise ConversionError(f"TensorFlow does not take the graph: {error}") from error
    return graph


def _of_shape(ref: Ref, shape: Any, flat: Flat) -> Any:
    made = next(step for step in flat.steps if step.name == ref[0])
    node = tf.compat.v1.NodeDef(name=ref[0] + _STATED, op="EnsureShape", input=[f"{ref[0]}:{ref[1]}"])
    node.attr["shape"].shape.CopyFrom(shape)
    node.attr["T"].CopyFrom(made.attributes["Tout"])
    return node


_STATED = "/of_this_shape"


def _node(step: Step, shapes: Mapping[Ref, Any]) -> Any:
    if step.op == "Const" and (large := _large(step)) is not None:
        return _placed(step.name, large)
    node = tf.compat.v1.NodeDef(name=step.name, op=step.op)
    node.input.extend(f"{name}{_STATED if (name, at) in shapes else ''}:{at}" for name, at in step.inputs)
    for key, value in step.attributes.items():
        if key not in _DROPPED:
            node.attr[key].CopyFrom(value)
    return node


def _large(step: Step) -> Placed | None:
    """A constant of which TensorFlow needs the shape only, so that weights are not copied."""
    tensor = step.attributes["value"].tensor
    shape = tf.TensorShape(tensor.tensor_shape)
    if shape.num_elements() <= _MOST_COPIED:
        return None
    return Placed(tf.as_dtype(tensor.dtype), shape.as_list())


def _placed(name: str, place: Placed) -> Any:
    node = tf.compat.v1.NodeDef(name=name, op="Placeholder")
    node.attr["dtype"].type = place.dtype.as_datatype_enum
    if place.value is not None:
        node.op = "Const"
        node.attr["value"].tensor.CopyFrom(tf.make_tensor_proto(place.value, dtype=place.dtype))
    else:
        node.op = "VarHandleOp" if place.variable else node.op
        node.attr["shape"].shape.CopyFrom(tf.TensorShape(place.shape).as_proto())
    return node


def part_of(
    flat: Flat, graph: tf.Graph, library: Library, wanted: Sequence[Ref], given: Sequence[Ref]
) -> tuple[Any, dict[Ref, int]]:
    """The steps that some results depend on, as a ``GraphDef`` that TensorFlow can run.

    Args:
        flat: The graph that it is a part of.
        graph: That graph, with shapes.
        library: Its functions.
        wanted: The results.
        given: Results that the part does not compute: ``given_0``, ``given_1``, ... in it.

    Returns:
        It, and the arguments of the graph that it takes, each with its number: ``argument_0`` in it.
    """
    places = {ref: f"given_{at}" for at, ref in enumerate(given)}
    by_name = {step.name: step for step in flat.steps}
    numbers = {ref: at for at, ref in enumerate(flat.arguments)}
    arguments, seen, waiting = dict[Ref, int](), set[str](), [ref for ref in wanted if ref not in places]
    while waiting:
        ref = waiting.pop()
        if ref in numbers:
            arguments[ref] = numbers[ref]
        elif ref[0] not in seen:
            seen.add(ref[0])
            waiting += [each for each in by_name[ref[0]].inputs if each not in places]
    places |= {ref: f"argument_{at}" for ref, at in arguments.items()}
    steps = [step for step in flat.steps if step.name in seen]
    definition = tf.compat.v1.GraphDef()
    definition.versions.producer = tf.version.GRAPH_DEF_VERSION
    for ref, name in places.items():
        tensor = graph.get_tensor_by_name(f"{ref[0]}:{ref[1]}")
        known = None if tensor.dtype == tf.resource or tensor.shape.rank is None else tensor.shape.as_list()
        definition.node.append(_placed(name, Placed(tensor.dtype, known)))
    definition.node.extend(_whole(step, places) for step in steps)
    definition.library.function.extend(library.called_by(steps))
    return definition, arguments


def _whole(step: Step, places: Mapping[Ref, str]) -> Any:
    node = tf.compat.v1.NodeDef(name=step.name, op=step.op)
    node.input.extend(f"{places[ref]}:0" if ref in places else f"{ref[0]}:{ref[1]}" for ref in step.inputs)
    for key, value in step.attributes.items():
        if key not in _DROPPED:
            node.attr[key].CopyFrom(value)
    return node
