from __future__ import annotations

import ml_dtypes
import numpy as np
from onnx import TensorProto

from tests.op_cases.case import (
    NUMBERS,
    SIGNED,
    Case,
    bf16,
    bools,
    f16,
    f32,
    f64,
    floats,
    i8,
    i32,
    i64,
    ints,
    strings,
    u8,
)

P = TensorProto
PLAIN = (
    P.FLOAT,
    P.DOUBLE,
    P.FLOAT16,
    P.BFLOAT16,
    P.INT8,
    P.INT16,
    P.INT32,
    P.INT64,
    P.UINT8,
    P.UINT16,
    P.UINT32,
    P.UINT64,
    P.BOOL,
)
FLOAT8 = (P.FLOAT8E4M3FN, P.FLOAT8E4M3FNUZ, P.FLOAT8E5M2, P.FLOAT8E5M2FNUZ)
SMALL_FLOATS = (P.FLOAT4E2M1, P.FLOAT6E2M3, P.FLOAT6E3M2)
NIBBLES = (P.INT4, P.UINT4, P.INT2, P.UINT2)
WIDE = (0, -0.0, 1.17, -3.3, 470, -470, 1e6, -1e6, np.inf, -np.inf, np.nan, 1e-9)
POWERS = floats(1, 1.2, 1.5, 1.7, 2, 3, 1e-30, 1e30, np.nan)
_ROUNDS = "onnxruntime rounds floats to 4-bit integers, where every other integer type is cut off"


