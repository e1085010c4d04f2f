from __future__ import annotations

import numpy as np

from tests.op_cases.case import NUMBERS, Case, bf16, bools, f16, f32, f64, floats, i32, i64, ints, u32, u64

SUMS = (
    "ReduceSum",
    "ReduceMean",
    "ReduceProd",
    "ReduceL1",
    "ReduceL2",
    "ReduceSumSquare",
    "ReduceLogSum",
    "ReduceLogSumExp",
)
ORDERS = ("ReduceMax", "ReduceMin")
EMPTY_IS_DEFINED = tuple(op for op in SUMS if op != "ReduceMean")
NAN = floats(np.nan, 1.0, np.inf, -np.inf).reshape(2, 2)
TIES = floats(1, 3, 3, 0, 0, 2).reshape(2, 3)

CASES = [
    *(Case(op, make(2, 3, 4, low=0.1)) for op in SUMS for make in (f32, f64)),
    *(Case(op, make(2, 3, 4, low=0.1), ints(1)) for op in SUMS for make in (f16, bf16)),
    *(
        Case(op, make(2, 3, 4, low=1), ints(1))
        for op in ("ReduceSum", "ReduceProd", "ReduceL1")
        for make in (i32, i64, u32, u64)
    ),
    *(Case(op, make(2, 3, 4), ints(1)) for op in ORDERS for make in (*NUMBERS, bools)),
    *(
        Case("ReduceSumSquare", make(2, 3), ints(1)).held_to("onnxruntime", why="onnx.reference widens the integers")
        for make in (i32, i64)
    ),
    *(Case(op, f32(2, 3, 4, low=0.1), ints(0, 2)) for op in (*SUMS, *ORDERS)),
    *(Case(op, f32(2, 3, 4, low=0.1), ints(-1), keepdims=0) for op in (*SUMS, *ORDERS)),
    *(
        Case(op, f32(2, 3, low=0.1), noop_with_empty_axes=1)
        for op in ("ReduceSum", "ReduceMean", "ReduceProd", *ORDERS)
    ),
    *(
        Case(op, f32(2, 3, low=0.1), ints(), noop_with_empty_axes=1)
        for op in ("ReduceSum", "ReduceMean", "ReduceProd", *ORDERS)
    ),
    *(Case(op, f32(2, 3, low=0.1), ints(), keepdims=0) for op in (*SUMS, *ORDERS)),
    *(Case(op, f32(low=0.1), keepdims=0) for op in (*SUMS, *ORDERS)),
    *(Case(op, f32(2, 0, 3), ints(1)) for op in EMPTY_IS_DEFINED),
    *(Case(op, f32(2, 0, 3), ints(0)) for op in (*SUMS, *ORDERS)),
    *(
        Case(op, f32(2, 3), ints(), noop_with_empty_axes=1)
        for op in ("ReduceL1", "ReduceL2", "ReduceSumSquare", "ReduceLogSum", "ReduceLogSumExp")
    ),
    *(Case(op, NAN, ints(1)) for op in ("ReduceL2", "ReduceSumSquare", "ReduceLogSum")),
    *(Case("ReduceMean", make(2, 3, 4, low=1), ints(1)) for make in (i32, i64)),
    *(Case("ReduceL2", ints(3, 4, dtype=dtype)).giving(ints(5, dtype=dtype)) for dtype in (np.int32, np.int64)),
    *(Case(op, f32(), keepdims=k) for op in ("ArgMax", "ArgMin") for k in (0, 1)),
    Case("ReduceMean", f32(2, 0), ints(1)).giving(floats(np.nan, np.nan).reshape(2, 1)),
    *(
        Case(op, np.zeros((2, 0), dtype), ints(1), keepdims=0).giving(np.full(2, value, dtype))
        for op, dtype, value in (
            ("ReduceMax", np.float32, -np.inf),
            ("ReduceMin", np.float32, np.inf),
            ("ReduceMax", np.int32, -(2**31)),
            ("ReduceMin", np.int64, 2**63 - 1),
            ("ReduceMax", np.bool_, False),
            ("ReduceMin", np.bool_, True),
        )
    ),
    *(Case(op, NAN, ints(1)) for op in ("ReduceSum", "ReduceMean", "ReduceProd", "ReduceL1", *ORDERS)),
    Case("ReduceLogSumExp", floats(1000, 1000, -1000, -1000).reshape(2, 2), ints(1)),
    Case("ReduceLogSumExp", floats(-np.inf, -np.inf, np.inf, 1).reshape(2, 2), ints(1)).giving(
        floats(-np.inf, np.inf).reshape(2, 1)
    ),
    Case("ReduceMean", ints(1, 2, -1, -2).reshape(2, 2), ints(1)).giving(ints(1, -1).reshape(2, 1)),
    Case("ReduceSum", ints(2**62, 2**62, dtype=np.int64)).giving(ints(-(2**63))),
    Case("ReduceSum", np.full((1, 5000), 0.1, np.float16), ints(1)).giving(np.array([[499.9]], np.float16)),
    *(Case(op, make(3, 4)) for op in ("ArgMax", "ArgMin") for make in NUMBERS),
    *(
        Case(op, TIES, axis=axis, keepdims=k, select_last_index=s)
        for op in ("ArgMax", "ArgMin")
        for axis in (0, 1, -1)
        for k in (0, 1)
        for s in (0, 1)
    ),
    *(Case(op, f32(3), keepdims=0) for op in ("ArgMax", "ArgMin")),
    *(Case(op, f32(0, 3), axis=1) for op in ("ArgMax", "ArgMin")),
    *(Case(op, floats(1, np.nan, 3, np.nan)).giving(ints(1)) for op in ("ArgMax", "ArgMin")),
    *(Case(op, make(2, 3, 4), np.array(1)) for op in ("CumSum", "CumProd") for make in (f32, f64, i32, i64)),
    *(Case(op, make(2, 3), np.array(1)) for op in ("CumSum", "CumProd") for make in (f16, bf16)),
    *(
        Case(op, f32(2, 3), np.array(-2), exclusive=e, reverse=r)
        for op in ("CumSum", "CumProd")
        for e in (0, 1)
        for r in (0, 1)
    ),
    *(Case(op, f32(3), np.array(0, np.int32)) for op in ("CumSum", "CumProd")),
    *(Case(op, f32(2, 0), np.array(1), exclusive=e) for op in ("CumSum", "CumProd") for e in (0, 1)),
    *(Case(op, floats(1, np.nan, np.inf, -np.inf), np.array(0)) for op in ("CumSum", "CumProd")),
    Case("CumSum", ints(2**30, 2**30, 2**30, dtype=np.int32), np.array(0)),
]
