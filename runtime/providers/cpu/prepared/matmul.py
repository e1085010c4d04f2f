from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np

from entrepot.runtime.node_view import NodeView
from entrepot.runtime.providers.cpu.prepared.constants import blas_constant, constant, is_given
from entrepot.runtime.providers.cpu.table import prepared

Array: TypeAlias = np.ndarray[Any, Any]


@prepared("MatMul", 13)
def matmul(node: NodeView) -> Callable[..., Array] | None:
    """By a constant matrix: one product, however many axes the other operand has."""
    left, right = node.inputs[0], blas_constant(node, 1)
    if right is None or right.ndim != 2:
        return None
    if left is not None and left.shape is not None and len(left.shape) == 2:
        return _by_matrix
    return _by_shared_matrix


def _by_matrix(A: Array, B: Array) -> Array:
    if A.ndim != 2:  # a declared rank may be wrong
        return _by_shared_matrix(A, B)
    return A.dot(B)  # 0.5 µs less than np.matmul


def _by_shared_matrix(A: Array, B: Array) -> Array:
    """A stack by one matrix as one product: ``dot`` on more than two axes does not use BLAS."""
    shape = A.shape
    return A.reshape(-1, shape[-1]).dot(B).reshape(*shape[:-1], B.shape[1]) if A.size else np.matmul(A, B)


@prepared("Gemm", 13)
def gemm(node: NodeView) -> Callable[..., Array] | None:
    """With constant B and C: transposition, alpha and beta are done once."""
    return gemm_with(node, None)


def gemm_with(
    node: NodeView, epilogue: Callable[[Array], object] | None, floor: Array | None = None
) -> Callable[..., Array] | None:
    """A Gemm whose result ``epilogue`` changes in place, or ``None`` where B or C is not constant.

    ``floor`` is the epilogue of a Relu, a 0-d zero: its maximum is taken without a call of ours in between.
    """
    weight, addend = blas_constant(node, 1), constant(node, 2)
    if weight is None or weight.ndim != 2 or node.attributes.get("transA") or (addend is None and is_given(node, 2)):
        return None
    bias = None if addend is None else _bias(addend, node.attributes.get("beta", 1.0))
    packed = _packed(weight, node.attributes)
    if floor is not None and bias is not None:
        return _cut_off(packed, bias, floor)
    return _bound(packed, bias, epilogue)


def _packed(B: Array, given: Mapping[str, Any]) -> Array:
    """B' times alpha, with rows in memory order, which BLAS reads fastest."""
    B = B.T if given.get("transB") else B
    alpha = given.get("alpha", 1.0)
    return np.ascontiguousarray(B if alpha == 1.0 else B * B.dtype.type(alpha))


def _bias(C: Array, beta: float) -> Array | None:
    """C times beta, as a row: beside one row of A that is the result's own shape, which NumPy adds ×3 faster."""
    if beta == 0.0:
        return None
    return np.atleast_2d(C if beta == 1.0 else C * C.dtype.type(beta))


def _cut_off(weight: Array, bias: Array, floor: Array) -> Callable[..., Array]:
    add, maximum = np.add, np.maximum

    def cut_off(A: Array, B: Array | None = None, C: Array | None = None) -> Array:
        y = A.dot(weight)
        return maximum(add(y, bias, y), floor, out=y)

    return cut_off


def _bound(weight: Array, bias: Array | None, epilogue: Callable[[Array], object] | None) -> Callable[..., Array]:
    def plain(A: Array, B: Array | None = None, C: Array | None = None) -> Array:
        return A.dot(weight)

    product = plain if bias is None else _biased(weight, bias)
    return product if epilogue is None else _finished(product, epilogue)


def _biased(weight: Array, bias: Array) -> Callable[..., Array]:
    add = np.add

    def biased(A: Array, B: Array | None = None, C: Array | None = None) -> Array:
        y = A.dot(weight)
        return add(y, bias, y)

    return biased


def _finished(product: Callable[..., Array], epilogue: Callable[[Array], object]) -> Callable[..., Array]:
    def finished(A: Array, B: Array | None = None, C: Array | None = None) -> Array:
        y = product(A)
        epilogue(y)
        return y

    return finished
