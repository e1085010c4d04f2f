"""Outputs of Sigmoid, which onnxruntime (1.31) computes to so many digits after the point, however small they are.

It is off by 1.7e-7 anywhere between 0 and 1: by a hundredth of a probability of 1e-5, and by all of one of 1e-8.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
import onnx_ir

OFF = 2.0**-22
"""How far off it may be."""
_VIEWS = ("Flatten", "Identity", "Reshape", "Squeeze", "Transpose", "Unsqueeze")
_LAID_OUT = (*_VIEWS, "Expand", "Gather", "GatherElements", "GatherND", "Slice", "Split", "Tile")
WHY = "computes Sigmoid to seven digits after the point, which is little where all results are small"


def sigmoids(model: onnx_ir.Model) -> frozenset[str]:
    """The outputs whose elements all come from Sigmoid as they are."""
    return frozenset(str(value.name) for value in model.graph.outputs if _is_sigmoid(value))


def without_what_is_off(
    names: Collection[str], expected: Mapping[str, Any], actual: Mapping[str, Any]
) -> dict[str, Any]:
    """The outputs of a model, with elements of some taken from the source that may be off by as much as they are."""
    return {name: _settled(expected.get(name), value) if name in names else value for name, value in actual.items()}


def _settled(expected: Any, actual: Any) -> Any:
    if not (isinstance(expected, np.ndarray) and isinstance(actual, np.ndarray) and expected.shape == actual.shape):
        return actual
    if not expected.dtype == actual.dtype == np.float32:
        return actual
    return np.where(np.abs(actual - expected) <= OFF, expected, actual)


def _is_sigmoid(value: onnx_ir.Value) -> bool:
    found, waiting, seen = False, [value], set[int]()
    while waiting:
        node = waiting.pop().producer()
        if node is None or node.domain:
            return False
        if id(node) in seen:
            continue
        seen.add(id(node))
        if node.op_type == "Sigmoid":
            found = True
        elif node.op_type == "Concat":
            waiting += [each for each in node.inputs if each is not None]
        elif node.op_type in _LAID_OUT and node.inputs[0] is not None:
            waiting.append(node.inputs[0])
        else:
            return False
    return found
