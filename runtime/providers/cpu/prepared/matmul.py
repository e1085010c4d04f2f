from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np

from entrepot.runtime.node_view import NodeView
from entrepot.runtime.providers.cpu.prepared.constants import blas_constant, constant, is_given
from entrepot.runtime.providers.cpu.products import ALONE, ALONE_BY_VECTOR, Part, dense
from entrepot.runtime.providers.cpu.products import matmul as spread
from entrepot.runtime.providers.cpu.table import prepared

Array: TypeAlias = np.ndarray[Any, Any]


@prepared("MatMul", 13)
def matmul(node: NodeView) -> Callable[..., Array] | None:
    """By a constant matrix: one product, however many axes the other operand has."""
    left, right = node.inputs[0], blas_constant(node, 1)
    if right is None or right.ndim != 2:
        return None
    if left is not None and left.shape is not None and len(left.shape) == 2:
        return _by_matrix(right)
    return _by_shared_matrix


def _by_matrix(weight: Array) -> Callable[..., Array]:
    few = alone_up_to(weight)

    def by_matrix(A: Array, B: Array) -> Array:
        if A.ndim != 2 or A.size > few:  # a declared rank may be wrong
            return _by_shared_matrix(A, B)
        return A.dot(B)  # 0.5 µs less than np.matmul

    return by_matrix


def _by_shared_matrix(A: Array, B: Array) -> Array:
    """A stack times one matrix, as one product."""
    shape = A.shape
    return spread(A.reshape(-1, shape[-1]), B).reshape(*shape[:-1], B.shape[1]) if A.size else np.matmul(A, B)


def alone_up_to(weight: Array) -> int:
    """Up to this many elements of the other operand, BLAS uses one thread for the product."""
    return 0 if weight.size >= ALONE_BY_VECTOR else min(ALONE // max(weight.shape[1], 1), ALONE_BY_VECTOR - 1)


@prepared("Gemm", 13)
def gemm(node: NodeView) -> Callable[..., Array] | None:
    """With constant B and C: transposition, alpha and beta are applied once."""
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
    few, finish = alone_up_to(weight), _finish(bias, lambda y: maximum(y, floor, out=y))

    def cut_off(A: Array, B: Array | None = None, C: Array | None = None) -> Array:
        if A.size > few:
            return dense(A, weight, finish)
        y = A.dot(weight)
        return maximum(add(y, bias, y), floor, out=y)

    return cut_off


def _bound(weight: Array, bias: Array | None, epilogue: Callable[[Array], object] | None) -> Callable[..., Array]:
    few = alone_up_to(weight)

    def plain(A: Array, B: Array | None = None, C: Array | None = None) -> Array:
        return A.dot(weight) if A.size <= few else dense(A, weight)

    product = plain if bias is None else _biased(weight, bias)
    return product if epilogue is None else _finished(product, epilogue)


def _biased(weight: Array, bias: Array) -> Callable[..., Array]:
    add = np.add
    few, finish = alone_up_to(weight), _finish(bias, None)

    def biased(A: Array, B: Array | None = None, C: Array | None = None) -> Array:
        if A.size > few:
            return dense(A, weight, finish)
        y = A.dot(weight)
        return add(y, bias, y)

    return biased


def _finish(bias: Array, then: Callable[[Array], object] | None) -> Callable[[Array, Part], object]:
    """Adds its part of a bias, which broadcasts to the result, to a part of it."""

    def finish(tile: Array, part: Part) -> None:
        own = bias[part[0] if bias.shape[0] > 1 else slice(None), part[1] if bias.shape[1] > 1 else slice(None)]
        np.add(tile, own, tile)
        if then is not None:
            then(tile)

    return finish


def _finished(product: Callable[..., Array], epilogue: Callable[[Array], object]) -> Callable[..., Array]:
    def finished(A: Array, B: Array | None = None, C: Array | None = None) -> Array:
        y = product(A)
        epilogue(y)
        return y

    return finished
