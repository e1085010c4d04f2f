"""What is the same in every run is computed by TensorFlow, while the graph is translated."""

from __future__ import annotations

import inspect
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir
import tensorflow as tf

from entrepot.exporters.tensorflow.arrays import texts
from entrepot.exporters.tensorflow.node import Node, known
from entrepot.exporters.tensorflow.upstream import operator_definition

_VECTOR = 64
"""Elements of a vector of sizes."""

_MOST = 1 << 16
"""Elements of a result that is stored instead of computed."""


_PARTLY = "entrepot.partly"
_MOVING = frozenset({
    "Identity", "StridedSlice", "Slice", "Pack", "Unpack", "ConcatV2", "GatherV2", "Cast", "ExpandDims", "Squeeze",
    "Reshape", "Split", "SplitV", "ReverseV2",
})  # fmt: skip
"""Operators that only move elements, so that those of their results are known whose operands are."""
_STANDING_IN = 104_729, 1_299_709
"""Two numbers for what is not known: what they both lead to does not depend on it."""


def partly_known(value: Any) -> np.ndarray[Any, Any] | None:
    """The value of a vector of sizes, with ``None`` for those that vary; ``None`` if it is no such vector."""
    whole = known(value)
    if whole is not None:
        return whole.astype(object)
    return value.meta.get(_PARTLY) if isinstance(value, ir.Value) else None


def follow_sizes(node: Node, results: Sequence[Any]) -> None:
    """Note on the results of a node which of their elements are known."""
    for at, found in enumerate(moved(node) or ()):
        if isinstance(results[at], ir.Value) and results[at].producer() is not None:
            results[at].meta[_PARTLY] = found


def moved(node: Node) -> list[np.ndarray[Any, Any]] | None:
    """What is known of results that consist of sizes."""
    if node.op in ("Shape", "ShapeN"):
        shapes = [node.shape(at) for at in range(len(node.values))]
        return None if None in shapes else [np.array(shape, object) for shape in shapes]
    given = [partly_known(value) for value in node.values]
    if node.op not in _MOVING or any(array is None or array.size > _VECTOR for array in given):
        return None
    if any(tensor.dtype not in (tf.int32, tf.int64) for tensor in node.operation.inputs):
        return None
    one, two = (computed(node, [_filled(array, node.dtype(at), number) for at, array in enumerate(given)])
                for number in _STANDING_IN)  # fmt: skip
    if one is None or two is None or any(a.shape != b.shape for a, b in zip(one, two, strict=True)):
        return None
    return [_agreed(a, b) for a, b in zip(one, two, strict=True)]


def _agreed(one: np.ndarray[Any, Any], two: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    found = one.astype(object)
    found[one != two] = None
    return found


def _filled(array: Any, dtype: np.dtype[Any], number: int) -> np.ndarray[Any, Any]:
    return np.array([number if size is None else size for size in array.ravel()], dtype).reshape(array.shape)


def folded(node: Node) -> list[np.ndarray[Any, Any]] | None:
    """The results of a node that are the same in every run; ``None`` where they are not, or where they are large."""
    sizes = moved(node)
    if sizes is not None and not any(None in array.ravel().tolist() for array in sizes):
        return [array.astype(node.result_dtype(at)) for at, array in enumerate(sizes)]
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
    # raw_ops takes arrays for tensors of an operator's preferred type: floats for integers, in a Range
    tensors = zip(arrays, node.operation.inputs, strict=True)
    given, waiting = {}, [tf.constant(array, stated.dtype) for array, stated in tensors]
    stated = {attribute.name for attribute in definition.attr}
    names = [name for name in inspect.signature(function).parameters if name not in stated | {"name"}]
    if len(names) != len(definition.input_arg):  # an attribute is called differently as well
        return None
    for argument, name in zip(definition.input_arg, _in_order(definition, names), strict=True):
        count = node[argument.number_attr] if argument.number_attr else 1
        if argument.type_list_attr:
            count = len(node[argument.type_list_attr])
        taken, waiting = waiting[:count], waiting[count:]
        given[name] = taken if argument.number_attr or argument.type_list_attr else taken[0]
    chosen = {name: node.operation.get_attr(name) for name in inspect.signature(function).parameters if name in stated}
    try:
        with tf.device("CPU"):
            found = tf.nest.flatten(function(**given, **chosen))
    except (tf.errors.OpError, ValueError, TypeError):
        return None
    return [texts(np.asarray(tensor.numpy())) for tensor in found]


def _in_order(definition: Any, names: Sequence[str]) -> list[str]:
    """What Python calls each input: the names of some differ from those of the operator's definition."""
    own = [argument.name for argument in definition.input_arg]
    others = iter([name for name in names if name not in own])
    return [name if name in names else next(others) for name in own]


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
