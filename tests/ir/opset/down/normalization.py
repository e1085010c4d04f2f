"""Normalisations."""

from __future__ import annotations

import numpy as np

from tests.ir.opset.down.case import UNARY, Down, M, X

CASES = {
    "layer norm": Down(
        17, (16, 13, 11, 9, 7), "y = LayerNormalization(x, s, s)", UNARY, (M,), "float[4] s = {1, 2, 3, 4}"
    ),
    "layer norm with its statistics": Down(
        17,
        (13, 7),
        "y, m, i = LayerNormalization<axis = 0>(x, s)",
        "float[3,4] x) => (float[3,4] y, float[1,1] m, float[1,1] i",
        (M,),
        "float[3,4] s = {1, 2, 3, 4, 1, 2, 3, 4, 1, 2, 3, 4}",
    ),
    "layer norm in float16": Down(
        17,
        (13, 9),
        "y = LayerNormalization(x, s)",
        "float16[3,4] x) => (float16[3,4] y",
        (M.astype(np.float16),),
        "float16[4] s = {1, 2, 3, 4}",
        atol=2e-2,
    ),
    "rms norm": Down(23, (20, 17, 12, 7), "y = RMSNormalization(x, s)", UNARY, (M,), "float[4] s = {1, 2, 3, 4}"),
    "group norm": Down(
        21,
        (20, 17, 11, 8),
        "y = GroupNormalization<num_groups = 3>(x, s, s)",
        "float[N,3,6,6] x) => (float[N,3,6,6] y",
        (X,),
        "float[3] s = {1, 2, 3}",
    ),
    "batch norm in training": Down(
        15,
        (13, 9),
        "y, m, v = BatchNormalization<training_mode = 1>(x, s, s, s, s)",
        "float[2,3,6,6] x) => (float[2,3,6,6] y, float[3] m, float[3] v",
        (X,),
        "float[3] s = {1, 2, 3}",
    ),
}