CASES = [
    *(Case("Cast", make(2, 3, low=0, high=5), to=to) for make in (*NUMBERS, bools) for to in PLAIN),
    *(
        Case("Cast", make(2, 3, low=-5, high=-1), to=to)
        for make in (f32, f64, bf16, *SIGNED)
        for to in (P.INT8, P.INT64, P.BOOL, P.FLOAT16)
    ),
    *(
        Case("Cast", f32(*shape), to=to)
        for shape in ((), (0, 3))
        for to in (P.INT64, P.BFLOAT16, P.FLOAT8E4M3FN, P.STRING)
    ),
    Case("Cast", floats(np.nan, np.inf, 0, -0.0), to=P.BOOL),
    Case("Cast", floats(np.nan, np.inf, -np.inf, 1e9), to=P.FLOAT16),
    Case("Cast", floats(np.nan, 1e300, -1e300, 1e-300, dtype=np.float64), to=P.FLOAT),
    Case("Cast", floats(0.9, -0.9, 1.5, -1.5, 2.5), to=P.INT32),
    Case("Cast", ints(200, -129, 256, 127, dtype=np.int16), to=P.INT8),
    Case("Cast", ints(-1, 2**40 + 7), to=P.UINT32),
    *(
        Case("Cast", floats(*WIDE, dtype=dtype), to=to)
        for to in FLOAT8
        for dtype in (np.float32, np.float16, ml_dtypes.bfloat16)
    ),
    *(Case("Cast", floats(*WIDE), to=to, saturate=0) for to in FLOAT8),
    *(Case("Cast", floats(*WIDE, dtype=np.float64), to=to) for to in FLOAT8),
    *(
        Case("Cast", ints(3, -7, 1000, -(10**6)), to=to).held_to("reference", why="onnxruntime has no such kernel")
        for to in FLOAT8
    ),
    *(
        Case("Cast", floats(1, -2.5, 0.3, np.nan, dtype=dtype), to=to)
        for dtype in (ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2)
        for to in (P.FLOAT, P.FLOAT16, P.BFLOAT16, P.DOUBLE)
    ),
    *(
        Case("Cast", floats(1, -2, 3, dtype=dtype), to=to)
        for dtype in (ml_dtypes.float8_e4m3fnuz, ml_dtypes.float8_e5m2fnuz)
        for to in (P.FLOAT, P.INT8, P.BOOL)
    ),
    Case("Cast", floats(1, 6e4, np.inf, dtype=ml_dtypes.float8_e5m2), to=P.FLOAT8E4M3FN),
    *(Case("Cast", floats(0, 0.3, 1.5, -2.6, 5, 100, -100), to=to) for to in SMALL_FLOATS),
    *(
        Case("Cast", floats(0, 0.5, -1.5, 3, dtype=dtype), to=to)
        for dtype in (ml_dtypes.float4_e2m1fn, ml_dtypes.float6_e2m3fn, ml_dtypes.float6_e3m2fn)
        for to in (P.FLOAT, P.FLOAT16)
    ),
    *(Case("Cast", i8(2, 3, low=0, high=1), to=to) for to in NIBBLES),
    *(Case("Cast", floats(0, 1, 1.7), to=to).held_to("reference", why=_ROUNDS) for to in NIBBLES),
    Case("Cast", ints(9, -9, 15, 16, dtype=np.int8), to=P.INT4).giving(np.array([-7, 7, -1, 0], ml_dtypes.int4)),
    *(
        Case("Cast", np.array([0, 1, 1], dtype), to=to)
        for dtype in (ml_dtypes.int4, ml_dtypes.uint4, ml_dtypes.int2, ml_dtypes.uint2)
        for to in (P.FLOAT, P.INT8, P.UINT8)
    ),
    Case("Cast", np.array([-8, -1, 7], ml_dtypes.int4), to=P.FLOAT),
    Case("Cast", np.array([-8, -1, 7], ml_dtypes.int4), to=P.INT8),
    *(Case("Cast", POWERS, to=P.FLOAT8E8M0, round_mode=mode) for mode in ("up", "down", "nearest")),
    *(
        Case("Cast", floats(0, np.inf, 3e38, 1e-45), to=P.FLOAT8E8M0, saturate=saturate, round_mode=mode).giving(
            np.array(codes, np.uint8).view(ml_dtypes.float8_e8m0fnu)
        )
        for saturate, mode, codes in ((1, "up", (0, 254, 254, 0)), (0, "nearest", (255, 255, 255, 255)))
    ),
    Case("Cast", np.array([0, 127, 128, 255], np.uint8).view(ml_dtypes.float8_e8m0fnu), to=P.FLOAT),
    Case("Cast", strings(["3.14", "1e-5", "1E8", "INF", "-inf", "+INF", "NaN", "-7"]), to=P.FLOAT),
    Case("Cast", strings(["3.14", "1e-5"]), to=P.DOUBLE),
    Case("Cast", strings(["3.5", "0.1"]), to=P.BFLOAT16).giving(np.array([3.5, 0.1], ml_dtypes.bfloat16)),
    Case("Cast", strings(["3", "-12", "9007199254740993"]), to=P.INT64).giving(ints(3, -12, 9007199254740993)),
    Case("Cast", strings(["100.5", "18446744073709551615"]), to=P.UINT64).giving(ints(100, 2**64 - 1, dtype=np.uint64)),
    Case("Cast", floats(0.5, -1.25, 3e30, np.nan, np.inf), to=P.STRING).held_to(
        "reference", why="onnxruntime prints NaN and INF in capitals"
    ),
    Case("Cast", f64(4), to=P.STRING).held_to("reference", why="onnxruntime prints 17 digits"),
    *(Case("Cast", make(4), to=P.STRING) for make in (i32, i64, u8)),
    Case("Cast", ints(1, -5, dtype=np.int8), to=P.STRING).giving(strings(["1", "-5"])),
    Case("Cast", np.array([1.5, -2], ml_dtypes.bfloat16), to=P.STRING).giving(strings(["1.5", "-2.0"])),
    Case("Cast", np.array([True, False]), to=P.STRING).giving(strings(["1", "0"])),
    Case("Cast", strings(["a"]), to=P.STRING).giving(strings(["a"])),
    *(
        Case("CastLike", make(2, 3, low=0, high=3), like(1))
        for make in (f32, f16, bf16, i32, bools)
        for like in (f32, f64, bf16, i64, u8, bools)
    ),
    *(
        Case("CastLike", floats(*WIDE), floats(0, dtype=ml_dtypes.float8_e4m3fn), saturate=saturate)
        for saturate in (0, 1)
    ),
    Case("CastLike", POWERS, np.array([1], np.uint8).view(ml_dtypes.float8_e8m0fnu), round_mode="down").giving(
        floats(1, 1, 1, 1, 2, 2, 2**-100, 2**99, np.nan, dtype=ml_dtypes.float8_e8m0fnu)
    ),
    *(Case("CastLike", make(2, 3), f32(1)) for make in (f64, i64, i8, u8)),
    Case("CastLike", f32(), i64()),
    Case("CastLike", f32(0), i64()),
    Case("CastLike", f32(2), strings(["x"])).held_to("reference", why="both spell floats, with other digits"),
    *(
        Case("BitCast", make(2, 3), to=to)
        for make, to in (
            (f32, P.INT32),
            (i32, P.FLOAT),
            (f64, P.UINT64),
            (f16, P.BFLOAT16),
            (bf16, P.INT16),
            (u8, P.INT8),
            (u8, P.FLOAT8E5M2),
            (bools, P.UINT8),
        )
    ),
    Case("BitCast", np.array([-1, 3], ml_dtypes.int4), to=P.UINT4).giving(np.array([15, 3], ml_dtypes.uint4)),
    Case("BitCast", i64(3), to=P.DOUBLE),
    Case("BitCast", i8(3), to=P.UINT8),
    Case("BitCast", f32(), to=P.INT32),
    Case("BitCast", f32(0, 2), to=P.INT32),
    Case("BitCast", floats(np.nan, -0.0, np.inf), to=P.UINT32),
]
