"""What reduces or accumulates along an axis, or orders it."""

from __future__ import annotations

import numpy as np

from tests.ir.opset.down.case import UNARY, Down, M

CASES = {
    "last of equal maxima": Down(
        13,
        (11, 10),
        "y = ArgMax<axis = 1, select_last_index = 1>(x)",
        "float[N,4] x) => (int64[N,1] y",
        (np.array([[1, 3, 3, 0]], np.float32),),
    ),
    "smallest k": Down(
        11,
        (10,),
        "y, i = TopK<largest = 0>(x, k)",
        "float[3,4] x) => (float[3,2] y, int64[3,2] i",
        (M,),
        "int64[1] k = {2}",
    ),
    "reduce over nothing": Down(18, (17, 9), "y = ReduceSumSquare<noop_with_empty_axes = 1>(x)", UNARY, (M,)),
    "cumulative sum backwards": Down(
        14, (10, 7), "y = CumSum<reverse = 1, exclusive = 1>(x, a)", UNARY, (M,), "int64 a = {1}"
    ),
}
