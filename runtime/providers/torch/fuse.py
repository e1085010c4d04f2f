"""What torch's kernels on the host do at once: a product or convolution with what follows it.

Where a rule cannot bind its kernel, nothing changes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from entrepot.runtime import fuse
from entrepot.runtime.binding import view
from entrepot.runtime.fuse import Neighbours
from entrepot.runtime.plan import Step, Value
from entrepot.runtime.providers.torch.epilogues import activation
from entrepot.runtime.providers.torch.linear import and_added, by_constant
from entrepot.runtime.providers.torch.prepared.conv import conv_with
from entrepot.runtime.providers.torch.prepared.matmul import gemm_with, rows_of
from entrepot.runtime.tails import after_conv, after_gemm, after_matmul, joined


def _fuse_conv(graph: Neighbours, conv: Step) -> None:
    """Conv, then Add of a tensor of its result's shape, then an activation; each of the two may be missing."""
    tail = after_conv(graph, conv, activation)
    function = conv_with(view(conv), tail.activation) if len(tail.steps) > 1 else None
    if function is not None:
        residual = [] if tail.residual is None else [tail.residual]
        inputs = [*conv.inputs, *[None] * (3 - len(conv.inputs)), *residual]
        graph.replace(tail.steps, joined(tail.steps, inputs, function))


def _fuse_gemm(graph: Neighbours, gemm: Step) -> None:
    """Gemm with constant weights, then an activation."""
    tail = after_gemm(graph, gemm, activation)
    function = None if tail.activation is None else gemm_with(view(gemm), tail.activation)
    if function is not None:
        graph.replace(tail.steps, joined(tail.steps, list(gemm.inputs), function))


def _fuse_matmul(graph: Neighbours, product: Step) -> None:
    """MatMul by a constant matrix, then Add of a constant row, then an activation or Add of a like tensor."""
    found = after_matmul(graph, product, activation)
    if found is None:
        return
    (bias, tail), weights = found, product.inputs[1]
    if weights is None or not _is_matrix_and_row(weights.constant, bias.constant):
        return
    rows = rows_of(view(product).inputs[0])
    function = by_constant(weights.constant, bias.constant.reshape(-1), rows, tail.activation)
    inputs = [product.inputs[0], weights, bias]
    if tail.residual is not None:
        function, inputs = and_added(function), [*inputs, tail.residual]
    graph.replace(tail.steps, joined(tail.steps, inputs, function))


def _is_matrix_and_row(weights: np.ndarray[Any, Any], bias: np.ndarray[Any, Any]) -> bool:
    is_float = weights.dtype == bias.dtype == np.float32
    return is_float and weights.ndim == 2 and bias.shape in ((weights.shape[1],), (1, weights.shape[1]))


def _fuse_without_nan(graph: Neighbours, asked: Step) -> None:
    """Where(IsNaN(x), c, x), as exporters write a softmax over what may be masked out altogether."""
    chosen, x = graph.only_reader(asked), asked.inputs[0]
    if chosen is None or not chosen.is_a("Where") or x is None or chosen.inputs[0] is not asked.outputs[0]:
        return
    instead = chosen.inputs[1]
    if chosen.inputs[2] is not x or instead is None or not _is_scalar_like(instead, x):
        return
    number = float(instead.constant.item())

    def run(x: Tensor) -> Tensor:
        return torch.nan_to_num(x, number, torch.inf, -torch.inf)

    graph.replace([asked, chosen], joined([asked, chosen], [x], run))


def _is_scalar_like(value: Value, x: Value) -> bool:
    """Whether a value is one constant number, and selecting between it and x gives the shape of x."""
    known = x.type
    if not isinstance(value.constant, np.ndarray) or known is None or known.numpy != np.float32:
        return False
    return value.constant.size == 1 and known.shape is not None and value.constant.ndim <= len(known.shape)


RULES: fuse.Rules = {
    **fuse.RULES,
    "Conv": (_fuse_conv,),
    "Gemm": (_fuse_gemm,),
    "IsNaN": (_fuse_without_nan,),
    "MatMul": (_fuse_matmul,),
}
"""What is tried on steps of each operator."""
