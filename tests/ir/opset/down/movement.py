"""What moves, cuts, picks or makes elements."""

from __future__ import annotations

import numpy as np

from tests.ir.opset.down.case import UNARY, Down, M, f32

CASES = {
    "uneven split": Down(
        18,
        (17, 11, 9),
        "a, y = Split<axis = 1, num_outputs = 2>(x)",
        "float[2,5] x) => (float[2,3] a, float[2,2] y",
        (f32(2, 5),),
    ),
    "uneven split of an unknown size": Down(
        18,
        (17, 11, 10),
        "a, y = Split<axis = 1, num_outputs = 2>(x)",
        "float[2,N] x) => (float[2,P] a, float[2,Q] y",
        (f32(2, 5),),
    ),
    "slice with steps": Down(
        13,
        (11, 9, 7),
        "y = Slice(x, b, e, a, s)",
        "float[3,4] x) => (float[3,2] y",
        (M,),
        "int64[1] b = {-1}, int64[1] e = {-9}, int64[1] a = {-1}, int64[1] s = {-2}",
    ),
    "part of a shape": Down(15, (14, 11, 7), "y = Shape<start = -1>(x)", "float[3,4] x) => (int64[1] y", (M,)),
    "pad of some axes": Down(
        18,
        (17, 11, 9),
        "y = Pad(x, p, , a)",
        "float[3,4] x) => (float[3,7] y",
        (M,),
        "int64[2] p = {1, 2}, int64[1] a = {-1}",
    ),
    "pad that wraps": Down(
        19,
        (18, 13, 9),
        'y = Pad<mode = "wrap">(x, p)',
        "float[3,4] x) => (float[4,7] y",
        (M,),
        "int64[4] p = {1, 2, 0, 1}",
    ),
    "reshape to nothing": Down(
        14,
        (13, 9),
        "y = Reshape<allowzero = 1>(x, s)",
        "float[0,3] x) => (float[3,0] y",
        (f32(0, 3),),
        "int64[2] s = {3, 0}",
    ),
    "triangle of a fixed size": Down(14, (13, 9, 7), "y = Trilu(x)", UNARY, (M,)),
    "triangle of an unknown size": Down(
        14, (13, 11), "y = Trilu<upper = 0>(x, k)", "float[N,M] x, int64 k) => (float[N,M] y", (M, np.array(1))
    ),
    "one-hot with negative indices": Down(
        11,
        (10, 9),
        "y = OneHot(i, d, v)",
        "int64[3] i) => (float[3,4] y",
        (np.array([-1, 2, 0]),),
        "int64 d = {4}, float[2] v = {-1, 3}",
    ),
    "gather elements": Down(
        13,
        (10, 8),
        "y = GatherElements<axis = 1>(x, i)",
        "float[3,4] x, int64[3,2] i) => (float[3,2] y",
        (M, np.array([[0, -1], [1, 2], [3, 3]])),
    ),
    "gather nd with a batch": Down(
        13,
        (11, 9),
        "y = GatherND<batch_dims = 1>(x, i)",
        "float[3,4] x, int64[3,1] i) => (float[3] y",
        (M, np.array([[0], [-1], [2]])),
    ),
    "scatter elements": Down(
        13,
        (10, 9),
        "y = ScatterElements<axis = -1>(x, i, u)",
        "float[3,4] x, int64[3,1] i, float[3,1] u) => (float[3,4] y",
        (M, np.array([[0], [1], [3]]), f32(3, 1)),
    ),
    "range by a loop": Down(
        11,
        (10, 9),
        "y = Range(a, b, c)",
        "int64 a, int64 b, int64 c) => (int64[N] y",
        (np.array(1), np.array(8), np.array(3)),
    ),
}
