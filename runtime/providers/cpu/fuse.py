"""What one NumPy kernel does at once: a product or convolution with what follows it.

Where a rule cannot bind its kernel, nothing changes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from entrepot.ir.table import OpKey
from entrepot.ir.typing.plain import Type
from entrepot.runtime import fuse
from entrepot.runtime.binding import view
from entrepot.runtime.fuse import Neighbours
from entrepot.runtime.plan import FUSED, Call, Step, Value
from entrepot.runtime.providers.cpu import epilogues
from entrepot.runtime.providers.cpu.linear import linear
from entrepot.runtime.providers.cpu.prepared.conv import conv_with
from entrepot.runtime.providers.cpu.prepared.matmul import gemm_with


def _tail(graph: Neighbours, step: Step) -> tuple[Step | None, epilogues.Activation | None]:
    """The activation that follows a step, if one does that can work in place."""
    after = graph.only_reader(step)
    activation = None if after is None else epilogues.activation(after)
    return (after, activation) if activation is not None else (None, None)


def _fuse_conv(graph: Neighbours, conv: Step) -> None:
    """Conv, then Add of a tensor of its result's shape, then an activation; each of the two may be missing."""
    steps, residual = [conv], None
    added = graph.only_reader(conv)
    if added is not None and added.is_a("Add"):
        residual = _other(added, conv)
        if residual is None or residual.constant is not None or not _same_shape(residual.type, conv.outputs[0]):
            residual = None
        else:
            steps.append(added)
    after, activation = _tail(graph, steps[-1])
    if after is not None:
        steps.append(after)
    if len(steps) == 1:
        return
    function = conv_with(view(conv), epilogues.of_tile(residual is not None, activation))
    if function is None:
        return
    inputs = [*conv.inputs, *[None] * (3 - len(conv.inputs)), *([] if residual is None else [residual])]
    graph.replace(steps, _step(steps, inputs, _checked(function) if residual is not None else function))


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
    after, activation = _tail(graph, gemm)
    if after is None or activation is None:
        return
    function = gemm_with(view(gemm), activation, epilogues.floor(after))
    if function is not None:
        graph.replace([gemm, after], _step([gemm, after], list(gemm.inputs), function))


def _fuse_matmul(graph: Neighbours, product: Step) -> None:
    """MatMul by a constant matrix, then Add of a constant row, then an activation or Add of a like tensor."""
    weight = product.inputs[1]
    added = graph.only_reader(product)
    if weight is None or not isinstance(weight.constant, np.ndarray) or added is None or not added.is_a("Add"):
        return
    bias = _other(added, product)
    if bias is None or not isinstance(bias.constant, np.ndarray):
        return
    steps = [product, added]
    residual = None
    after, activation = _tail(graph, added)
    if after is not None:
        steps.append(after)
    else:
        second = graph.only_reader(added)
        residual = None if second is None or not second.is_a("Add") else _other(second, added)
        if second is not None and residual is not None and _same_shape(residual.type, added.outputs[0]):
            steps.append(second)
        else:
            residual = None
    function = linear(weight.constant, bias.constant, activation)
    if function is not None:
        inputs = [product.inputs[0], weight, bias, *([] if residual is None else [residual])]
        graph.replace(steps, _step(steps, inputs, function))


def _other(added: Step, step: Step) -> Value | None:
    """The operand of a commutative step that is not the result of ``step``."""
    left, right = added.inputs
    return right if left is step.outputs[0] else left


def _same_shape(known: Type | None, value: Value | None) -> bool:
    """Whether two values certainly have one shape: every axis is declared, and declared alike."""
    other = None if value is None else value.type
    if known is None or other is None or known.shape is None or known.dtype != other.dtype:
        return False
    return None not in known.shape and known.shape == other.shape


def _step(steps: list[Step], inputs: list[Value | None], function: Callable[..., object]) -> Step:
    """One step for several: it reads ``inputs`` and produces what the last of them did."""
    name = "_".join(step.op_type.lower() for step in steps)
    function.__name__ = name
    last = steps[-1]
    return replace(
        last,
        key=OpKey(FUSED, "".join(step.op_type for step in steps), 1),
        inputs=inputs,
        attributes={},
        blocks={},
        where=" with ".join(step.where for step in steps),
        call=Call(function, "fused"),
    )


RULES: fuse.Rules = {**fuse.RULES, "Conv": (_fuse_conv,), "Gemm": (_fuse_gemm,), "MatMul": (_fuse_matmul,)}
"""What is tried on steps of each operator."""
