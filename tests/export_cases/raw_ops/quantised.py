"""Integers that stand for numbers: between bounds, or with a scale and a zero point."""

from __future__ import annotations

import itertools

import numpy as np

from tests.export_cases.raw_ops.case import add, normal, whole

_EIGHT = {"a": "quint8", "b": "quint8"}
_BOUNDS = ((-1.0, 1.0, -2.0, 1.0), (0.0, 2.0, -1.3, 0.7))


def _f(*values):
    return tuple(np.float32(each) for each in values)


for low_a, high_a, low_b, high_b in itertools.starmap(_f, _BOUNDS):
    left, right = whole(0, 256, (3, 4), np.uint8), whole(0, 256, (4, 5), np.uint8)
    bounds = {"min_a": low_a, "max_a": high_a, "min_b": low_b, "max_b": high_b}
    add("QuantizedMatMul", tolerance=1e-6, steps=_EIGHT, a=left, b=right, **bounds)
    add(
        "QuantizedMatMul", {"transpose_a": True, "transpose_b": True}, tolerance=1e-6, steps=_EIGHT,
        a=left.T.copy(), b=right.T.copy(), **bounds,
    )  # fmt: skip
    add(
        "QuantizedMul", tolerance=1e-6, steps={"x": "quint8", "y": "quint8"}, x=left, y=whole(0, 256, (3, 4), np.uint8),
        min_x=low_a, max_x=high_a, min_y=low_b, max_y=high_b,
    )  # fmt: skip
    for padding, stride in itertools.product(("SAME", "VALID"), (1, 2)):
        add(
            "QuantizedConv2D", {"strides": [1, stride, stride, 1], "padding": padding}, tolerance=1e-6, closed="filter",
            steps={"input": "quint8", "filter": "quint8"}, input=whole(0, 256, (2, 5, 6, 3), np.uint8),
            filter=whole(0, 256, (3, 2, 3, 4), np.uint8), min_input=low_a, max_input=high_a, min_filter=low_b,
            max_filter=high_b,
        )  # fmt: skip
for low, high in itertools.starmap(_f, ((-1.0, 2.0), (-10.0, 12.0), (-0.3, 9.0))):
    features = {"features": whole(0, 256, (4, 5), np.uint8), "min_features": low, "max_features": high}
    for op in ("QuantizedRelu", "QuantizedRelu6"):
        add(op, {"out_type": "quint8"}, steps={"features": "quint8"}, **features)
    wide = whole(-(2**31), 2**31 - 1, (4, 5), np.int64).astype(np.int32)
    given = {"input": wide // 7, "input_min": low * 100, "input_max": -low * 100}
    add("RequantizationRange", tolerance=1e-6, steps={"input": "qint32"}, **given)
    add("QuantizeDownAndShrinkRange", {"out_type": "quint8"}, tolerance=1e-6, steps={"input": "qint32"}, **given)
    add(
        "Requantize", {"out_type": "quint8"}, steps={"input": "qint32"}, requested_output_min=low,
        requested_output_max=high, **given,
    )  # fmt: skip
    for mode, kind, rounding in itertools.product(
        ("MIN_COMBINED", "MIN_FIRST", "SCALED"), ("quint8", "qint8"), ("HALF_AWAY_FROM_ZERO", "HALF_TO_EVEN")
    ):
        # to even: only when scaled, and for signed integers oneDNN has a kernel of its own, with other steps
        if rounding == "HALF_AWAY_FROM_ZERO" or (mode, kind) == ("SCALED", "quint8"):
            add(
                "QuantizeV2", {"T": kind, "mode": mode, "round_mode": rounding}, tolerance=1e-6,
                input=normal(40) * 4, min_range=low, max_range=high,
            )  # fmt: skip
add(
    "QuantizedReshape", {}, "shape", steps={"tensor": "quint8"}, tensor=whole(0, 256, (3, 4), np.uint8),
    shape=np.int32([2, 6]), input_min=np.float32(-1), input_max=np.float32(1),
)  # fmt: skip
for padding in ("SAME", "VALID"):
    add(
        "QuantizedMaxPool", {"ksize": [1, 2, 2, 1], "strides": [1, 2, 2, 1], "padding": padding},
        steps={"input": "quint8"}, input=whole(0, 256, (2, 5, 6, 3), np.uint8), min_input=np.float32(-1),
        max_input=np.float32(2),
    )  # fmt: skip
_BYTE = {"quantization_min_val": -128, "quantization_max_val": 127}
_WORD = {"quantization_min_val": -(2**31), "quantization_max_val": 2**31 - 1}


def _ends(**sides):
    return {f"{side}_{name}": value for side, ends in sides.items() for name, value in ends.items()}


for scale, zero in ((0.02, 3), (0.013, -7)):
    one = {"scales": np.float32(scale), "zero_points": np.int32(zero)}
    each = {"scales": np.float32([scale, 0.1, 0.5, 0.07]), "zero_points": np.int32([zero, 0, 1, -2])}
    for given, axis in ((one, -1), (each, 1)):
        how = {"quantization_axis": axis}
        add("UniformQuantize", {**how, **_BYTE, "Tout": "qint8"}, input=normal(5, 4) * 2, **given)
        add(
            "UniformDequantize", {**how, **_BYTE, "Tout": "float32"}, steps={"input": "qint8"},
            input=whole(-128, 128, (5, 4), np.int8), **given,
        )  # fmt: skip
    add(
        "UniformQuantizedClipByValue", _WORD, steps=dict.fromkeys(("operand", "min", "max"), "qint32"),
        operand=whole(-5000, 5000, (5, 4)), min=np.int32(-100), max=np.int32(1000), **one,
    )  # fmt: skip
    old = {"input_scales": np.float32(scale), "input_zero_points": np.int32(zero)}
    for new in (0.5, 0.0113, 2.0):
        fresh = {"output_scales": np.float32(new), "output_zero_points": np.int32(2)}
        add(
            "UniformRequantize", {**_ends(input=_WORD, output=_BYTE), "Tout": "qint8"}, steps={"input": "qint32"},
            input=whole(-5000, 5000, (5, 4)), **old, **fresh,
        )  # fmt: skip
        sides = {
            "lhs_scales": np.float32(scale), "lhs_zero_points": np.int32(zero), "rhs_scales": np.float32(0.05),
            "rhs_zero_points": np.int32(1),
        }  # fmt: skip
        add(
            "UniformQuantizedAdd", _ends(lhs=_WORD, rhs=_WORD, output=_WORD), steps={"lhs": "qint32", "rhs": "qint32"},
            lhs=whole(-5000, 5000, (5, 4)), rhs=whole(-5000, 5000, (5, 4)), **sides, **fresh,
        )  # fmt: skip
        add(
            "UniformQuantizedDot", {**_ends(lhs=_BYTE, rhs=_BYTE, output=_WORD), "Tout": "qint32"},
            steps={"lhs": "qint8", "rhs": "qint8"}, lhs=whole(-128, 128, (5, 4), np.int8),
            rhs=whole(-128, 128, (4, 3), np.int8), **sides, **fresh,
        )  # fmt: skip
    add(
        "UniformQuantizedDotHybrid", {**_ends(rhs=_BYTE), "Tout": "float32"}, tolerance=1e-5, steps={"rhs": "qint8"},
        lhs=normal(5, 4), rhs=whole(-128, 128, (4, 3), np.int8), rhs_scales=np.float32(scale),
        rhs_zero_points=np.int32(zero),
    )  # fmt: skip
