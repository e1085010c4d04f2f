"""Activations, and what bounds or drops elements."""

from __future__ import annotations

import numpy as np

from tests.ir.opset.down.case import UNARY, Down, M, X, image

CASES = {
    "softmax along a middle axis": Down(13, (12, 9, 7), "y = Softmax<axis = 1>(x)", image(2, 3, 6, 6), (X,)),
    "log softmax along the first axis": Down(13, (11, 8), "y = LogSoftmax<axis = 0>(x)", UNARY, (M,)),
    "gelu": Down(20, (18, 15, 9), "y = Gelu(x)", UNARY, (M,)),
    "gelu by polynomial": Down(20, (8, 7), "y = Gelu(x)", UNARY, (M,)),
    "gelu by tanh": Down(20, (13, 7), 'y = Gelu<approximate = "tanh">(x)', UNARY, (M,)),
    "mish": Down(18, (17, 9, 7), "y = Mish(x)", UNARY, (M,)),
    "hard swish": Down(14, (13, 9, 7), "y = HardSwish(x)", UNARY, (M,)),
    "celu": Down(12, (11, 7), "y = Celu<alpha = 2.0>(x)", UNARY, (M,)),
    "shrink": Down(9, (8, 7), "y = Shrink<bias = 0.1, lambd = 0.3>(x)", UNARY, (M,)),
    "thresholded relu": Down(10, (9, 8), "y = ThresholdedRelu<alpha = 0.2>(x)", UNARY, (M,)),
    "relu of int32": Down(14, (13, 9), "y = Relu(x)", "int32[3] x) => (int32[3] y", (np.array([-1, 0, 2], np.int32),)),
    "clip of int64": Down(
        13, (11, 9), "y = Clip(x, l, h)", "int64[4] x) => (int64[4] y", (np.arange(4),), "int64 l = {1}, int64 h = {2}"
    ),
    "clip with computed bounds": Down(
        13, (10, 8), "y = Clip(x, l)", "float[3,4] x, float l) => (float[3,4] y", (M, np.array(0.1, np.float32))
    ),
    "dropout without training": Down(13, (11, 9), "y = Dropout(x, r)", UNARY, (M,), "float r = {0.4}"),
}
