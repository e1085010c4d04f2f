"""Gelu as exporters wrote it before opset 20 had it, in any association.

``x * 0.5 * (1 + erf(x / sqrt(2)))``, or ``x * 0.5 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x ** 3)))``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from entrepot.ir.table import OpKey
from entrepot.runtime.planning.plan import Step, Value

Maker = Callable[[Value | None], "Step | None"]
"""The step that produces a value."""

NextStep = Callable[[Step], "Step | None"]
"""The one step that reads a step's one result."""

CLOSE = 1e-6
"""How far a constant may be from what it stands for, relative to it."""

_SLOPE = math.sqrt(2 / math.pi)

_ARGUMENTS: Mapping[str, tuple[Mapping[int, float], Mapping[str, Any]]] = {
    "Erf": ({1: math.sqrt(0.5)}, {}),
    "Tanh": ({1: _SLOPE, 3: _SLOPE * 0.044715}, {"approximate": "tanh"}),
}
"""What each function is taken of, as a polynomial of x by its exponents, and how Gelu calls that."""


def find(function: Step, maker: Maker, after: NextStep, within: float = CLOSE) -> tuple[list[Step], Step] | None:
    """The steps of the pattern around an Erf or a Tanh, the last of them last, and the Gelu that does the same."""
    plus_one = after(function)
    if plus_one is None or not plus_one.is_a("Add") or _number(plus_one, within) != 1.0:
        return None
    found = _halved_product(plus_one, maker, after, within)
    if found is None:
        return None
    x, products = found
    powers, attributes = _ARGUMENTS[function.op_type]
    argument = _Polynomial(x, maker, after)
    if not _agree(argument.of(function.inputs[0], function), powers, within) or not _has_rank_of(products[-1], x):
        return None
    gelu = replace(products[-1], key=OpKey("", "Gelu", 20), inputs=[x], attributes=dict(attributes), call=None)
    return [*argument.steps, function, plus_one, *products], gelu


def _has_rank_of(last: Step, x: Value) -> bool:
    """Whether the constants, each a single number, certainly give the result no axes that x has not."""
    result = last.outputs[0]
    shapes = [None if value is None or value.type is None else value.type.shape for value in (result, x)]
    return all(shape is not None for shape in shapes) and len({len(shape or ()) for shape in shapes}) == 1


def _halved_product(step: Step, maker: Maker, after: NextStep, within: float) -> tuple[Value, list[Step]] | None:
    """What a result is multiplied by, besides one half, and the steps that do it."""
    steps: list[Step] = []
    x: Value | None = None
    is_halved, last = False, step
    while x is None or not is_halved:
        product = after(last)
        if product is None or not product.is_a("Mul"):
            return None
        other = next((value for value in product.inputs if value is not last.outputs[0]), None)
        made = maker(other)
        if _near(other, 0.5, within) and not is_halved:
            is_halved = True
        elif other is None or other.constant is not None or x is not None:
            return None
        elif made is not None and made.is_a("Mul") and after(made) is product and _number(made, within) == 0.5:
            if is_halved:
                return None
            steps.append(made)  # x * 0.5, computed separately
            x, is_halved = next(value for value in made.inputs if value is not None and value.constant is None), True
        else:
            x = other
        steps.append(product)
        last = product
    return x, steps


@dataclass
class _Polynomial:
    """A value as a polynomial of another one, by the steps between them, which nothing else may read."""

    x: Value
    maker: Maker
    after: NextStep
    steps: list[Step] = field(default_factory=list)

    def of(self, value: Value | None, reader: Step) -> Mapping[int, float] | None:
        """Exponents and their factors; ``None`` if it is no polynomial."""
        if value is self.x:
            return {1: 1.0}
        constant = None if value is None else value.constant
        if isinstance(constant, np.ndarray):
            return {0: float(constant.item())} if constant.size == 1 else None
        step = self.maker(value)
        if step is None or self.after(step) is not reader or step.op_type not in _ARITHMETIC or step.domain:
            return None
        terms = [self.of(each, step) for each in step.inputs]
        if len(terms) != 2 or None in terms:
            return None
        self.steps.append(step)
        return _ARITHMETIC[step.op_type](*terms)


_Terms = Mapping[int, float]


def _sum(a: _Terms, b: _Terms) -> _Terms:
    return {power: a.get(power, 0.0) + b.get(power, 0.0) for power in {*a, *b}}


def _product(a: _Terms, b: _Terms) -> _Terms:
    made: dict[int, float] = {}
    for one, left in a.items():
        for other, right in b.items():
            made[one + other] = made.get(one + other, 0.0) + left * right
    return made


def _quotient(a: _Terms, b: _Terms) -> _Terms | None:
    number = b.get(0, 0.0)
    return {power: left / number for power, left in a.items()} if set(b) == {0} and number else None


def _power(a: _Terms, b: _Terms) -> _Terms | None:
    exponent = b.get(0, 0.0)
    if set(b) != {0} or exponent not in (1, 2, 3):
        return None
    made = a
    for _ in range(int(exponent) - 1):
        made = _product(made, a)
    return made


_ARITHMETIC: Mapping[str, Callable[[Any, Any], _Terms | None]] = {
    "Add": _sum, "Mul": _product, "Div": _quotient, "Pow": _power
}  # fmt: skip


def _agree(found: _Terms | None, wanted: Mapping[int, float], within: float) -> bool:
    if found is None or any(found[power] for power in set(found) - set(wanted)):
        return False
    return all(math.isclose(found.get(power, 0.0), factor, rel_tol=4 * within) for power, factor in wanted.items())


def _number(step: Step, within: float) -> float | None:
    """One half or one, if that is an operand."""
    return next((number for number in (0.5, 1.0) if any(_near(each, number, within) for each in step.inputs)), None)


def _near(value: Value | None, number: float, within: float) -> bool:
    constant = None if value is None else value.constant
    return (
        isinstance(constant, np.ndarray)
        and constant.size == 1
        and math.isclose(constant.item(), number, rel_tol=within)
    )
