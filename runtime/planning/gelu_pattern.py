"""Gelu as exporters wrote it before opset 20 had it: ``x * 0.5 * (1 + erf(x / sqrt(2)))``, in any association."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from entrepot.ir.table import OpKey
from entrepot.runtime.planning.plan import Step, Value

NextStep = Callable[[Step], "Step | None"]
"""The one step that reads a step's one result."""


def find(erf: Step, maker: Callable[[Value | None], Step | None], after: NextStep) -> tuple[list[Step], Step] | None:
    """The steps of the pattern around an Erf, the last of them last, and the Gelu that does the same."""
    scaled = maker(erf.inputs[0])
    x = None if scaled is None else _argument(scaled)
    plus_one = after(erf)
    if scaled is None or x is None or after(scaled) is not erf or plus_one is None or not _is(plus_one, "Add", 1.0):
        return None
    steps = [scaled, erf, plus_one]
    factors: list[Value | None] = []
    while not _complete(factors, x):
        product = after(steps[-1])
        if product is None or not product.is_a("Mul") or len(factors) >= 2:
            return None
        others = [value for value in product.inputs if value is not steps[-1].outputs[0]]
        halved = maker(others[0]) if len(others) == 1 else None
        if halved is not None and after(halved) is product and _is(halved, "Mul", 0.5) and x in halved.inputs:
            others = [x, _constant(halved)]  # x * 0.5, computed separately
            steps.insert(0, halved)
        factors += others
        steps.append(product)
    last = steps[-1]
    gelu = replace(last, key=OpKey("", "Gelu", 20), inputs=[x], attributes={}, call=None)
    return steps, gelu


def _complete(factors: list[Value | None], x: Value) -> bool:
    return len(factors) == 2 and x in factors and any(value is not x and _near(value, 0.5) for value in factors)


def _argument(scaled: Step) -> Value | None:
    """What is divided by the square root of 2."""
    left, right = [*scaled.inputs, None, None][:2]
    if scaled.is_a("Div") and _near(right, math.sqrt(2)):
        return left
    if scaled.is_a("Mul"):
        return left if _near(right, math.sqrt(0.5)) else right if _near(left, math.sqrt(0.5)) else None
    return None


def _is(step: Step, op_type: str, value: float) -> bool:
    return step.is_a(op_type) and any(_near(operand, value) for operand in step.inputs)


def _constant(step: Step) -> Value | None:
    return next((value for value in step.inputs if value is not None and value.constant is not None), None)


def _near(value: Value | None, number: float) -> bool:
    constant = None if value is None else value.constant
    return (
        isinstance(constant, np.ndarray) and constant.size == 1 and math.isclose(constant.item(), number, rel_tol=1e-6)
    )
