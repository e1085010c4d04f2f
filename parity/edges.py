"""Inputs at which formulas diverge, and how much of a difference there is the source's own.

Values drawn around zero say nothing about ``log(sigmoid(x))`` at -100 or ``exp(x) - 1`` at 1e-30. Two kinds of runs do:
*edge values*, all finite, and *values that are not finite*.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import ml_dtypes
import numpy as np

from entrepot.parity.feeds import Feeds
from entrepot.parity.plan import Case
from entrepot.parity.sensitivity import nudge
from entrepot.parity.tolerance import classify

_SIZES = (0.0, 1e-30, 1e-7, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 100.0, 1e4)
_MOST_ALONE = 4
"""How many inputs get runs of their own; more are only tried together."""
_MOST_PAGES = 4
"""Runs for an input too small to contain every value at once."""
_OWN = 32
"""How many times the source's own error a model may be off: two formulas round differently."""
_DRAWS = 3
MORE_DRAWS = 12
"""Where nothing but draws says how sure a source is: of a few, some of many elements are lucky in all."""
_NEAR, _DRAWS_BESIDE = 2.0**-8, 8
"""How far to look beside a number, relative to it: so far that what is rounded on the way is rounded otherwise."""

Run = Callable[[dict[str, Any]], Mapping[str, Any]]


def edge_cases(sample: Feeds) -> Iterator[Case]:
    """The sample with its floats replaced by edge values, and with some that are not finite.

    All float inputs at once, so that pairs meet; where they are few, each alone as well.
    """
    floats = [name for name, value in sample.items() if _is_float(value) and np.size(value)]
    groups = [floats] if floats else []
    if 1 < len(floats) <= _MOST_ALONE:
        groups += [[name] for name in floats]
    for names in groups:
        shown = " and ".join(f"'{name}'" for name in names) if len(names) <= 2 else f"{len(names)} inputs"
        smallest = min(np.size(sample[name]) for name in names)
        pages = min(_MOST_PAGES, math.ceil(2 * len(_SIZES) / smallest))
        for page in range(pages):
            part = f", part {page + 1}" if pages > 1 else ""
            rng = np.random.default_rng(page)
            feeds = {name: _edges(np.asarray(sample[name]), page, rng) for name in names}
            yield Case(f"edge values of {shown}{part}", {**sample, **feeds}, edge="finite")
        rng = np.random.default_rng(0)
        feeds = {name: _special(np.asarray(sample[name]), rng) for name in names}
        yield Case(f"NaN and infinities in {shown}", {**sample, **feeds}, edge="special")


def moved(run: Run, feeds: Feeds, *, ties: bool, draws: int = _DRAWS) -> list[Mapping[str, Any]]:
    """What a source computes when its floats move by one rounding.

    Args:
        run: The source.
        feeds: Its inputs.
        ties: Whether zeros move as well, to the smallest normal number, so that ties among them are broken.
        draws: How many times.
    """
    rng = np.random.default_rng(0)
    return [run({name: _moved(value, rng, ties=ties) for name, value in feeds.items()}) for _ in range(draws)]


def beside(
    run: Run, exact: Callable[[dict[str, Any]], Mapping[str, Any] | None], feeds: Feeds
) -> list[Mapping[str, Any]]:
    """How a source would be off here, were it off as it is at inputs near by.

    ``1 + erf(x)`` keeps few digits of a number below -2; at some numbers those happen to be the right ones.

    Args:
        run: The source.
        exact: The same in float64.
        feeds: Its inputs.
    """
    here, rng = run(dict(feeds)), np.random.default_rng(0)
    found: list[Mapping[str, Any]] = []
    for _ in range(_DRAWS_BESIDE):
        there = {name: _near(value, rng) for name, value in feeds.items()}
        rounded, right = run(there), exact(there)
        if right is not None:
            found.append({name: _off(value, rounded.get(name), right.get(name)) for name, value in here.items()})
    return found


def _near(value: Any, rng: np.random.Generator) -> Any:
    if not _is_float(value):
        return value
    return (value.astype(np.float64) * (1 + _NEAR * rng.uniform(-1, 1, value.shape))).astype(value.dtype)


