"""Products and other sums along an axis, of as many elements as there are, in steps that double."""

from __future__ import annotations

from typing import Any

import numpy as np

from entrepot.exporters.building import Builder
from entrepot.exporters.tensorflow.numeric import computed, number, where
from entrepot.exporters.tensorflow.sizes import along


def scanned(build: Builder, op: str, x: Any, rank: int, axis: int, exclusive: bool, reverse: bool) -> Any:
    """A cumulative product, or logarithm of a sum of exponentials.

    Args:
        build: Where nodes are written.
        op: ``Cumprod`` or ``CumulativeLogsumexp``.
        x: The values.
        rank: How many axes they have.
        axis: Along which.
        exclusive: Whether an element's own value is left out.
        reverse: Whether it begins at the end.
    """
    neutral = number(build, 1 if op == "Cumprod" else -np.inf, x)
    count = build.size(x, axis)
    place = along(build, count, axis, rank)
    if reverse:
        place = build.op("Sub", build.op("Sub", count, 1), place)
    if exclusive:
        x = _moved(build, x, place, build.constant(np.array(1)), rank, axis, reverse, neutral)
    condition = build.constant(np.array(True))
    steps = _steps(build, count)
    body = build.body()
    step, _ = body.input("step", np.int64, []), body.input("go", np.bool_, [])
    state = body.input("state", x.dtype, [None] * rank)
    by = body.cast(body.op("Pow", body.constant(np.array(2.0)), body.cast(step, np.float64)), np.int64)
    other = _moved(body, state, place, by, rank, axis, reverse, neutral)
    value = computed(body, "Mul", state, other) if op == "Cumprod" else _log_sum(body, state, other)
    graph = body.graph([body.op("Identity", condition), value])
    return build.op("Loop", steps, condition, x, body=graph)


def _steps(build: Builder, count: Any) -> Any:
    if count.const_value is not None:
        return build.constant(np.array(int(np.ceil(np.log2(max(int(count.const_value.numpy()), 1)))), np.int64))
    wide = build.cast(build.op("Max", count, 1), np.float64)
    log = build.op("Div", build.op("Log", wide), float(np.log(2)))
    return build.cast(build.op("Ceil", build.op("Add", log, 1e-9)), np.int64)


def _moved(build: Builder, x: Any, place: Any, by: Any, rank: int, axis: int, reverse: bool, neutral: Any) -> Any:
    """The elements some places on, with the neutral one before them."""
    count = build.size(x, axis)
    flat = build.op("Reshape", place, [-1])
    source = build.op("Sub", flat, by)
    inside = build.op("Max", source, 0)
    inside = build.op("Sub", build.op("Sub", count, 1), inside) if reverse else inside
    shape = [1] * rank
    shape[axis] = -1
    known = build.op("Reshape", build.op("GreaterOrEqual", source, 0), shape)
    return where(build, known, build.op("Gather", x, inside, axis=axis), neutral)


def _log_sum(build: Builder, x: Any, y: Any) -> Any:
    high = computed(build, "Max", x, y)
    plain = build.op("Or", computed(build, "IsInf", high), computed(build, "IsNaN", high))
    top = where(build, plain, number(build, 0, x), high)
    terms = (computed(build, "Exp", computed(build, "Sub", each, top)) for each in (x, y))
    value = computed(build, "Add", top, computed(build, "Log", computed(build, "Add", *terms)))
    return where(build, plain, high, value)
