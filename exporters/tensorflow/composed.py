"""Operators whose translation is a program in TensorFlow's other operators, which is traced and translated in place.

For what is a formula rather than an operator of ONNX: cells of recurrent networks, gradients, sparse sets.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, TypeVar

import tensorflow as tf

from entrepot.exporters.building import Builder
from entrepot.exporters.tensorflow.graphs.body import of_graph
from entrepot.exporters.tensorflow.graphs.expanding import Library
from entrepot.exporters.tensorflow.node import Node
from entrepot.exporters.tensorflow.table import translates
from entrepot.ir.errors import UnsupportedOpError

Program: TypeAlias = Callable[..., Any]
"""Takes the node and its inputs, as tensors of TensorFlow; returns what the node returns."""
_P = TypeVar("_P", bound=Program)


def composed(*operators: str, complex_too: bool = False) -> Callable[[_P], _P]:
    """Enter a program as the translation of operators.

    An input that is a constant is one in the program as well, where ``tf.get_static_value`` finds it.

    Args:
        operators: Their names.
        complex_too: Whether it is right for complex numbers as it is.
    """

    def enter(program: _P) -> _P:
        def translate(node: Node, build: Builder, *values: Any) -> Any:
            return in_place(node, build, program, values)

        translates(*operators)(translate)
        if complex_too:
            translates(*operators, pairs=True)(translate)
        return program

    return enter


def in_place(node: Node, build: Builder, program: Program, values: Sequence[Any]) -> tuple[Any, ...]:
    """What a program makes of the values of a node, written in its place."""
    types = [tensor.dtype for tensor in node.operation.inputs]
    free = [at for at in range(len(values)) if node.constant(at) is None or types[at].is_complex]
    specs = [tf.TensorSpec(node.shape(at), types[at]) for at in free]

    def with_constants(*given: tf.Tensor) -> list[tf.Tensor]:
        tensors = dict(zip(free, given, strict=True))
        every = [
            tensors[at] if at in tensors else tf.constant(node.constant(at), types[at]) for at in range(len(values))
        ]
        return [tf.identity(each) for each in tf.nest.flatten(program(node, *every))]

    graph = tf.function(with_constants, autograph=False).get_concrete_function(*specs).graph
    arguments, results = ([(each.op.name, each.value_index) for each in side] for side in (graph.inputs, graph.outputs))
    definition = graph.as_graph_def()
    body = of_graph(node.name, definition.node, arguments, results)
    walk = node.walk.beside(Library(definition.library.function))
    try:
        return tuple(walk.body(body, build, [values[at] for at in free], [types[at] for at in free]))
    except UnsupportedOpError as error:
        node.refuse(f"consists of operators of which {error.message}")
