"""Element by element."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from jax import lax

from entrepot.exporters.jax.exported.operation import Operation
from entrepot.exporters.jax.exported.table import means

_SAME: dict[str, Callable[..., Any]] = {
    "abs": lax.abs, "add": lax.add, "and": lax.bitwise_and, "atan2": lax.atan2, "cbrt": lax.cbrt, "ceil": lax.ceil,
    "clamp": lax.clamp, "complex": lax.complex, "cosine": lax.cos, "count_leading_zeros": lax.clz, "divide": lax.div,
    "exponential": lax.exp, "exponential_minus_one": lax.expm1, "floor": lax.floor, "imag": lax.imag,
    "is_finite": lax.is_finite, "log": lax.log, "log_plus_one": lax.log1p, "logistic": lax.logistic,
    "maximum": lax.max, "minimum": lax.min, "multiply": lax.mul, "negate": lax.neg, "not": lax.bitwise_not,
    "or": lax.bitwise_or, "popcnt": lax.population_count, "power": lax.pow, "real": lax.real, "remainder": lax.rem,
    "round_nearest_afz": lax.round, "rsqrt": lax.rsqrt, "select": lax.select, "shift_left": lax.shift_left,
    "shift_right_arithmetic": lax.shift_right_arithmetic, "shift_right_logical": lax.shift_right_logical,
    "sign": lax.sign, "sine": lax.sin, "sqrt": lax.sqrt, "subtract": lax.sub, "tan": lax.tan, "tanh": lax.tanh,
    "xor": lax.bitwise_xor, "optimization_barrier": lambda *values: list(values),
    "round_nearest_even": lambda x: lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN),
}  # fmt: skip
_COMPARISONS = {"EQ": lax.eq, "NE": lax.ne, "LT": lax.lt, "LE": lax.le, "GT": lax.gt, "GE": lax.ge}


def _plain(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda operation, *values: function(*values)


for _name, _function in _SAME.items():
    means(_name)(_plain(_function))


@means("compare")
def compare(operation: Operation, x: Any, y: Any) -> Any:
    """One of six comparisons; floating-point numbers may be ordered by their bits."""
    if operation.word("compare_type") == "TOTALORDER":
        x, y = _place(x), _place(y)
    return _COMPARISONS[operation.word("comparison_direction")](x, y)


def _place(x: Any) -> Any:
    """An integer for each number, in the order of all of them: from -NaN over -0 and 0 to NaN."""
    kind = np.dtype(f"int{8 * np.dtype(x.dtype).itemsize}")
    bits = lax.bitcast_convert_type(x, kind)
    turned = lax.bitwise_xor(bits, lax.full_like(bits, np.iinfo(kind).max))
    return lax.select(lax.lt(bits, lax.full_like(bits, 0)), turned, bits)


@means("convert")
def convert(operation: Operation, x: Any) -> Any:
    """Another element type."""
    return lax.convert_element_type(x, operation.dtype)


@means("bitcast_convert")
def bitcast_convert(operation: Operation, x: Any) -> Any:
    """The same bits as another type."""
    return lax.bitcast_convert_type(x, operation.dtype)


@means("reduce_precision")
def reduce_precision(operation: Operation, x: Any) -> Any:
    """Fewer bits."""
    return lax.reduce_precision(x, operation.number("exponent_bits"), operation.number("mantissa_bits"))
