"""Arithmetic, comparisons and casts, element by element."""

from __future__ import annotations

import numpy as np

from tests.ir.opset.down.case import SPECIAL, TO_BOOL, UNARY, Down, M

CASES = {
    "round half to even": Down(11, (10, 8, 7), "y = Round(x)", UNARY, (SPECIAL,)),
    "is nan": Down(9, (8, 7), "y = IsNaN(x)", TO_BOOL, (SPECIAL,)),
    "is inf": Down(10, (9, 7), "y = IsInf(x)", TO_BOOL, (SPECIAL,)),
    "is negative inf": Down(10, (9, 7), "y = IsInf<detect_positive = 0>(x)", TO_BOOL, (SPECIAL,)),
    "sign": Down(9, (8, 7), "y = Sign(x)", UNARY, (M,)),
    "asinh of both signs": Down(9, (8, 7), "y = Asinh(x)", UNARY, (M * 100,)),
    "equal floats with nan and infinities": Down(
        11, (10, 7), "y = Equal(x, z)", "float[3,4] x, float[3,4] z) => (bool[3,4] y", (SPECIAL, SPECIAL)
    ),
    "less on large int64": Down(
        9,
        (8, 7),
        "y = Less(a, b)",
        "int64[4] a, int64[4] b) => (bool[4] y",
        (np.array([2**62, -(2**62), 2**53, 5]), np.array([2**62 + 1, -(2**62) - 1, 2**53 + 1, -5])),
    ),
    "max of int64": Down(
        13,
        (11, 9),
        "y = Max(a, b)",
        "int64[2] a, int64[2] b) => (int64[2] y",
        (np.array([2**62, -1]), np.array([2**62 + 1, -2])),
    ),
    "where of infinities": Down(
        9,
        (8, 7),
        "y = Where(c, x, z)",
        "bool[3,4] c, float[3,4] x, float z) => (float[3,4] y",
        (M > 0, SPECIAL, np.array(-np.inf, np.float32)),
    ),
    "where of int64": Down(
        16,
        (8,),
        "y = Where(c, x, z)",
        "bool[2] c, int64[2] x, int64[2] z) => (int64[2] y",
        (np.array([True, False]), np.array([2**63 - 1, 3]), np.array([-(2**63), 4])),
    ),
    "floored remainder of int64": Down(
        13,
        (9,),
        "y = Mod(a, b)",
        "int64[4] a, int64[4] b) => (int64[4] y",
        (np.array([7, -7, 7, -6]), np.array([3, 3, -3, 3])),
    ),
    "pow with an integer exponent": Down(
        13, (11, 7), "y = Pow(x, e)", "float[3,4] x) => (float[3,4] y", (np.abs(M),), "int64 e = {3}"
    ),
    "cast like": Down(
        15, (14, 9), "y = CastLike(x, z)", "float[3,4] x, int32[1] z) => (int32[3,4] y", (M, np.zeros(1, np.int32))
    ),
}
