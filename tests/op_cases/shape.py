from __future__ import annotations

import ml_dtypes
import numpy as np

from tests.op_cases.case import Case, bf16, bools, f16, f32, f64, floats, i8, i32, i64, ints, strings, u8

MANY = (f32, f64, f16, bf16, i8, i32, i64, u8, bools)
NIBBLES = np.array([[1, -2, 3], [4, -5, 6]], ml_dtypes.int4)
EIGHTHS = np.array([[1, -2, 3], [4, -5, 6]], ml_dtypes.float8_e4m3fn)
WORDS = strings([["a", "bc", ""], ["d", "e", "f"]])
ODD = (NIBBLES, EIGHTHS, WORDS)

CASES = [
    *(Case(op, make(2, 3)) for op in ("Shape", "Size", "Identity") for make in MANY),
    *(Case(op, x) for op in ("Shape", "Size", "Identity") for x in ODD),
    *(Case(op, f32(*shape)) for op in ("Shape", "Size", "Identity") for shape in ((), (0,), (2, 0, 3))),
    *(Case("Shape", f32(2, 3, 4), start=start) for start in (1, -1, 5, -5)),
    *(Case("Shape", f32(2, 3, 4), end=end) for end in (1, -1, 5)),
    Case("Shape", f32(2, 3, 4), end=-5).held_to("onnxruntime", why="onnx.reference adds the rank and does not clamp"),
    Case("Shape", f32(2, 3, 4), start=-2, end=2),
    *(Case("Reshape", make(2, 3, 4), ints(4, 6)) for make in MANY),
    *(Case("Reshape", x, ints(3, 2)) for x in ODD),
    *(
        Case("Reshape", f32(2, 3, 4), ints(*shape))
        for shape in ((-1,), (0, -1), (0, 0, -1), (-1, 0, 2), (24,), (2, 1, 12), (0, 0, 2, 2))
    ),
    Case("Reshape", f32(), ints(1, 1)),
    Case("Reshape", f32(1, 1), ints()),
    Case("Reshape", f32(0, 3), ints(0, 3)),
    Case("Reshape", f32(0, 3), ints(3, 0), allowzero=1),
    Case("Reshape", f32(0, 3, 4), ints(0, -1)).giving(np.zeros((0, 12), np.float32)),
    Case("Reshape", f32(2, 0, 3), ints(2, -1, 3)),
    *(Case("Flatten", make(2, 3, 4)) for make in MANY),
    *(Case("Flatten", f32(2, 3, 4), axis=axis) for axis in (0, 2, 3, -1, -3)),
    *(Case("Flatten", x) for x in (f32(3), f32(0, 2), NIBBLES)),
    Case("Flatten", f32(), axis=0),
    *(Case("Squeeze", make(1, 3, 1)) for make in MANY),
    *(Case("Squeeze", f32(1, 3, 1), ints(*axes)) for axes in ((0,), (-1,), (0, 2), (-3,))),
    Case("Squeeze", f32()),
    Case("Squeeze", f32(1, 0)),
    *(Case("Squeeze", x.reshape(1, 2, 3), ints(0)) for x in ODD),
    *(Case("Unsqueeze", make(2, 3), ints(0)) for make in MANY),
    *(Case("Unsqueeze", f32(2, 3), ints(*axes)) for axes in ((-1,), (0, 2), (3, 1), (-1, 0), (1,))),
    Case("Unsqueeze", f32(), ints(0)),
    Case("Unsqueeze", f32(2), np.array(0)),
    Case("Unsqueeze", f32(0), ints(1)),
    *(Case("Unsqueeze", x, ints(0)) for x in ODD),
    *(Case("Expand", make(3, 1), ints(2, 3, 4)) for make in MANY),
    *(Case("Expand", f32(3, 1), ints(*shape)) for shape in ((1,), (3, 1), (1, 4), (2, 1, 1))),
    Case("Expand", f32(), ints(2, 3)),
    Case("Expand", f32(), ints()),
    Case("Expand", f32(3, 1), ints(3, 0)),
    Case("Expand", floats(np.nan), ints(2)),
    Case("Expand", strings(["a"]), ints(2)),
]
