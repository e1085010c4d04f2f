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
