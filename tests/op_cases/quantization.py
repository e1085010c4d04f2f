from __future__ import annotations

import ml_dtypes
import numpy as np
from onnx import TensorProto

from tests.op_cases.case import Case, bf16, f16, f32, floats, i8, i16, i32, ints, u8, u16

P = TensorProto
TIES = floats(0.5, 1.5, 2.5, -0.5, 1000, -1000, 3.2)
HALF = floats(0.5).reshape(())
FLOAT8 = (ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e4m3fnuz, ml_dtypes.float8_e5m2, ml_dtypes.float8_e5m2fnuz)
SMALL_INTS = (ml_dtypes.int4, ml_dtypes.uint4, ml_dtypes.int2, ml_dtypes.uint2)


def steps(*shape: int, dtype: type = np.float32) -> np.ndarray:
    """Scales that differ and are not powers of two."""
    return np.linspace(0.3, 1.7, int(np.prod(shape))).reshape(shape).astype(dtype)


def zeros(dtype: type, *shape: int) -> np.ndarray:
    return np.zeros(shape, dtype)


CASES = [
    Case("QuantizeLinear", TIES, floats(1).reshape(())),
    *(
        Case("QuantizeLinear", TIES, HALF, ints(zero, dtype=dtype).reshape(()))
        for dtype, zero in ((np.uint8, 128), (np.int8, -3), (np.uint16, 300), (np.int16, -300))
    ),
    Case("QuantizeLinear", f32(2, 3, 2), steps(3), u8(3)),
    Case("QuantizeLinear", f32(2, 3, 2), steps(2), i8(2), axis=-1),
    Case("QuantizeLinear", f32(2, 6), steps(2, 3), u8(2, 3), axis=1, block_size=2),
    Case("QuantizeLinear", f32(2, 5), steps(2, 3), axis=1, block_size=2),
    *(Case("QuantizeLinear", TIES, HALF, output_dtype=to) for to in (P.INT8, P.UINT8, P.INT16, P.UINT16)),
    *(Case("QuantizeLinear", floats(0.6, -0.9, 1.3, 100, -100), HALF, zeros(dtype)) for dtype in SMALL_INTS),
    *(
        Case("QuantizeLinear", floats(0.6, -0.9, 1.3, 1e6, -1e6), HALF, zeros(dtype), saturate=s)
        for dtype in FLOAT8
        for s in (0, 1)
    ),
    *(
        Case("QuantizeLinear", floats(0.6, -0.9, 1.3, 100, -100), HALF, output_dtype=to)
        for to in (P.FLOAT4E2M1, P.FLOAT6E2M3, P.FLOAT6E3M2)
    ),
    Case("QuantizeLinear", f16(2, 3), steps(3, dtype=np.float16), i8(3)),
    Case("QuantizeLinear", bf16(2, 3), steps(3, dtype=ml_dtypes.bfloat16), i8(3)),
    Case("QuantizeLinear", f16(2, 3), steps(3), i8(3), precision=P.FLOAT),
    Case("QuantizeLinear", i32(2, 3), steps(3), i8(3)),
    Case("QuantizeLinear", f32(0, 3), steps(3), i8(3)),
    Case("QuantizeLinear", f32(), HALF, u8()),
    Case("QuantizeLinear", floats(np.inf, -np.inf, 1e30, -1e30), HALF, ints(3, dtype=np.int8).reshape(())).giving(
        ints(127, -128, 127, -128, dtype=np.int8)
    ),
    *(Case("DequantizeLinear", make(2, 3), HALF, make()) for make in (u8, i8, u16, i16)),
    Case("DequantizeLinear", i32(2, 3, low=-1000, high=1000), HALF),
    Case("DequantizeLinear", u8(2, 3, 2), steps(3), u8(3)),
    Case("DequantizeLinear", i8(2, 3, 2), steps(2), axis=-1),
    Case("DequantizeLinear", i8(2, 6), steps(2, 3), i8(2, 3), block_size=2),
    Case("DequantizeLinear", i8(5, 2), steps(3, 2), axis=0, block_size=2),
    Case("DequantizeLinear", i8(2, 3), steps(3, dtype=np.float16), i8(3)),
    Case("DequantizeLinear", i8(2, 3), steps(3, dtype=ml_dtypes.bfloat16)),
    *(Case("DequantizeLinear", i8(2, 3), steps(3), output_dtype=to) for to in (P.FLOAT, P.FLOAT16, P.BFLOAT16)),
    *(
        Case("DequantizeLinear", np.array([1, -2, 0.5], np.float32).astype(dtype), HALF)
        for dtype in (*FLOAT8, ml_dtypes.float4_e2m1fn)
    ),
    *(Case("DequantizeLinear", np.array([1, 0, 1], dtype), HALF, np.array(1, dtype)) for dtype in SMALL_INTS),
    Case("DequantizeLinear", i8(), HALF),
    Case("DequantizeLinear", i8(0, 3), steps(3)),
    Case("DynamicQuantizeLinear", f32(3, 4)).outputs(3),
    Case("DynamicQuantizeLinear", f32(3, 4, low=0.5)).outputs(3),
    Case("DynamicQuantizeLinear", f32(3, 4, high=-0.5)).outputs(3),
    Case("DynamicQuantizeLinear", f32()).outputs(3),
    Case("DynamicQuantizeLinear", zeros(np.float32, 2))
    .outputs(3)
    .held_to("onnxruntime", why="onnx.reference divides by a scale of zero"),
]
