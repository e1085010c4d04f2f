"""How exact a source can be expected to be: how far its results move when its inputs move by one rounding.

Some networks amplify rounding a hundredfold (squeeze-and-excitation with untrained weights, deep decoders). Their two
correct implementations differ by more than any fixed tolerance that would still catch errors elsewhere. Measured on
image models, the difference between torch and onnxruntime is 1 to 2.5 times what one rounding of the inputs does to
torch itself, so the source's own response to that is the yardstick where the default tolerance is exceeded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import ml_dtypes
import numpy as np

from entrepot.parity.compare import leaves
from entrepot.parity.scale import typical_magnitude
from entrepot.parity.tolerance import classify, default_tolerance

_DRAWS = 2


def sensitivity(
    run: Callable[[dict[str, Any]], Mapping[str, Any]],
    feeds: Mapping[str, Any],
    expected: Mapping[str, Any],
    precision: np.dtype | None = None,
) -> dict[str, float]:
    """The median change of each floating-point output when every floating-point input moves by one rounding.

    The median, over elements that are not zero, because a top-k that picks another row moves a few elements a lot, and
    must not excuse the others.

    Args:
        run: The source.
        feeds: Its inputs.
        expected: Its outputs for them.
        precision: What it rounds inputs to, if that is less exact than they are.

    Returns:
        Output name to change; empty when no input is a float.
    """
    moved: dict[str, float] = {}
    for found in sensitivities(run, feeds, expected, precision):
        moved = found
    return moved


def sensitivities(
    run: Callable[[dict[str, Any]], Mapping[str, Any]],
    feeds: Mapping[str, Any],
    expected: Mapping[str, Any],
    precision: np.dtype | None = None,
) -> Iterator[dict[str, float]]:
    """The same after each run of the source, which may take long: the last is the largest."""
    if not any(_is_float(value) for value in feeds.values()):
        return
    rng = np.random.default_rng(0)
    moved: dict[str, float] = {}
    for _ in range(_DRAWS):
        answer = dict(leaves(run({name: nudge(value, rng, precision) for name, value in feeds.items()})))
        changes = {name: _median_change(before, answer.get(name)) for name, before in leaves(expected)}
        moved = {name: max(moved.get(name, 0.0), change) for name, change in changes.items()}
        yield moved


def coarseness(
    expected: Mapping[str, Any], scales: Mapping[str, float], precision: np.dtype | None
) -> dict[str, float]:
    """How far outputs may be off that are computed in a less exact type than their own, and then converted."""
    if precision is None:
        return {}
    rule, eps = default_tolerance(precision), _eps(precision)
    floats = [(name, value) for name, value in leaves(expected) if _is_float(value) and _eps(value.dtype) < eps]
    return {name: rule.at_scale(scales.get(name) or typical_magnitude(value) or 1.0).atol for name, value in floats}


def own_error(expected: Mapping[str, Any], exact: Mapping[str, Any]) -> dict[str, float]:
    """The median distance of each floating-point output from what the source computes in float64."""
    found = dict(leaves(exact))
    return {name: _median_change(answer, found.get(name)) for name, answer in leaves(expected)}


def nudge(value: Any, rng: np.random.Generator, precision: np.dtype | None = None) -> Any:
    """Each float up or down by one rounding, to its own type or to a less exact one; everything else as it is."""
    if isinstance(value, list):
        return [nudge(item, rng, precision) for item in value]
    array = np.array(value)
    if not _is_float(array):
        return array
    eps = max(_eps(array.dtype), 0.0 if precision is None else _eps(precision))
    wide = np.float64 if array.dtype.kind != "c" else np.complex128
    signs = rng.choice((-1.0, 1.0), array.shape)
    return np.asarray(array.astype(wide) * (1 + signs * eps)).astype(array.dtype)


def _eps(dtype: np.dtype) -> float:
    limits: Any = ml_dtypes.finfo(dtype)  # type: ignore[no-untyped-call]
    return float(limits.eps)


def _is_float(value: Any) -> bool:
    return not isinstance(value, list) and classify(np.asarray(value).dtype) in {"float", "complex"}


def _median_change(before: Any, after: Any) -> float:
    if not (isinstance(before, np.ndarray) and isinstance(after, np.ndarray)) or before.shape != after.shape:
        return 0.0
    if not default_tolerance(before.dtype).scaled:
        return 0.0
    wide = np.complex128 if before.dtype.kind == "c" else np.float64
    old, new = before.astype(wide), after.astype(wide)
    counted = np.isfinite(old) & np.isfinite(new) & (old != 0)
    return float(np.median(np.abs(new[counted] - old[counted]))) if counted.any() else 0.0
