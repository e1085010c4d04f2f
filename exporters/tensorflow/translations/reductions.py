"""Sums, products, extremes and the like over axes."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from entrepot.exporters.building import Builder
from entrepot.exporters.tensorflow.node import Node
from entrepot.exporters.tensorflow.numeric import computed, is_float, number
from entrepot.exporters.tensorflow.scans import scanned
from entrepot.exporters.tensorflow.sizes import axes_of, int64, rank_of, vector
from entrepot.exporters.tensorflow.table import translates

_OPERATORS = {"Sum": "ReduceSum", "Prod": "ReduceProd", "Max": "ReduceMax", "Min": "ReduceMin"}


def axes(node: Node, build: Builder, given: Any, at: int = 1) -> Any:
    """The axes of a reduction, as an operand; none of them is all, unless the vector is empty."""
    shape, value = node.shape(0), node.constant(at)
    if value is not None and shape is not None:
        return build.constant(np.array(axes_of(node, at, len(shape)), np.int64))
    return vector(build, given)


def reduced(build: Builder, op: str, x: Any, over: Any, keepdims: bool) -> Any:
    """A reduction in the element type that TensorFlow has it in; over no axes it changes nothing."""
    return computed(build, op, x, over, keepdims=int(keepdims), noop_with_empty_axes=1)


@translates(*_OPERATORS)
def reduction(node: Node, build: Builder, x: Any, given: Any) -> Any:
    """Extremes of nothing are the limits of the type, and of any NaN it is NaN."""
    over = axes(node, build, given)
    keep = node["keep_dims"]
    return reduced(build, _OPERATORS[node.op], x, over, keep)


@translates("Mean")
def mean(node: Node, build: Builder, x: Any, given: Any) -> Any:
    """Of integers truncated."""
    over = axes(node, build, given)
    if is_float(x):
        return reduced(build, "ReduceMean", x, over, node["keep_dims"])
    wide = x.dtype if x.dtype in (ir.DataType.INT32, ir.DataType.UINT32) else ir.DataType.INT64
    total = reduced(build, "ReduceSum", build.cast(x, wide), over, node["keep_dims"])
    count = build.op("ReduceProd", build.op("Gather", build.shape(x), over), keepdims=0)
    return build.cast(computed(build, "Div", total, build.cast(count, wide)), x.dtype)


@translates("All", "Any")
def truth(node: Node, build: Builder, x: Any, given: Any) -> Any:
    """By way of the smallest and the largest of zeros and ones; of nothing, true and false."""
    over = axes(node, build, given)
    count = build.cast(x if node.op == "Any" else build.op("Not", x), np.int32)
    total = build.op("ReduceSum", count, over, keepdims=int(node["keep_dims"]), noop_with_empty_axes=1)
    found = build.op("Greater", total, 0)
    return found if node.op == "Any" else build.op("Not", found)


@translates("EuclideanNorm")
def euclidean_norm(node: Node, build: Builder, x: Any, given: Any) -> Any:
    """The root of the sum of squares."""
    over = axes(node, build, given)
    total = reduced(build, "ReduceSum", computed(build, "Mul", x, x), over, node["keep_dims"])
    if is_float(x):
        return computed(build, "Sqrt", total)
    return build.cast(build.op("Sqrt", build.cast(total, np.float64)), x.dtype)


@translates("L2Loss")
def half_square(node: Node, build: Builder, x: Any) -> Any:
    """Half of the sum of squares."""
    total = computed(build, "ReduceSum", computed(build, "Mul", x, x), keepdims=0)
    return computed(build, "Mul", total, number(build, 0.5, x))


@translates("ArgMax", "ArgMin")
def place_of_extreme(node: Node, build: Builder, x: Any, given: Any) -> Any:
    """The first one."""
    (axis,) = axes_of(node, 1, rank_of(node))
    if x.dtype == ir.DataType.BOOL:
        x = build.cast(x, np.int32)
    if x.dtype == ir.DataType.UINT64:
        return node.refuse("of unsigned numbers of 64 bits is in no runtime")
    found = computed(build, node.op, x, axis=axis, keepdims=0)
    return build.cast(found, node["output_type"])


@translates("Cumsum", "Cumprod", "CumulativeLogsumexp")
def scan(node: Node, build: Builder, x: Any, given: Any) -> Any:
    """Sums by ONNX's operator, the others by doubling steps of a loop."""
    exclusive, reverse = node["exclusive"], node["reverse"]
    if node.op == "Cumsum":
        return computed(build, "CumSum", x, int64(build, given), exclusive=int(exclusive), reverse=int(reverse))
    rank = rank_of(node)
    (axis,) = axes_of(node, 1, rank)
    return scanned(build, node.op, x, rank, axis, exclusive, reverse)
