"""Products of matrices."""

from __future__ import annotations

from typing import Any

from entrepot.exporters.building import Builder
from entrepot.exporters.tensorflow.dtypes import onnx_type
from entrepot.exporters.tensorflow.node import Node
from entrepot.exporters.tensorflow.numeric import computed
from entrepot.exporters.tensorflow.sizes import rank_of, transposed
from entrepot.exporters.tensorflow.table import translates


@translates("MatMul")
def matmul(node: Node, build: Builder, a: Any, b: Any) -> Any:
    """Of two matrices."""
    return product(node, build, a, b, node["transpose_a"], node["transpose_b"])


@translates("SparseMatMul")
def dense_in_name_only(node: Node, build: Builder, a: Any, b: Any) -> Any:
    """Of matrices of which many elements may be 0; halves are widened."""
    kind = node.result_dtype()
    return product(node, build, build.cast(a, kind), build.cast(b, kind), node["transpose_a"], node["transpose_b"])


@translates("BatchMatMul", "BatchMatMulV2", "BatchMatMulV3")
def batch_matmul(node: Node, build: Builder, a: Any, b: Any) -> Any:
    """Of many pairs of matrices."""
    kind = onnx_type(node.result_dtype())
    return product(node, build, build.cast(a, kind), build.cast(b, kind), node["adj_x"], node["adj_y"])


def product(node: Node, build: Builder, a: Any, b: Any, turn_a: bool, turn_b: bool) -> Any:
    """A @ b, either of them transposed."""
    a = swapped(build, a, rank_of(node, 0)) if turn_a else a
    b = swapped(build, b, rank_of(node, 1)) if turn_b else b
    return computed(build, "MatMul", a, b)


def swapped(build: Builder, x: Any, rank: int) -> Any:
    """The last two axes exchanged."""
    return transposed(build, x, [*range(rank - 2), rank - 1, rank - 2])


@translates("Einsum")
def einsum(node: Node, build: Builder, *values: Any) -> Any:
    """By its equation."""
    return computed(build, "Einsum", *values, equation=node["equation"])


@translates("Cross")
def cross(node: Node, build: Builder, a: Any, b: Any) -> Any:
    """Of vectors of three, along the last axis."""
    one, two = ([1, 2, 0], [2, 0, 1])
    terms = []
    for first, second in ((one, two), (two, one)):
        left, right = build.op("Gather", a, first, axis=-1), build.op("Gather", b, second, axis=-1)
        terms.append(computed(build, "Mul", left, right))
    return computed(build, "Sub", *terms)
