"""Products of matrices, attention, and quantisation."""

from __future__ import annotations

import numpy as np

from tests.ir.opset.down.case import Down, M, f32

CASES = {
    "quantise per axis": Down(
        13,
        (12, 10, 9),
        "y = QuantizeLinear<axis = 0>(x, s, z)",
        "float[3,4] x) => (uint8[3,4] y",
        (M,),
        "float[3] s = {0.1, 0.2, 0.01}, uint8[3] z = {0, 128, 255}",
    ),
    "dequantise per axis": Down(
        13,
        (12, 9),
        "y = DequantizeLinear<axis = 1>(x, s)",
        "int8[3,4] x) => (float[3,4] y",
        (np.arange(-6, 6, dtype=np.int8).reshape(3, 4),),
        "float[4] s = {0.1, 0.2, 0.01, 1}",
    ),
    "quantise to 16 bits": Down(
        21,
        (19, 13),
        "y = QuantizeLinear(x, s, z)",
        "float[3,4] x) => (int16[3,4] y",
        (M,),
        "float s = {0.001}, int16 z = {7}",
    ),
    "integer product": Down(
        10,
        (9, 8),
        "y = MatMulInteger(a, b, z)",
        "uint8[2,3] a, int8[3,2] b) => (int32[2,2] y",
        (np.arange(6, dtype=np.uint8).reshape(2, 3), np.arange(-3, 3, dtype=np.int8).reshape(3, 2)),
        "uint8 z = {3}",
    ),
    "gemm without a bias": Down(
        11, (9, 7), "y = Gemm<transB = 1>(a, b)", "float[3,4] a, float[2,4] b) => (float[3,2] y", (M, f32(2, 4))
    ),
    "einsum": Down(
        12,
        (11, 9),
        'y = Einsum<equation = "bij,kj->bik">(a, b)',
        "float[2,3,4] a, float[5,4] b) => (float[2,3,5] y",
        (f32(2, 3, 4), f32(5, 4)),
    ),
    "attention with a mask and a cache": Down(
        23,
        (20, 17, 13),
        "y, k2, v2 = Attention(q, k, v, m, pk, pv)",
        "float[2,2,3,4] q, float[2,2,3,4] k, float[2,2,3,4] v, float[3,5] m, float[2,2,2,4] pk, float[2,2,2,4] pv)"
        " => (float[2,2,3,4] y, float[2,2,5,4] k2, float[2,2,5,4] v2",
        (f32(2, 2, 3, 4), f32(2, 2, 3, 4), f32(2, 2, 3, 4), f32(3, 5), f32(2, 2, 2, 4), f32(2, 2, 2, 4)),
    ),
    "rotary embedding": Down(
        23,
        (21, 17, 12),
        "y = RotaryEmbedding(x, c, s)",
        "float[1,2,3,4] x, float[1,3,2] c, float[1,3,2] s) => (float[1,2,3,4] y",
        (f32(1, 2, 3, 4), f32(1, 3, 2), f32(1, 3, 2)),
    ),
}
