"""Products by constant float32 matrices, packed where that is faster."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from torch import Tensor

from entrepot.runtime.node_view import InputView, NodeView
from entrepot.runtime.providers.torch.constants import constant, float_constant, is_given
from entrepot.runtime.providers.torch.epilogues import Activation
from entrepot.runtime.providers.torch.linear import by_constant
from entrepot.runtime.providers.torch.measuring.chooser import Chooser
from entrepot.runtime.providers.torch.measuring.products import by_measurement

_Kernel = Callable[..., Tensor]


def matmul_with(
    node: NodeView, bias: np.ndarray[Any, Any] | None, activation: Activation | None, chooser: Chooser | None = None
) -> _Kernel | None:
    """A MatMul, then an addition of a row, then ``activation``; ``None`` where it is not by a constant matrix."""
    weights = float_constant(node, 1)
    if weights is None or weights.ndim != 2:
        return None
    if bias is not None and (
        bias.dtype != weights.dtype or bias.shape not in ((weights.shape[1],), (1, weights.shape[1]))
    ):
        return None
    return _product(chooser, weights, None if bias is None else bias.reshape(-1), _rows(node.inputs[0]), activation)


def gemm_with(node: NodeView, activation: Activation | None, chooser: Chooser | None = None) -> _Kernel | None:
    """A Gemm that ends in ``activation``, or ``None`` where B is not constant, or C is no constant row."""
    weights, addend, given = float_constant(node, 1), constant(node, 2), node.attributes
    if weights is None or weights.ndim != 2 or given.get("transA") or (addend is None and is_given(node, 2)):
        return None
    weights = weights.T if given.get("transB") else weights
    alpha, beta = given.get("alpha", 1.0), given.get("beta", 1.0)
    row = None if addend is None or beta == 0.0 else _row(addend, weights.shape[1])
    if addend is not None and beta != 0.0 and row is None:
        return None
    weights = weights if alpha == 1.0 else weights * np.float32(alpha)
    row = row if row is None or beta == 1.0 else row * np.float32(beta)
    return _product(chooser, weights, row, _rows(node.inputs[0]), activation)


def _product(chooser: Chooser | None, *given: Any) -> _Kernel:
    """By what sizes decide, or by what is measured."""
    return by_constant(*given) if chooser is None else by_measurement(chooser, *given)


def _row(addend: np.ndarray[Any, Any], size: int) -> np.ndarray[Any, Any] | None:
    """What is added to every row; ``None`` if rows differ."""
    if addend.ndim > 2 or (addend.ndim == 2 and addend.shape[0] != 1) or addend.shape[-1:] not in ((), (1,), (size,)):
        return None
    return np.broadcast_to(addend.reshape(-1), (size,))


def _rows(value: InputView | None) -> int:
    """How many rows a stack of matrices has together, as far as is declared; 0 where that varies."""
    if value is None or value.shape is None:
        return 0
    rows = 1
    for size in value.shape[:-1]:
        if not isinstance(size, int):
            return 0
        rows *= size
    return rows
