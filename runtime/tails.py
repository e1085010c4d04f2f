"""What follows a product or a convolution and may run with it: an addition, an activation.

The patterns are here, for every provider; which activations it has in place, and the kernel, are a provider's.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

import numpy as np

from entrepot.ir.table import OpKey
from entrepot.ir.typing.plain import Type
from entrepot.runtime.fuse import Neighbours
from entrepot.runtime.plan import FUSED, Call, Step, Value

T = TypeVar("T")


@dataclass(frozen=True)
class Tail(Generic[T]):
    """Steps that run together, the first of them the product or convolution.

    Attributes:
        steps: In order.
        residual: What is added to its result, certainly of the result's shape.
        activation: What the provider does in place in the end.
    """

    steps: list[Step]
    residual: Value | None = None
    activation: T | None = None


def after_conv(graph: Neighbours, conv: Step, activation: Callable[[Step], T | None]) -> Tail[T]:
    """Conv, then Add of a tensor of its result's shape, then an activation; each of the two may be missing."""
    steps, residual = [conv], None
    added = graph.only_reader(conv)
    if added is not None and added.is_a("Add"):
        residual = _other(added, conv)
        if residual is None or residual.constant is not None or not _same_shape(residual.type, conv.outputs[0]):
            residual = None
        else:
            steps.append(added)
    after, found = _activated(graph, steps[-1], activation)
    return Tail([*steps, *after], residual, found)


def after_gemm(graph: Neighbours, gemm: Step, activation: Callable[[Step], T | None]) -> Tail[T]:
    """Gemm, then an activation."""
    after, found = _activated(graph, gemm, activation)
    return Tail([gemm, *after], None, found)


def after_matmul(
    graph: Neighbours, product: Step, activation: Callable[[Step], T | None]
) -> tuple[Value, Tail[T]] | None:
    """MatMul by a constant, then Add of a constant, then an activation or Add of a like tensor.

    Returns:
        What is added first, and the rest; ``None`` where there is no such addition.
    """
    weight = product.inputs[1]
    added = graph.only_reader(product)
    if weight is None or not isinstance(weight.constant, np.ndarray) or added is None or not added.is_a("Add"):
        return None
    bias = _other(added, product)
    if bias is None or not isinstance(bias.constant, np.ndarray):
        return None
    after, found = _activated(graph, added, activation)
    if after:
        return bias, Tail([product, added, *after], None, found)
    second = graph.only_reader(added)
    residual = None if second is None or not second.is_a("Add") else _other(second, added)
    if second is None or residual is None or not _same_shape(residual.type, added.outputs[0]):
        return bias, Tail([product, added])
    return bias, Tail([product, added, second], residual)


def joined(steps: list[Step], inputs: list[Value | None], function: Callable[..., Any]) -> Step:
    """One step for several: it reads ``inputs`` and produces what the last of them did."""
    function.__name__ = "_".join(step.op_type.lower() for step in steps)
    return replace(
        steps[-1],
        key=OpKey(FUSED, "".join(step.op_type for step in steps), 1),
        inputs=inputs,
        attributes={},
        blocks={},
        where=" with ".join(step.where for step in steps),
        call=Call(function, "fused"),
    )


def _activated(graph: Neighbours, step: Step, activation: Callable[[Step], T | None]) -> tuple[list[Step], T | None]:
    """The activation that follows a step, if one does that the provider has in place."""
    after = graph.only_reader(step)
    found = None if after is None else activation(after)
    return ([], None) if after is None or found is None else ([after], found)


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
