from __future__ import annotations

import numpy as np

from tests.op_cases.case import (
    FLOATS,
    NUMBERS,
    SIGNED,
    UNSIGNED,
    Case,
    f16,
    f32,
    f64,
    floats,
    i8,
    i32,
    i64,
    ints,
    u8,
    u64,
)

SPECIAL = floats(np.nan, np.inf, -np.inf, 0.0, -0.0, 1.5, -2.5)
ONES = floats(1, 1, 1, 1, 1, 1, 1)
_NO_TRUNCATION = "onnx.reference divides integers with //, which floors"

CASES = [
    *(Case(op, make(2, 3), make(3)) for op in ("Add", "Sub", "Mul") for make in NUMBERS),
    *(Case(op, f32(2, 1, 4), f32(3, 1)) for op in ("Add", "Sub", "Mul", "Div", "Pow")),
    *(Case(op, f32(), f32()) for op in ("Add", "Sub", "Mul", "Div", "Mod", "Pow") if op != "Mod"),
    *(Case(op, f32(0, 3), f32(3)) for op in ("Add", "Sub", "Mul", "Div", "Pow")),
    *(Case(op, SPECIAL, ONES) for op in ("Add", "Sub", "Mul", "Div", "Pow")),
    *(Case(op, SPECIAL, SPECIAL[::-1].copy()) for op in ("Add", "Sub", "Mul", "Div", "Pow")),
    Case("Add", ints(127, -128, dtype=np.int8), ints(1, -1, dtype=np.int8)),
    Case("Mul", ints(2**62, 3), ints(4, 2**62)),
    Case("Sub", ints(0, 5, dtype=np.uint8), ints(1, 7, dtype=np.uint8)),
    *(Case("Div", make(2, 3), make(3, low=0.5)) for make in FLOATS),
    *(
        Case("Div", make(4, 3, low=-99, high=99), make(3, low=2)).held_to("onnxruntime", why=_NO_TRUNCATION)
        for make in SIGNED[2:]
    ),
    Case("Div", ints(-7, 7, -7, 7), ints(2, 2, -2, -2)).giving(ints(-3, 3, 3, -3)),
    Case("Div", ints(-7, 7, -7, 7, dtype=np.int8), ints(2, 2, -2, -2, dtype=np.int8)).giving(
        ints(-3, 3, 3, -3, dtype=np.int8)
    ),
    *(Case("Div", make(4, 3, high=99), make(3, low=1)) for make in UNSIGNED),
    Case("Div", i64(), ints(3).reshape(())).held_to("onnxruntime", why=_NO_TRUNCATION),
    *(Case("Mod", make(4, 3, low=-99, high=99), make(3, low=2)) for make in SIGNED),
    *(Case("Mod", make(4, 3, high=99), make(3, low=1)) for make in UNSIGNED),
    *(Case("Mod", make(4, 3), make(3, low=0.5), fmod=1) for make in FLOATS),
    *(Case("Mod", make(4, 3), make(3, low=0.5)) for make in FLOATS),
    Case("Mod", ints(-7, 7, -7, 7), ints(2, 2, -2, -2)).giving(ints(1, 1, -1, -1)),
    Case("Mod", ints(-7, 7, -7, 7), ints(2, 2, -2, -2), fmod=1).giving(ints(-1, 1, -1, 1)),
    Case("Mod", floats(-7, 7, np.inf, 3, np.nan, 1), floats(4, -4, 2, np.inf, 1, 0)).giving(
        floats(1, -1, np.nan, 3, np.nan, np.nan)
    ),
    Case("Mod", f32(0, 2), f32(2), fmod=1),
    Case("Mod", i32(), i32(low=1)),
    *(Case("Pow", make(2, 3, low=0.1), make(3)) for make in FLOATS),
    *(Case("Pow", f32(2, 3), floats(power).reshape(())) for power in (0, 1, 2, 3, 4, -1, -2)),
    *(Case("Pow", make(2, 3), floats(power).reshape(())) for make in (f16, f64) for power in (2, 3)),
    Case("Pow", f32(2, 3, low=0), floats(0.5).reshape(())),
    Case("Pow", f32(2, 3), floats(2, 3, dtype=np.float32).reshape(2, 1)),
    Case("Pow", f32(), floats(2).reshape(1, 1)),
    Case("Pow", f32(2, 3), i64(3, low=0, high=3)),
    Case("Pow", f64(2, 3), i32(3, low=0, high=3)),
    Case("Pow", i64(2, 3), i64(3, low=0, high=5)),
    Case("Pow", i32(2, 3), i32(3, low=0, high=5)),
    Case("Pow", i32(2, 3), floats(2, 1, 3)),
    Case("Pow", i64(2, 3), ints(2, dtype=np.uint8)),
    Case("Pow", ints(2, -1, 1, 3), ints(-1, -1, -2, -2)).giving(ints(0, -1, 1, 0)),
    Case("Pow", ints(3, 2), ints(39, 62)).giving(ints(3**39, 2**62)),
    *(Case(op, make(2, 3)) for op in ("Neg", "Abs", "Sign") for make in (*FLOATS, *SIGNED)),
    *(Case(op, make(2, 3)) for op in ("Abs", "Sign") for make in UNSIGNED),
    *(Case(op, SPECIAL) for op in ("Neg", "Abs", "Sign", "Reciprocal", "Sqrt", "Floor", "Ceil", "Round")),
    *(Case(op, f32()) for op in ("Neg", "Abs", "Sign", "Reciprocal", "Floor", "Ceil", "Round")),
    *(Case(op, f32(0)) for op in ("Neg", "Abs", "Sign", "Reciprocal", "Sqrt", "Floor", "Ceil", "Round")),
    *(Case(op, make(2, 3, low=0.1)) for op in ("Reciprocal", "Sqrt") for make in FLOATS),
    *(Case(op, make(2, 3)) for op in ("Floor", "Ceil", "Round") for make in FLOATS),
    Case("Sqrt", f32(low=0)),
    Case("Neg", ints(-128, dtype=np.int8)),
    Case("Abs", ints(-(2**63), 5)),
    Case("Round", floats(0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 1e30)),
    *(Case(op, make(2, 3), make(3), make(2, 1)) for op in ("Sum", "Mean") for make in FLOATS),
    *(Case(op, make(2, 3), make(3), make(2, 1)) for op in ("Max", "Min") for make in NUMBERS),
    *(Case(op, f32(2, 3)) for op in ("Sum", "Mean", "Max", "Min")),
    *(Case(op, f32(), f32()) for op in ("Sum", "Mean", "Max", "Min")),
    *(Case(op, f32(0, 2), f32(2)) for op in ("Sum", "Mean", "Max", "Min")),
    *(Case(op, SPECIAL, ONES) for op in ("Sum", "Mean", "Max", "Min")),
    *(Case(op, ONES, SPECIAL) for op in ("Max", "Min")),
    *(Case("Clip", make(2, 3), make(low=-1, high=-1), make(low=2, high=2)) for make in (*FLOATS, *SIGNED)),
    *(Case("Clip", make(2, 3), make(low=1, high=1), make(low=5, high=5)) for make in UNSIGNED),
    Case("Clip", f32(2, 3)),
    Case("Clip", f32(2, 3), floats(0).reshape(())),
    Case("Clip", f32(2, 3), None, floats(0).reshape(())),
    Case("Clip", f32(), floats(0).reshape(()), floats(6).reshape(())),
    Case("Clip", f32(0), floats(0).reshape(()), floats(6).reshape(())),
    Case("Clip", SPECIAL, floats(-1).reshape(()), floats(1).reshape(())),
    Case("Clip", f32(3), floats(2).reshape(()), floats(1).reshape(())).giving(floats(1, 1, 1)),
    *(
        Case("BitShift", make(2, 3, high=99), make(3, low=0, high=7), direction=d)
        for make in (*UNSIGNED, *SIGNED)
        for d in ("LEFT", "RIGHT")
    ),
    *(
        Case(
            "BitShift", ints(-5, -5, 5, 5, dtype=np.int8), ints(8, -1, 8, -1, dtype=np.int8), direction=direction
        ).giving(ints(*expected, dtype=np.int8))
        for direction, expected in (("LEFT", (0, 0, 0, 0)), ("RIGHT", (-1, -1, 0, 0)))
    ),
    *(
        Case("BitShift", ints(5, 255, dtype=np.uint8), ints(8, 200, dtype=np.uint8), direction=d).giving(
            ints(0, 0, dtype=np.uint8)
        )
        for d in ("LEFT", "RIGHT")
    ),
    Case("BitShift", u64(0, 2), u64(2), direction="LEFT"),
    Case("BitShift", u8(), u8(), direction="RIGHT"),
    *(
        Case(op, make(2, 3), make(3))
        for op in ("BitwiseAnd", "BitwiseOr", "BitwiseXor")
        for make in (*SIGNED, *UNSIGNED)
    ),
    *(Case("BitwiseNot", make(2, 3)) for make in (*SIGNED, *UNSIGNED)),
    *(Case(op, i8(), i8()) for op in ("BitwiseAnd", "BitwiseOr", "BitwiseXor")),
    *(Case(op, i8(0), i8(1)) for op in ("BitwiseAnd", "BitwiseOr", "BitwiseXor")),
    Case("BitwiseNot", i8()),
    Case("BitwiseNot", i8(0)),
]
