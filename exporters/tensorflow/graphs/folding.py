"""What is the same in every run is computed by TensorFlow, while the graph is translated."""

from __future__ import annotations

import inspect
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from entrepot.exporters.tensorflow.arrays import texts
from entrepot.exporters.tensorflow.node import Node
from entrepot.exporters.tensorflow.upstream import operator_definition

_MOST = 1 << 16
"""Elements of a result that is stored instead of computed."""


def folded(node: Node) -> list[np.ndarray[Any, Any]] | None:
    """The results of a node that reads constants only; ``None`` where it does not, or where they are large."""
    if not node.values or not node.operation.outputs:
        return None
    arrays = [node.constant(at) for at in range(len(node.values))]
    if any(array is None for array in arrays) or any(array.size > _MOST for array in arrays if array is not None):
        return None
    return computed(node, arrays) if _is_plain(node) else None


def computed(node: Node, arrays: Sequence[Any]) -> list[np.ndarray[Any, Any]] | None:
    """What TensorFlow computes for these inputs; ``None`` where it refuses, which a run would do as well."""
    definition = operator_definition(node.op)
    function = getattr(tf.raw_ops, node.op, None)
    if function is None or definition is None:
        return None
    given, waiting = {}, list(arrays)
    for argument in definition.input_arg:
        count = node[argument.number_attr] if argument.number_attr else 1
        if argument.type_list_attr:
            count = len(node[argument.type_list_attr])
        taken, waiting = waiting[:count], waiting[count:]
        given[argument.name] = taken if argument.number_attr or argument.type_list_attr else taken[0]
    names = inspect.signature(function).parameters.keys() - given.keys() - {"name"}
    attributes = {name: node.operation.get_attr(name) for name in names}
    try:
        with tf.device("CPU"):
            found = tf.nest.flatten(function(**given, **attributes))
    except (tf.errors.OpError, ValueError, TypeError):
        return None
    return [texts(np.asarray(tensor.numpy())) for tensor in found]


def _is_plain(node: Node) -> bool:
    """Whether it is a function of tensors alone, with results of a size that is known and not large."""
    definition = operator_definition(node.op)
    if definition is None or definition.is_stateful or any(attr.type == "func" for attr in definition.attr):
        return False
    tensors = [*node.operation.inputs, *node.operation.outputs]
    if any(tensor.dtype.is_complex or tensor.dtype in (tf.resource, tf.variant) for tensor in tensors):
        return False
    shapes = [node.result_shape(at) for at in range(len(node.operation.outputs))]
    return all(shape is None or None in shape or math.prod(size or 0 for size in shape) <= _MOST for shape in shapes)
