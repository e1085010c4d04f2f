"""What elementwise operators compute, as formulas in float64, where the file's float32 inputs are exact values.

A formula takes the inputs in the schema's order and the attributes by name, with the specification's defaults. It is
written for accuracy, not for speed: no difference that cancels, nothing that overflows before the result does.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
erf = np.vectorize(math.erf, otypes=[np.float64])
erfc = np.vectorize(math.erfc, otypes=[np.float64])


def sigmoid(x: Array) -> Array:
    """1 / (1 + exp(-x)), also where that exponential overflows."""
    small = np.exp(-np.abs(x))
    return np.where(x >= 0, 1 / (1 + small), small / (1 + small))


def softplus(x: Array) -> Array:
    """log(1 + exp(x))."""
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


def gelu(x: Array, approximate: str = "none") -> Array:
    """x times the normal distribution function, or its approximation by tanh, which is a sigmoid of twice as much."""
    if approximate == "tanh":
        return x * sigmoid(2 * math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))
    return x * erfc(-x / math.sqrt(2)) / 2


FORMULAS: dict[str, Callable[..., Array]] = {
    **{name: getattr(np, name.lower()) for name in ("Exp", "Log", "Sin", "Cos", "Tan", "Sinh", "Cosh", "Tanh")},
    **{f"A{name}": getattr(np, f"arc{name}") for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh")},
    "Celu": lambda x, alpha=1.0: np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0) / alpha)),
    "Elu": lambda x, alpha=1.0: np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0))),
    "Erf": erf,
    "Gelu": gelu,
    "HardSigmoid": lambda x, alpha=0.2, beta=0.5: np.clip(alpha * x + beta, 0, 1),
    "HardSwish": lambda x, alpha=1 / 6, beta=0.5: x * np.clip(alpha * x + beta, 0, 1),
    "LeakyRelu": lambda x, alpha=0.01: np.where(x < 0, alpha * x, x),
    "Mish": lambda x: x * np.tanh(softplus(x)),
    "Pow": np.power,
    "Selu": lambda x, alpha=1.67326319217681884765625, gamma=1.05070102214813232421875: (
        gamma * np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0)))
    ),
    "Shrink": lambda x, bias=0.0, lambd=0.5: np.where(x < -lambd, x + bias, np.where(x > lambd, x - bias, 0)),
    "Sigmoid": sigmoid,
    "Softplus": softplus,
    "Softsign": lambda x: x / (1 + np.abs(x)),
    "SwiGLU": lambda x, y, alpha=1.0: x * sigmoid(alpha * x) * y,
    "Swish": lambda x, alpha=1.0: x * sigmoid(alpha * x),
    "ThresholdedRelu": lambda x, alpha=1.0: np.where(x > alpha, x, 0),
}
"""NaN propagates as in the formula, not always as in the operator: ask the oracles about that."""


def exact(op_type: str, inputs: list[Array], attributes: dict[str, Any]) -> Array:
    """The result in float64."""
    with np.errstate(all="ignore"):
        return np.asarray(FORMULAS[op_type](*(x.astype(np.float64) for x in inputs), **attributes))


def attribute_error(op_type: str, inputs: list[Array], attributes: dict[str, Any]) -> Array:
    """How much the result moves when attributes are rounded to float32, the only floats that a file has for them."""
    formula = FORMULAS[op_type]
    known = inspect.signature(formula).parameters.values() if inspect.isfunction(formula) else ()
    given = {p.name: p.default for p in known if p.default is not inspect.Parameter.empty} | attributes
    single = {name: float(np.float32(value)) if isinstance(value, float) else value for name, value in given.items()}
    with np.errstate(all="ignore"):
        moved = np.abs(exact(op_type, inputs, given) - exact(op_type, inputs, single))
    return np.where(np.isfinite(moved), moved, 0)
