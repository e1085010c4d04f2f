"""A product or convolution and what follows it: the part of fusing that knows no framework."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from entrepot.ir.table import OpKey
from entrepot.ir.typing.plain import Type
from entrepot.runtime.planning.fuse import Neighbours
from entrepot.runtime.planning.plan import FUSED, Call, Step, Value

Takes = Callable[[Step], bool]
"""Whether a kernel can apply a step to its own result."""


@dataclass(frozen=True)
class Chain:
    """Steps that one kernel may run.

    Attributes:
        steps: In order; each is the only reader of the one before it.
        bias: A constant row that is added to a product.
        residual: What is added to the result, of the same shape.
        activation: The last step, if it is one.
    """

    steps: list[Step]
    bias: Value | None = None
    residual: Value | None = None
    activation: Step | None = None


def after_conv(graph: Neighbours, conv: Step, takes: Takes) -> Chain:
    """Conv, then Add of a tensor of its result's shape, then an activation; each of the two may be missing."""
    steps, residual = [conv], None
    added = graph.only_reader(conv)
    if added is not None and added.is_a("Add"):
        residual = other_operand(added, conv)
        if residual is None or residual.constant is not None or not same_shape(residual.type, conv.outputs[0]):
            residual = None
        else:
            steps.append(added)
    after = _taken(graph, steps[-1], takes)
    return Chain([*steps, *filter(None, [after])], None, residual, after)


def after_matmul(graph: Neighbours, product: Step, takes: Takes) -> Chain | None:
    """MatMul by a constant matrix, then Add of a constant row, then an activation or Add of a like tensor."""
    weight = product.inputs[1]
    added = graph.only_reader(product)
    if weight is None or not isinstance(weight.constant, np.ndarray) or added is None or not added.is_a("Add"):
        return None
    bias = other_operand(added, product)
    if bias is None or not isinstance(bias.constant, np.ndarray) or _widens(bias.constant, product.outputs[0]):
        return None
    after = _taken(graph, added, takes)
    if after is not None:
        return Chain([product, added, after], bias, None, after)
    second = graph.only_reader(added)
    residual = None if second is None or not second.is_a("Add") else other_operand(second, added)
    if second is not None and residual is not None and same_shape(residual.type, added.outputs[0]):
        return Chain([product, added, second], bias, residual)
    return Chain([product, added], bias)


def _widens(row: np.ndarray[Any, Any], result: Value | None) -> bool:
    """Whether adding a row may give a product more axes, as ``(1, n)`` does to that of a vector."""
    shape = None if result is None or result.type is None else result.type.shape
    return row.ndim > (1 if shape is None else len(shape))


def _taken(graph: Neighbours, step: Step, takes: Takes) -> Step | None:
    after = graph.only_reader(step)
    return after if after is not None and takes(after) else None


def other_operand(added: Step, step: Step) -> Value | None:
    """The operand of a commutative step that is not the result of ``step``."""
    left, right = added.inputs
    return right if left is step.outputs[0] else left


def same_shape(known: Type | None, value: Value | None) -> bool:
    """Whether two values certainly have one shape: every axis is declared, and declared alike."""
    other = None if value is None else value.type
    if known is None or other is None or known.shape is None or known.dtype != other.dtype:
        return False
    return None not in known.shape and known.shape == other.shape


def as_one(
    steps: Sequence[Step], inputs: list[Value | None], function: Callable[..., Any], kind: str = "fused"
) -> Step:
    """One step for several: it reads ``inputs`` and produces what the last of them did."""
    function.__name__ = "_".join(step.op_type.lower() for step in steps)
    return replace(
        steps[-1],
        key=OpKey(FUSED, "".join(step.op_type for step in steps), 1),
        inputs=inputs,
        attributes={},
        blocks={},
        where=" with ".join(step.where for step in steps),
        call=Call(function, kind),
    )


def checked(function: Callable[..., Any]) -> Callable[..., Any]:
    """The pattern relies on declared shapes; a residual that would broadcast after all is refused, not mangled."""

    def added(*inputs: Any) -> Any:
        y, residual = function(*inputs), inputs[-1]
        if y.shape != residual.shape:
            raise ValueError(f"declared shapes are wrong: {y.shape} and {residual.shape} should be equal")
        return y

    return added
