from __future__ import annotations

from typing import Any

import numpy as np

from tests.op_cases.case import Case, bf16, f16, f32, f64, floats, i8, ints, u8

POOLS = ("MaxPool", "AveragePool", "LpPool")
GLOBAL = ("GlobalMaxPool", "GlobalAveragePool")
NAN = floats(1, np.nan, 3, 4, -np.inf, 6, 7, 8, np.inf).reshape(1, 1, 3, 3)

WINDOWS = [
    {"kernel_shape": [3, 2]},
    {"kernel_shape": [3, 3], "strides": [2, 3]},
    {"kernel_shape": [3, 3], "pads": [1, 0, 1, 2], "strides": [2, 2]},
    {"kernel_shape": [2, 2], "dilations": [2, 3]},
    {"kernel_shape": [3, 3], "strides": [2, 2], "ceil_mode": 1},
    *({"kernel_shape": [3, 2], "strides": [2, 2], "auto_pad": how} for how in ("SAME_UPPER", "SAME_LOWER", "VALID")),
]


def pooled(op: str, window: dict[str, object]) -> Case:
    case = Case(op, f32(2, 3, 7, 8), **window)
    if window.get("auto_pad") in ("SAME_UPPER", "SAME_LOWER"):
        return case.held_to("onnxruntime", why="onnx.reference rounds the output's size down")
    if op == "LpPool" and "ceil_mode" in window:
        return case.held_to("onnxruntime", why="onnx.reference scales windows that reach beyond the end")
    return case


def norms(*shape: int, p: int = 2, make: Any = f32) -> Case:
    """onnx.reference has no GlobalLpPool and onnxruntime none for this version."""
    case = Case("GlobalLpPool", make(*shape), **({} if p == 2 else {"p": p}))
    x = np.abs(case.inputs[0].astype(np.float64)) ** p
    y = x.sum(axis=tuple(range(2, len(shape))), keepdims=True) ** (1 / p)
    return case.giving(y.astype(case.inputs[0].dtype))


CASES = [
    *(pooled(op, window) for op in POOLS for window in WINDOWS),
    *(Case(op, f32(2, 3, 9), kernel_shape=[3], strides=[2]) for op in POOLS),
    *(Case(op, f32(2, 3, 4, 5), kernel_shape=[1, 1]) for op in POOLS),
    *(Case(op, f32(2, 3, 2, 5), kernel_shape=[3, 3], pads=[2, 2, 2, 2], strides=[3, 2]) for op in POOLS[:2]),
    *(Case(op, f32(1, 2, 5, 6, 4), kernel_shape=[2, 3, 2], pads=[1, 0, 0, 1, 1, 0]) for op in POOLS),
    *(Case(op, f64(1, 2, 5, 5), kernel_shape=[2, 2]) for op in POOLS),
    *(Case(op, make(1, 2, 5, 5), kernel_shape=[2, 2]) for op in POOLS for make in (f16, bf16)),
    *(Case("MaxPool", make(1, 2, 5, 5), kernel_shape=[2, 2], pads=[1, 1, 1, 1]) for make in (i8, u8)),
    Case("MaxPool", NAN, kernel_shape=[2, 2]).giving(
        floats(np.nan, np.nan, 8, np.inf).reshape(1, 1, 2, 2)
    ),
    Case("MaxPool", f32(2, 3, 7, 8), kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1]).outputs(2),
    Case("MaxPool", f32(2, 3, 7, 8), kernel_shape=[3, 3], storage_order=1, dilations=[2, 2]).outputs(2),
    Case("MaxPool", f32(2, 3, 9), kernel_shape=[2], strides=[2]).outputs(2),
    Case("MaxPool", np.ones((1, 1, 4, 4), np.float32), kernel_shape=[2, 2]).outputs(2),
    Case("AveragePool", f32(2, 3, 7, 8), kernel_shape=[3, 3], pads=[1, 1, 1, 1], count_include_pad=1),
    Case("AveragePool", f32(2, 3, 7, 1, 4), kernel_shape=[3, 3, 3], pads=[1, 1, 1, 1, 1, 1]),
    Case("AveragePool", f32(1, 1, 6, 6), kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1], ceil_mode=1,
         count_include_pad=1),
    Case("LpPool", f32(2, 3, 7, 8), kernel_shape=[3, 3], p=1),
    Case("LpPool", f32(2, 3, 7, 8), kernel_shape=[2, 2], p=3),
    *(Case(op, f32(0, 3, 6, 6), kernel_shape=[2, 2]).giving(np.zeros((0, 3, 5, 5), np.float32)) for op in POOLS),
    *(Case(op, make(2, 3, 4, 5)) for op in GLOBAL for make in (f32, f64)),
    *(Case(op, make(2, 3, 4, 5)) for op in GLOBAL for make in (f16, bf16)),
    *(
        Case(op, f32(*shape)).held_to("onnxruntime", why="onnx.reference reduces the wrong axes but for rank 4")
        for op in GLOBAL
        for shape in ((2, 3, 4), (1, 2, 3, 4, 2))
    ),
    *(norms(2, 3, 4, 5, make=make) for make in (f32, f64, f16, bf16)),
    norms(2, 3, 4),
    norms(1, 2, 3, 4, 2),
    norms(2, 3, 4, 5, p=3),
    Case("MaxUnpool", f32(1, 1, 2, 2), ints(5, 7, 13, 15).reshape(1, 1, 2, 2), kernel_shape=[2, 2], strides=[2, 2]),
    Case("MaxUnpool", f32(1, 1, 2, 2), ints(5, 7, 13, 15).reshape(1, 1, 2, 2), ints(1, 1, 5, 5), kernel_shape=[2, 2],
         strides=[2, 2]).held_to("reference", why="onnxruntime takes the indices in the larger shape"),
    Case("MaxUnpool", f32(1, 1, 2, 2), ints(0, 2, 4, 8).reshape(1, 1, 2, 2), kernel_shape=[3, 3], strides=[2, 2],
         pads=[1, 1, 1, 1]),
]  # fmt: skip
