from __future__ import annotations

import ml_dtypes
import numpy as np
from onnx import TensorProto

from tests.op_cases.case import Case, bf16, bools, f16, f32, f64, floats, i8, i32, i64, ints, strings, u8


def scalars(dtype: type, *values: float) -> list[np.ndarray]:
    return [np.array(value, np.float64).astype(dtype) for value in values]


CASES = [
    *(Case("ConstantOfShape", ints(*shape)) for shape in ((2, 3), (), (0, 2))),
    *(
        Case("ConstantOfShape", ints(2), value=np.array([3]).astype(dtype))
        for dtype in (np.float32, np.float16, np.float64, np.int32, np.int64, np.uint8, np.bool_, ml_dtypes.bfloat16)
    ),
    Case("ConstantOfShape", ints(2), value=floats(np.nan)),
    *(
        Case("Range", *scalars(dtype, 3, 9, 2))
        for dtype in (np.float32, np.float64, np.int16, np.int32, np.int64, np.float16, ml_dtypes.bfloat16)
    ),
    *(Case("Range", *scalars(np.float32, *bounds)) for bounds in ((0, 1, 0.1), (5, 0, -1.5), (5, 0, 1), (0, 0, 1))),
    *(Case("Range", *scalars(np.int64, *bounds)) for bounds in ((10, 4, -2), (4, 4, 1), (0, 7, 3))),
    Case("Range", *scalars(np.float16, 0, 100, 0.3), stash_type=11),
    *(Case("EyeLike", make(3, 4)) for make in (f32, f64, f16, bf16, i8, i32, i64, u8, bools)),
    *(Case("EyeLike", f32(3, 4), k=k) for k in (1, -2, 9)),
    *(Case("EyeLike", f32(2, 2), dtype=to) for to in (TensorProto.INT64, TensorProto.DOUBLE, TensorProto.BOOL)),
    Case("EyeLike", f32(0, 3)),
    *(Case("Trilu", make(3, 4)) for make in (f32, f64, f16, bf16, i8, i32, i64, u8, bools)),
    *(Case("Trilu", f32(2, 3, 4), np.array(k), upper=upper) for k in (0, 1, -1, 9, -9) for upper in (0, 1)),
    Case("Trilu", f32(0, 3)),
    Case("Trilu", np.full((2, 2), np.nan, np.float32)),
    Case("OneHot", ints(0, 2, -1, 5, -7), np.array(4), floats(0, 1)),
    *(
        Case("OneHot", ints(0, 2), np.array(3), np.array([2, 5]).astype(dtype))
        for dtype in (np.float64, np.int32, np.int64)
    ),
    *(Case("OneHot", i64(2, 3, low=0, high=3), np.array(4), floats(0, 1), axis=axis) for axis in (0, 1, -2, -1, 2)),
    Case("OneHot", ints(0, 2), np.array(3), np.array([False, True])).giving(np.eye(3, dtype=bool)[[0, 2]]),
    Case("OneHot", floats(0, 2), np.array(3.0, np.float32), floats(0, 1)),
    Case("OneHot", i32(2, low=0, high=1), ints(2, dtype=np.int32), floats(0, 1)),
    Case("OneHot", i64(low=0, high=2), np.array(3), floats(0, 1)),
    Case("OneHot", i64(0), np.array(3), floats(0, 1)),
    *(
        Case("OneHot", np.array([0, 2, 1], dtype), np.array(3, dtype), floats(0, 1))
        for dtype in (np.float16, np.float64, np.int8, np.uint8)
    ),
    Case("OneHot", ints(1), np.array(2), strings(["no", "yes"])),
]
