from __future__ import annotations

import numpy as np

from tests.op_cases.case import Case, bf16, f16, f32, f64, i8, i32, ints, u8

SAME = ("SAME_UPPER", "SAME_LOWER", "VALID")


def scalar(value: float, dtype: type = np.float32) -> np.ndarray:
    return np.array(value, dtype)


def small(*shape: int, signed: bool = False) -> object:
    return i8(*shape, low=-128, high=127) if signed else u8(*shape, high=255)


CONV = [
    Case("Conv", f32(2, 3, 7), f32(4, 3, 3)),
    Case("Conv", f32(2, 3, 7, 8), f32(4, 3, 3, 2), f32(4)),
    Case("Conv", f32(1, 2, 5, 6, 4), f32(3, 2, 2, 3, 2), f32(3)),
    Case("Conv", f64(2, 3, 7, 8), f64(4, 3, 3, 3), f64(4), pads=[1, 1, 1, 1]),
    *(Case("Conv", make(1, 3, 6, 6), make(2, 3, 3, 3), make(2)) for make in (f16, bf16)),
    Case("Conv", f32(2, 3, 6, 6), f32(4, 3, 1, 1), f32(4)),
    Case("Conv", f32(2, 3, 7, 7), f32(4, 3, 1, 1), f32(4), strides=[2, 2]),
    Case("Conv", f32(1, 3, 9, 8), f32(4, 3, 3, 3), pads=[0, 1, 2, 3], strides=[2, 1]),
    Case("Conv", f32(1, 3, 9, 9), f32(4, 3, 3, 3), dilations=[2, 3], kernel_shape=[3, 3]),
    Case("Conv", f32(2, 4, 6, 6), f32(6, 2, 3, 3), f32(6), group=2, pads=[1, 1, 1, 1]),
    Case("Conv", f32(1, 4, 6, 6), f32(4, 1, 3, 3), f32(4), group=4, pads=[1, 1, 1, 1]),
    Case("Conv", f32(1, 4, 7, 7), f32(8, 1, 3, 3), group=4, strides=[2, 2]),
    *(Case("Conv", f32(1, 2, 7, 8), f32(3, 2, 3, 4), auto_pad=how, strides=[2, 3]) for how in SAME),
    Case("Conv", f32(0, 3, 6, 6), f32(4, 3, 3, 3), f32(4)).giving(np.zeros((0, 4, 4, 4), np.float32)),
    Case("Conv", f32(1, 8, 40, 40), f32(8, 8, 3, 3), f32(8), pads=[1, 1, 1, 1]),
]
INTEGER = [
    Case("ConvInteger", small(1, 2, 5, 5), small(3, 2, 3, 3)),
    Case("ConvInteger", small(1, 2, 5, 5), small(3, 2, 3, 3), scalar(7, np.uint8), scalar(3, np.uint8)),
    Case("ConvInteger", small(1, 2, 5, 5), small(3, 2, 3, 3), scalar(7, np.uint8), pads=[1, 1, 1, 1], strides=[2, 2])
    .held_to("reference", why="onnxruntime pads before it subtracts the zero point"),
    Case("ConvInteger", small(1, 4, 5, 5), small(4, 2, 2, 2), group=2, dilations=[2, 1], kernel_shape=[2, 2]),
    Case("ConvInteger", small(1, 2, 5, 5), small(3, 2, 3, 3), auto_pad="SAME_LOWER"),
    Case("QLinearConv", small(1, 2, 5, 5), scalar(0.02), scalar(100, np.uint8), small(3, 2, 3, 3), scalar(0.03),
         scalar(120, np.uint8), scalar(0.5), scalar(128, np.uint8)),
    Case("QLinearConv", small(1, 2, 5, 5), scalar(0.02), scalar(100, np.uint8), small(3, 2, 3, 3), scalar(0.03),
         scalar(120, np.uint8), scalar(0.4), scalar(90, np.uint8), i32(3, low=-500, high=500), pads=[1, 1, 1, 1],
         strides=[2, 2]),
    Case("QLinearConv", small(1, 2, 5, 5, signed=True), scalar(0.02), scalar(5, np.int8),
         small(3, 2, 3, 3, signed=True), np.array([0.03, 0.01, 0.02], np.float32), np.zeros(3, np.int8), scalar(0.5),
         scalar(-4, np.int8)),
    Case("QLinearConv", small(1, 4, 5, 5), scalar(0.02), scalar(100, np.uint8), small(4, 2, 2, 2), scalar(0.03),
         scalar(120, np.uint8), scalar(0.5), scalar(128, np.uint8), group=2, dilations=[2, 2], kernel_shape=[2, 2],
         auto_pad="SAME_UPPER"),
]  # fmt: skip
TRANSPOSE = [
    Case("ConvTranspose", f32(2, 3, 5), f32(3, 4, 3)),
    Case("ConvTranspose", f32(2, 3, 4, 5), f32(3, 4, 3, 2), f32(4)),
    Case("ConvTranspose", f32(1, 2, 3, 4, 3), f32(2, 3, 2, 3, 2), f32(3)),
    Case("ConvTranspose", f64(1, 3, 4, 5), f64(3, 2, 2, 2), strides=[2, 2]),
    *(Case("ConvTranspose", make(1, 3, 4, 4), make(3, 2, 3, 3), make(2)) for make in (f16, bf16)),
    Case("ConvTranspose", f32(1, 3, 4, 5), f32(3, 2, 3, 3), pads=[1, 0, 2, 1], strides=[2, 3]),
    Case("ConvTranspose", f32(1, 3, 4, 5), f32(3, 2, 3, 3), strides=[2, 3], output_padding=[1, 2]),
    Case("ConvTranspose", f32(1, 3, 4, 5), f32(3, 2, 3, 3), dilations=[2, 2], kernel_shape=[3, 3]),
    Case("ConvTranspose", f32(1, 4, 4, 5), f32(4, 3, 3, 3), f32(6), group=2),
    Case("ConvTranspose", f32(1, 3, 4, 5), f32(3, 2, 3, 3), strides=[2, 2], output_shape=[9, 10]).held_to(
        "onnxruntime", why="onnx.reference crops the odd point from the other side"
    ),
    *(Case("ConvTranspose", f32(1, 2, 4, 5), f32(2, 3, 3, 4), auto_pad=how, strides=[2, 3]) for how in SAME),
    Case("ConvTranspose", f32(0, 3, 4, 4), f32(3, 2, 3, 3)).giving(np.zeros((0, 2, 6, 6), np.float32)),
]
DEFORM = [
    Case("DeformConv", f32(1, 2, 5, 5), f32(3, 2, 3, 3), f32(1, 18, 3, 3, low=-1, high=1)),
    Case("DeformConv", f32(2, 4, 5, 5), f32(6, 2, 2, 2), f32(2, 16, 5, 5, low=-1, high=1), f32(6), f32(2, 8, 5, 5),
         group=2, offset_group=2, pads=[1, 0, 0, 1], kernel_shape=[2, 2]),
    Case("DeformConv", f64(1, 2, 7, 7), f64(3, 2, 2, 2), f64(1, 8, 3, 3), f64(3), strides=[2, 2], dilations=[2, 2])
    .computed_in(np.float32, why="onnx.reference interpolates in float32"),
    *(Case("DeformConv", make(1, 2, 4, 4), make(2, 2, 2, 2), make(1, 8, 3, 3, low=-0.5, high=0.5))
      for make in (f16, bf16)),
    Case("DeformConv", f32(0, 2, 5, 5), f32(3, 2, 3, 3), f32(0, 18, 3, 3)).giving(np.zeros((0, 3, 3, 3), np.float32)),
]  # fmt: skip
COLUMNS = [
    Case("Col2Im", f32(1, 8, 12), ints(4, 5), ints(2, 2)),
    Case("Col2Im", f32(2, 8, 9), ints(5, 5), ints(2, 2), pads=[0, 1, 1, 0], strides=[2, 2]),
    Case("Col2Im", f32(1, 4, 9), ints(5, 5), ints(2, 2), dilations=[2, 2]),
    Case("Col2Im", f64(1, 16, 12), ints(3, 4, 3), ints(2, 2, 2)),
    *(Case("Col2Im", make(1, 4, 4), ints(3, 3), ints(2, 2)) for make in (f16, bf16, i32)),
]

CASES = [*CONV, *INTEGER, *TRANSPOSE, *DEFORM, *COLUMNS]