def _off(here: Any, rounded: Any, right: Any) -> Any:
    if not all(_is_float(each) for each in (here, rounded, right)) or here.shape != rounded.shape:
        return here
    with np.errstate(all="ignore"):
        error = rounded.astype(np.float64) - right.astype(np.float64)
        return here + np.where(np.isfinite(error), error, 0).astype(here.dtype)


def without_doubt(
    expected: Mapping[str, Any],
    actual: Mapping[str, Any],
    others: Sequence[Mapping[str, Any]],
    *,
    overflows: bool = False,
) -> dict[str, Any]:
    """The outputs of a model, with whatever the source itself is unsure about taken from the source.

    It is unsure of an element that is another kind of number (finite, NaN, an infinity) in its other outputs, and of
    the digits that differ there.

    Args:
        expected: What the source computed.
        actual: What the model computed.
        others: What the source computes in float64, or from inputs moved by one rounding.
        overflows: Whether NaN and an infinity are alike: what sums of infinities are depends on their order.
    """
    return {
        name: _settled(expected.get(name), value, [other.get(name) for other in others], overflows=overflows)
        for name, value in actual.items()
    }


def _settled(expected: Any, actual: Any, others: Sequence[Any], *, overflows: bool) -> Any:
    if not (isinstance(expected, np.ndarray) and isinstance(actual, np.ndarray)):
        return actual
    if expected.shape != actual.shape or expected.dtype != actual.dtype or expected.dtype.kind in "OUST":
        return actual
    wide = np.complex128 if expected.dtype.kind == "c" else np.float64
    e, a = expected.astype(wide), actual.astype(wide)
    slack, sure = np.zeros(e.shape), np.ones(e.shape, dtype=bool)
    with np.errstate(all="ignore"):
        for other in others:
            if not isinstance(other, np.ndarray) or other.shape != expected.shape:
                return expected  # an entirely different result: nothing is certain here
            rounded = other.astype(expected.dtype).astype(wide)
            finite = np.isfinite(e)
            sure &= np.where(finite, np.isfinite(rounded), (e == rounded) | (np.isnan(e) & np.isnan(rounded)))
            apart = np.abs(rounded - e)
            sure &= ~(apart > np.maximum(np.abs(e), np.abs(rounded)) / 2)
            slack = np.fmax(slack, apart)
        close = np.abs(a - e) <= _OWN * slack
    if overflows:
        sure &= np.isfinite(e) | np.isfinite(a)
    return np.where(close | ~sure, expected, actual)


def _edges(array: np.ndarray, page: int, rng: np.random.Generator) -> np.ndarray:
    """Edge values in random order, among values of the array where it is large enough."""
    limits: Any = ml_dtypes.finfo(array.dtype)  # type: ignore[no-untyped-call]
    tiny, most = float(limits.smallest_normal), float(limits.max)
    sizes = [max(size, tiny) if size else 0.0 for size in _SIZES if size <= most]
    pool = np.array([sign * size for size in sizes for sign in (1.0, -1.0)])
    flat = array.astype(np.float64).reshape(-1)
    if flat.size < pool.size:
        chosen = np.roll(pool, -page * flat.size)[: flat.size]
        return rng.permutation(chosen).astype(array.dtype).reshape(array.shape)
    count = flat.size if flat.size < 2 * pool.size else flat.size // 2
    places = rng.permutation(flat.size)[:count]
    flat[places] = np.resize(pool, count)
    return flat.astype(array.dtype).reshape(array.shape)


def _special(array: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """NaN and both infinities at an eighth of all places, and at least one."""
    flat = array.astype(np.float64).reshape(-1)
    count = max(1, min(flat.size, max(3, flat.size // 8)))
    flat[rng.permutation(flat.size)[:count]] = np.resize([np.nan, np.inf, -np.inf], count)
    return flat.astype(array.dtype).reshape(array.shape)


def _moved(value: Any, rng: np.random.Generator, *, ties: bool) -> Any:
    nudged = nudge(value, rng)
    if not (ties and _is_float(nudged)):
        return nudged
    limits: Any = ml_dtypes.finfo(nudged.dtype)  # type: ignore[no-untyped-call]
    tiny = rng.choice((-1.0, 1.0), nudged.shape) * float(limits.smallest_normal)
    return np.where(nudged == 0, tiny.astype(nudged.dtype), nudged)


def _is_float(value: Any) -> bool:
    return isinstance(value, np.ndarray) and classify(value.dtype) == "float"
