"""Operators that were deprecated before the hub: no kernel has them, but files do, and adapters replace them."""

from __future__ import annotations

from tests.op_cases.case import Case, f32, f64, floats, i32, i64, ints, u8

CASES = [
    *(Case("Upsample", f32(1, 2, 3, 4), floats(1, 1, 2, 3), mode=mode) for mode in ("nearest", "linear")),
    *(Case("Upsample", make(1, 2, 3, 4), floats(1, 1, 2, 2)) for make in (i32, u8)),
    Case("Upsample", f32(1, 2, 3, 4), floats(1, 1, 1.5, 1.3)),
    Case("Upsample", f32(2, 3), floats(2, 1)),
    *(Case("Scatter", make(3, 4), ints(0, 2, 1, 0).reshape(2, 2), make(2, 2)) for make in (f32, f64, i32, i64)),
    *(Case("Scatter", f32(3, 4), ints(0, 2, 1, 0).reshape(2, 2), f32(2, 2), axis=axis) for axis in (1, -1, 0)),
]
