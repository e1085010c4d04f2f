"""Operators that draw random numbers: many draws, whose distribution is judged."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from onnx import TensorProto

from tests.op_cases.case import Case, f32, i64

SHAPE = (4, 2000)
UNLIKELY = 1e-6
"""How rarely two rows from the same distribution may be judged different."""

TYPES = (TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16)


def draws_differ(want: np.ndarray, have: np.ndarray, _sample: Any = None) -> str:
    """Where rows of draws come from other distributions (Kolmogorov and Smirnov), or from other values, or nothing."""
    if want.dtype != have.dtype:
        return f"{have.dtype} instead of {want.dtype}"
    want, have = (value.astype(np.float64).reshape(-1, value.shape[-1]) for value in (want, have))
    limit = np.sqrt(-np.log(UNLIKELY / 2) / want.shape[1])
    for a, b in zip(want, have, strict=True):
        places = np.concatenate([a, b])
        gap = [np.searchsorted(np.sort(row), places, side="right") / row.size for row in (a, b)]
        if np.abs(gap[0] - gap[1]).max() > limit:
            return f"distributions {np.abs(gap[0] - gap[1]).max():.2f} apart"
        if np.unique(a).size < a.size // 10 and not np.isin(b, a).all():
            return "values that are never drawn"
    return ""


def draws() -> Iterator[Case]:
    """The operators that draw, with all their options."""
    rng = np.random.default_rng(0)
    yield from _numbers(rng)
    p = np.repeat(np.array([[0.0], [0.3], [0.75], [1.0]], np.float32), SHAPE[1], 1)
    lots = rng.uniform(size=SHAPE) < p
    for dtype in (np.float32, np.float64, np.float16):
        yield Case("Bernoulli", p.astype(dtype), seed=3.0).drawing(lots.astype(dtype))
    for code, dtype in ((TensorProto.BOOL, bool), (TensorProto.INT64, np.int64), (TensorProto.FLOAT16, np.float16)):
        yield Case("Bernoulli", p, dtype=code).drawing(lots.astype(dtype))
    odds = np.array([[0.1, 0.2, 0.3, 0.4], [0.25, 0.25, 0.5, 1e-9], [0.97, 0.01, 0.01, 0.01], [0.5, 1e-9, 1e-9, 0.5]])
    picked = np.stack([rng.choice(4, SHAPE[1], p=row / row.sum()) for row in odds])
    for code, dtype in ((TensorProto.INT32, np.int32), (TensorProto.INT64, np.int64)):
        case = Case("Multinomial", np.log(odds).astype(np.float32), sample_size=SHAPE[1], dtype=code)
        yield case.drawing(picked.astype(dtype))
        yield case.having("seed", 4.0).drawing(picked.astype(dtype))
    yield from _dropped(rng)


def _numbers(rng: np.random.Generator) -> Iterator[Case]:
    normal, uniform = rng.normal(size=SHAPE), rng.uniform(size=SHAPE)
    told: list[tuple[str, dict[str, Any], np.ndarray]] = [
        ("RandomNormal", {}, normal),
        ("RandomNormal", {"mean": 2.0, "scale": 0.5, "seed": 1.5}, normal / 2 + 2),
        ("RandomUniform", {}, uniform),
        ("RandomUniform", {"low": -2.0, "high": 3.0, "seed": 1.5}, uniform * 5 - 2),
    ]
    for op_type, attributes, values in told:
        yield Case(op_type, shape=list(SHAPE), **attributes).drawing(values.astype(np.float32))
        yield Case(f"{op_type}Like", f32(*SHAPE), **attributes).drawing(values.astype(np.float32))
        for code in TYPES:
            typed = values.astype({1: np.float32, 11: np.float64, 10: np.float16}[code])
            yield Case(op_type, shape=list(SHAPE), dtype=code, **attributes).drawing(typed)
            yield Case(f"{op_type}Like", i64(*SHAPE), dtype=code, **attributes).drawing(typed)


def _dropped(rng: np.random.Generator) -> Iterator[Case]:
    for ratio in (0.25, 0.5):
        kept = rng.uniform(size=SHAPE) >= ratio
        for dtype in (np.float32, np.float64, np.float16):
            share, three = np.array(ratio, np.float32), np.full(SHAPE, 3, dtype)
            case = Case("Dropout", three, share, np.array(True), seed=3).outputs(2)
            yield case.drawing((kept * (3 / (1 - ratio))).astype(dtype), kept)
