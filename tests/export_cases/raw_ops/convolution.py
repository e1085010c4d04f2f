"""Convolutions, pooling and normalisation."""

from __future__ import annotations

import math

import numpy as np

from tests.export_cases.raw_ops.case import add, ints, normal, whole


def both(op, img, ker, **a):
    add(op, a, "filter", tolerance=1e-4, input=img, filter=ker)


for pad in ("SAME", "VALID"):
    for st in (1, 2, 3):
        for dl in (1, 2):
            both(
                "Conv2D",
                normal(2, 7, 8, 4),
                normal(3, 2, 4, 5),
                strides=[1, st, st, 1],
                padding=pad,
                dilations=[1, dl, dl, 1],
            )
            both(
                "Conv2D",
                normal(2, 7, 8, 4),
                normal(3, 2, 2, 6),
                strides=[1, st, 1, 1],
                padding=pad,
                dilations=[1, dl, dl, 1],
            )
            both(
                "DepthwiseConv2dNative",
                normal(2, 7, 8, 3),
                normal(3, 2, 3, 2),
                strides=[1, st, st, 1],
                padding=pad,
                dilations=[1, dl, dl, 1],
            )
        both("Conv3D", normal(1, 5, 6, 7, 2), normal(2, 3, 2, 2, 3), strides=[1, st, 1, st, 1], padding=pad)
both(
    "Conv2D",
    normal(2, 7, 8, 4),
    normal(3, 2, 4, 5),
    strides=[1, 1, 2, 1],
    padding="EXPLICIT",
    explicit_paddings=[0, 0, 1, 2, 0, 3, 0, 0],
)
for pad in ("SAME", "VALID"):
    for st in (1, 2, 3):
        for k in ((3, 2), (2, 2), (1, 4)):
            for n in ((7, 8), (9, 6)):
                o = [
                    math.ceil(s / st) if pad == "SAME" else math.ceil((s - kk + 1) / st)
                    for s, kk in zip(n, k, strict=False)
                ]
                for con in ("input_sizes filter", "filter"):
                    add(
                        "Conv2DBackpropInput",
                        {"strides": [1, st, st, 1], "padding": pad},
                        con,
                        tolerance=1e-4,
                        input_sizes=ints(2, *n, 4),
                        filter=normal(*k, 4, 5),
                        out_backprop=normal(2, *o, 5),
                    )
    add(
        "DepthwiseConv2dNativeBackpropInput",
        {"strides": [1, 2, 2, 1], "padding": pad},
        "input_sizes filter",
        tolerance=1e-4,
        input_sizes=ints(2, 7, 8, 3),
        filter=normal(3, 2, 3, 2),
        out_backprop=normal(2, *((4, 4) if pad == "SAME" else (3, 4)), 6),
    )
    add(
        "Conv3DBackpropInputV2",
        {"strides": [1, 2, 1, 2, 1], "padding": pad},
        "filter",
        tolerance=1e-4,
        input_sizes=ints(1, 5, 6, 7, 2),
        filter=normal(2, 3, 2, 2, 3),
        out_backprop=normal(1, *((3, 6, 4) if pad == "SAME" else (2, 4, 3)), 3),
    )
for pad in ("SAME", "VALID"):
    for k, st in ((2, 2), (3, 2), (3, 1), (2, 3)):
        add("MaxPool", {"ksize": [1, k, k, 1], "strides": [1, st, st, 1], "padding": pad}, input=normal(2, 7, 8, 3))
        add("AvgPool", {"ksize": [1, k, 2, 1], "strides": [1, st, st, 1], "padding": pad}, value=normal(2, 7, 8, 3))
        add(
            "MaxPool3D",
            {"ksize": [1, k, k, k, 1], "strides": [1, st, st, st, 1], "padding": pad},
            input=normal(2, 5, 6, 7, 3),
        )
        add(
            "AvgPool3D",
            {"ksize": [1, k, 2, 1, 1], "strides": [1, st, st, 1, 1], "padding": pad},
            input=normal(2, 5, 6, 7, 3),
        )
        add(
            "MaxPoolWithArgmax",
            {"ksize": [1, k, k, 1], "strides": [1, st, st, 1], "padding": pad, "include_batch_in_index": k == 2},
            input=normal(2, 7, 8, 3),
        )
        add(
            "ExtractImagePatches",
            {"ksizes": [1, k, 2, 1], "strides": [1, st, st, 1], "rates": [1, 1, 2, 1], "padding": pad},
            images=normal(2, 7, 8, 3),
        )
        add(
            "MaxPoolV2",
            {"padding": pad},
            "ksize strides",
            input=normal(2, 7, 8, 3),
            ksize=ints(1, k, k, 1),
            strides=ints(1, st, st, 1),
        )
    add(
        "ExtractVolumePatches",
        {"ksizes": [1, 2, 2, 3, 1], "strides": [1, 2, 1, 1, 1], "padding": pad},
        input=normal(1, 4, 5, 6, 2),
    )
    add(
        "Dilation2D",
        {"strides": [1, 1, 2, 1], "rates": [1, 2, 1, 1], "padding": pad},
        input=normal(2, 7, 8, 3),
        filter=normal(2, 3, 3),
    )
for t in ("int32", "int64", "uint8", "int8", "float64", "float16"):
    add(
        "MaxPool",
        {"ksize": [1, 2, 2, 1], "strides": [1, 2, 2, 1], "padding": "SAME"},
        input=whole(0, 99, (2, 5, 6, 3), dtype=t),
    )
add(
    "MaxPool",
    {
        "ksize": [1, 2, 2, 1],
        "strides": [1, 2, 2, 1],
        "padding": "EXPLICIT",
        "explicit_paddings": [0, 0, 1, 0, 0, 1, 0, 0],
    },
    input=normal(2, 7, 8, 3),
)
for v in ("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3"):
    for tr in (False, True):
        add(
            v,
            {"is_training": tr, "epsilon": 1e-3},
            results=3,
            tolerance=1e-3,
            x=normal(2, 4, 5, 3),
            scale=normal(3),
            offset=normal(3),
            mean=normal(3) if not tr else np.zeros(0, "f4"),
            variance=abs(normal(3)) if not tr else np.zeros(0, "f4"),
        )
add(
    "FusedBatchNormV3",
    {"is_training": False},
    results=3,
    tolerance=4e-3,
    x=normal(2, 4, 5, 3).astype("float16"),
    scale=normal(3),
    offset=normal(3),
    mean=normal(3),
    variance=abs(normal(3)),
)
add(
    "FusedBatchNormV3",
    {"is_training": False, "data_format": "NDHWC"},
    results=3,
    tolerance=4e-3,
    x=normal(2, 2, 4, 5, 3),
    scale=normal(3),
    offset=normal(3),
    mean=normal(3),
    variance=abs(normal(3)),
)
add("BiasAdd", value=normal(2, 3, 4), bias=normal(4))
add("BiasAdd", {"data_format": "NCHW"}, value=normal(2, 3, 4, 5), bias=normal(3))
add("LRN", {"depth_radius": 2, "bias": 1.5, "alpha": 0.3, "beta": 0.6}, tolerance=1e-5, input=normal(2, 3, 4, 7))
add(
    "BatchNormWithGlobalNormalization",
    {"variance_epsilon": 1e-3, "scale_after_normalization": True},
    tolerance=1e-5,
    t=normal(2, 3, 4, 5),
    m=normal(5),
    v=abs(normal(5)),
    beta=normal(5),
    gamma=normal(5),
)
