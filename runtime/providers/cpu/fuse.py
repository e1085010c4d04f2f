"""What one NumPy kernel does at once: a product or convolution with what follows it.

Where a rule cannot bind its kernel, nothing changes.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from entrepot.runtime import fuse
from entrepot.runtime.binding import view
from entrepot.runtime.fuse import Neighbours
from entrepot.runtime.plan import Step
from entrepot.runtime.providers.cpu import epilogues
from entrepot.runtime.providers.cpu.linear import linear
from entrepot.runtime.providers.cpu.prepared.conv import conv_with
from entrepot.runtime.providers.cpu.prepared.matmul import gemm_with
from entrepot.runtime.tails import after_conv, after_gemm, after_matmul, joined


def _fuse_conv(graph: Neighbours, conv: Step) -> None:
    """Conv, then Add of a tensor of its result's shape, then an activation; each of the two may be missing."""
    tail = after_conv(graph, conv, epilogues.activation)
    if len(tail.steps) == 1:
        return
    function = conv_with(view(conv), epilogues.of_tile(tail.residual is not None, tail.activation))
    if function is None:
        return
    residual = [] if tail.residual is None else [tail.residual]
    inputs = [*conv.inputs, *[None] * (3 - len(conv.inputs)), *residual]
    graph.replace(tail.steps, joined(tail.steps, inputs, _checked(function) if residual else function))


def _checked(function: Callable[..., np.ndarray]) -> Callable[..., np.ndarray]:
    """The pattern relies on declared shapes; a residual that would broadcast after all is refused, not mangled."""

    def conv_add(X: np.ndarray, W: np.ndarray, B: np.ndarray | None, residual: np.ndarray) -> np.ndarray:
        y = function(X, W, B, residual)
        if y.shape != residual.shape:
            raise ValueError(f"declared shapes are wrong: {y.shape} and {residual.shape} should be equal")
        return y

    return conv_add


def _fuse_gemm(graph: Neighbours, gemm: Step) -> None:
    """Gemm with constant weights, then an activation."""
    tail = after_gemm(graph, gemm, epilogues.activation)
    if tail.activation is None:
        return
    function = gemm_with(view(gemm), tail.activation, epilogues.floor(tail.steps[-1]))
    if function is not None:
        graph.replace(tail.steps, joined(tail.steps, list(gemm.inputs), function))


def _fuse_matmul(graph: Neighbours, product: Step) -> None:
    """MatMul by a constant matrix, then Add of a constant row, then an activation or Add of a like tensor."""
    found = after_matmul(graph, product, epilogues.activation)
    if found is None:
        return
    (bias, tail), weight = found, product.inputs[1]
    assert weight is not None
    function = linear(weight.constant, bias.constant, tail.activation)
    if function is not None:
        inputs = [product.inputs[0], weight, bias, *([] if tail.residual is None else [tail.residual])]
        graph.replace(tail.steps, joined(tail.steps, inputs, function))


RULES: fuse.Rules = {**fuse.RULES, "Conv": (_fuse_conv,), "Gemm": (_fuse_gemm,), "MatMul": (_fuse_matmul,)}
"""What is tried on steps of each operator."""
