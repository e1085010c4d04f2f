"""How far apart two correct computations of one operator case may be, on any processor and in any order of summation.

A bound is a magnitude times the rounding unit of the type used for computing. Each of the two computations may be
wrong by half a unit for each of its roundings, so that a sum of n products, whatever its order, stays within
``n * eps * Σ|a||b|``. What only moves, selects or compares values, or rounds once, is not listed: it must be equal.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
import onnx

from tests.judges.elementwise import FORMULAS, attribute_error, exact
from tests.judges.magnitudes import COMPOSED, SUMS, Use, sum_of_magnitudes
from tests.judges.oracle import opinions
from tests.op_cases.case import Case

Array = np.ndarray[Any, Any]

LIBRARY = 4
"""Units in the last place that NumPy promises for its elementary functions in float32, whatever kernel they run on."""

CALLS = {"Mish": 3, "Softplus": 2}
"""Elementary functions that are taken one of the other; elsewhere it is one at most, and two operations besides."""


@dataclass(frozen=True)
class Expected:
    """What an output should be, and by how much it may differ; values that are not finite count only if it says so."""

    value: Any
    slack: Any
    finite_only: bool = False


@functools.lru_cache(maxsize=4000)
def expectations(case: Case) -> dict[str, list[Expected]]:
    """What each oracle computes for each output, and for elementwise operators the formula in float64."""
    found = {}
    for name, values in opinions(case).items():
        slack = slacks(case, values)
        found[name] = [Expected(value, each) for value, each in zip(values, slack, strict=True)]
    first = next(iter(found.values()), [])
    if case.op_type in FORMULAS and not case.domain and len(first) == 1 and case.inputs[0].dtype.kind in "fV":
        found["the formula in float64"] = [_by_formula(case, np.asarray(first[0].value).dtype)]
    return found


def slacks(case: Case, values: Sequence[Any]) -> list[Any]:
    """How far each output may be from what an oracle computes."""
    wide = [_widened(value) for value in values]
    magnitudes: Sequence[Any] = [0.0] * len(wide)
    with np.errstate(all="ignore"):
        if case.op_type in FORMULAS and not case.domain:
            magnitudes = [_elementwise(case, wide[0], for_oracle=True)]
        elif case.op_type in SUMS:
            magnitudes = [sum_of_magnitudes(case)]
        elif case.op_type in COMPOSED and np.size(case.inputs[0]):  # nothing is rounded where there is nothing
            magnitudes = COMPOSED[case.op_type](Use(case, _inputs(case), _attributes(case), wide))
        found = [_slack(case, v, m) for v, m in zip(values, _as_many(magnitudes, wide), strict=True)]
        if case.op_type in FORMULAS and found and case.inputs[0].dtype == np.float64:
            found[0] = found[0] + attribute_error(case.op_type, list(case.inputs), case.attributes)
    return found


def close(got: Array, wanted: Array, slack: Any) -> Array:
    """Where two arrays agree: the same NaN and infinities, and finite values within the slack."""
    wide = np.complex128 if "c" in (got.dtype.kind, wanted.dtype.kind) else np.float64
    a, b = got.astype(wide), wanted.astype(wide)
    with np.errstate(all="ignore"):
        same = (a == b) | (np.isnan(a) & np.isnan(b))
        return same | (np.abs(a - b) <= slack)


def unit(dtype: Any) -> float:
    """The distance from 1 to the next number of a type."""
    return float(ml_dtypes.finfo(dtype).eps)


def _by_formula(case: Case, dtype: Any) -> Expected:
    """Narrow floats are computed in float32 and rounded once."""
    inputs = [np.asarray(x) for x in case.inputs]
    with np.errstate(all="ignore"):
        value = exact(case.op_type, inputs, case.attributes)
        lost = _elementwise(case, value, for_oracle=False) * unit(np.float64 if dtype == np.float64 else np.float32)
        slack = _floor(dtype) + np.nan_to_num(lost + unit(dtype) * np.abs(value), posinf=0.0)
        return Expected(value.astype(dtype), slack, finite_only=True)


def _elementwise(case: Case, y: Array, *, for_oracle: bool) -> Array:
    """Units in the last place of the result, plus what the usual way to compute it loses."""
    inputs, given = _inputs(case), case.attributes
    units = (2 if for_oracle else 1) * (LIBRARY * CALLS.get(case.op_type, 1) + 2)
    loses = LOSES.get(case.op_type) or (LOSES_IN_ORACLES.get(case.op_type) if for_oracle else None)
    return units * np.abs(y) + (units * loses(*inputs, given) if loses else 0)


LOSES: dict[str, Callable[..., Array]] = {
    "Gelu": lambda x, _: np.abs(x),  # 1 + erf(x), and 1 + tanh(x), cancel below zero
    "HardSigmoid": lambda x, a: np.abs(a.get("alpha", 0.2) * x) + a.get("beta", 0.5),
    "HardSwish": lambda x, _: np.abs(x) * (np.abs(x) / 6 + 0.5),
    "Shrink": lambda x, a: np.abs(x) + abs(a.get("bias", 0)),
    "SwiGLU": lambda x, y, a: np.abs(a.get("alpha", 1.0) * x * x * y) * np.exp(-np.maximum(-x, 0)),
    "Swish": lambda x, a: np.abs(a.get("alpha", 1.0) * x * x) * np.exp(-np.maximum(-x, 0)),
}
"""For steps that round something larger than the result: its size, for each input."""

LOSES_IN_ORACLES: dict[str, Callable[..., Array]] = {
    **dict.fromkeys(("Elu", "Celu"), lambda x, a: abs(a.get("alpha", 1.0)) + 0 * x),  # exp(x) - 1
    "Selu": lambda x, a: abs(a.get("alpha", 1.68) * a.get("gamma", 1.06)) + 0 * x,
    "Mish": lambda x, _: np.abs(x),  # of its tanh near 0
    **dict.fromkeys(("Sigmoid", "Sin", "Cos", "Tanh", "Erf"), lambda x, _: 1 + 0 * x),  # absolute accuracy only
    "Log": lambda x, _: 1 + 0 * x,
}
"""As above, where we do better."""


def _slack(case: Case, value: Any, magnitude: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_slack(case, item, magnitude) for item in value]
    dtype = getattr(value, "dtype", None)
    if dtype is None or dtype.kind not in "fcV" or not np.any(magnitude):
        return 0.0
    slack = np.nan_to_num(np.asarray(magnitude) * _computed_unit(case, dtype), nan=0.0, posinf=0.0)
    return slack + _floor(dtype)


def _floor(dtype: Any) -> float:
    """The smallest normal number: anything below may be flushed to zero by kernels and processors."""
    return 0.0 if dtype.kind == "c" else float(ml_dtypes.finfo(dtype).smallest_normal)


def _computed_unit(case: Case, dtype: Any) -> float:
    """The unit of the result's type, or of a coarser one that the case computes in."""
    coarse = [dtype if dtype.kind != "c" else np.float64]
    coarse += [case.computed] if case.computed is not None else []
    if "stash_type" in case.schema.attributes:
        default = onnx.helper.get_attribute_value(case.schema.attributes["stash_type"].default_value)
        coarse.append(onnx.helper.tensor_dtype_to_np_dtype(case.attributes.get("stash_type", default)))
    return max(map(unit, coarse))


def _inputs(case: Case) -> list[Any]:
    return [_widened(value) for value in case.inputs]


def _attributes(case: Case) -> dict[str, Any]:
    """The attributes of the case over the schema's defaults."""
    given = [a.default_value for a in case.schema.attributes.values() if a.default_value.name]
    return {**{value.name: onnx.helper.get_attribute_value(value) for value in given}, **case.attributes}


def _widened(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_widened(item) for item in value]
    if not isinstance(value, np.ndarray | np.generic) or value.dtype.kind not in "biufcV":
        return value
    return np.asarray(value).astype(np.complex128 if value.dtype.kind == "c" else np.float64)


def _as_many(magnitudes: Sequence[Any], values: Sequence[Any]) -> list[Any]:
    """One magnitude for each output; the first also counts for those that are missing."""
    return [*magnitudes, *[magnitudes[0]] * len(values)][: len(values)]
