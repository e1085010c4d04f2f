from __future__ import annotations

import ml_dtypes
import numpy as np

from tests.op_cases.case import FLOATS, NUMBERS, Case, bools, f32, floats, ints, strings

COMPARISONS = ("Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual")
LOGIC = ("And", "Or", "Xor")
SPECIAL = floats(np.nan, np.inf, -np.inf, 0.0, 1.0)

CASES = [
    *(Case(op, make(4, 3, low=0, high=2), make(3, low=0, high=2)) for op in COMPARISONS for make in NUMBERS),
    *(Case(op, f32(), f32()) for op in COMPARISONS),
    *(Case(op, f32(0, 2), f32(2)) for op in COMPARISONS),
    *(Case(op, SPECIAL, floats(np.nan, np.inf, np.inf, -0.0, 2.0)) for op in COMPARISONS),
    Case("Equal", bools(2, 3), bools(3)),
    Case("Equal", strings(["a", "b", ""]), strings(["a", "c", ""])),
    *(Case(op, bools(4, 3), bools(3)) for op in LOGIC),
    *(Case(op, bools(), bools()) for op in LOGIC),
    *(Case(op, bools(0, 2), bools(2)) for op in LOGIC),
    *(Case("Not", bools(*shape)) for shape in ((2, 3), (), (0,))),
    *(Case(op, make(2, 3)) for op in ("IsNaN", "IsInf") for make in FLOATS),
    *(Case(op, f32(*shape)) for op in ("IsNaN", "IsInf") for shape in ((), (0,))),
    *(
        Case(op, SPECIAL.astype(dtype))
        for op in ("IsNaN", "IsInf")
        for dtype in (np.float32, np.float64, np.float16, ml_dtypes.bfloat16)
    ),
    *(Case(op, np.array([1, np.nan, np.inf], np.float32).astype(ml_dtypes.float8_e5m2)) for op in ("IsNaN", "IsInf")),
    *(Case("IsInf", SPECIAL, detect_negative=n, detect_positive=p) for n in (0, 1) for p in (0, 1)),
    *(Case("Where", bools(2, 3), make(2, 3), make(3)) for make in (*NUMBERS, bools)),
    Case("Where", bools(2, 1, 3), f32(4, 1), f32()),
    Case("Where", bools(), f32(), f32()),
    Case("Where", bools(0, 2), f32(1, 2), f32(2)),
    Case("Where", np.array([True, False]), floats(np.nan, np.nan), floats(1, 2)),
    Case("Where", np.array([True, False]), strings(["a", "b"]), strings(["c", "d"])),
    Case("Where", np.array([True, False]), ints(2**62 + 1, 0), ints(0, -(2**62) - 1)),
]
