"""Gradients of layers: filters, normalisation, rounding, segments."""

from __future__ import annotations

import itertools
import math

import numpy as np

from tests.export_cases.raw_ops.case import add, ints, normal, share, whole


def _out(sizes, kernel, stride, rate, padding):
    return [
        math.ceil(size / stride) if padding == "SAME" else (size - (width - 1) * rate - 1) // stride + 1
        for size, width in zip(sizes, kernel, strict=True)
    ]


for padding, (stride, rate) in itertools.product(("SAME", "VALID"), ((1, 1), (2, 1), (3, 1), (1, 2))):
    out = _out((7, 8), (3, 2), stride, rate, padding)
    how = {"strides": [1, stride, stride, 1], "padding": padding, "dilations": [1, rate, rate, 1]}
    add(
        "Conv2DBackpropFilter", how, "filter_sizes", tolerance=1e-4, closed="input",
        input=normal(2, 7, 8, 3), filter_sizes=ints(3, 2, 3, 4), out_backprop=normal(2, *out, 4),
    )  # fmt: skip
    if rate == 1:  # TensorFlow (2.21) leaves out the gaps in one of these, and has no kernel for the other
        add(
            "DepthwiseConv2dNativeBackpropFilter", how, "filter_sizes", tolerance=1e-4,
            input=normal(2, 7, 8, 3), filter_sizes=ints(3, 2, 3, 2), out_backprop=normal(2, *out, 6),
        )  # fmt: skip
        out = _out((5, 6, 7), (2, 3, 2), stride, 1, padding)
        add(
            "Conv3DBackpropFilterV2", {"strides": [1, stride, stride, stride, 1], "padding": padding}, "filter_sizes",
            tolerance=1e-4, closed="input",
            input=normal(2, 5, 6, 7, 3), filter_sizes=ints(2, 3, 2, 3, 4), out_backprop=normal(2, *out, 4),
        )  # fmt: skip
for op, training, form in itertools.product(
    ("FusedBatchNormGrad", "FusedBatchNormGradV2", "FusedBatchNormGradV3"), (True, False), ("NHWC", "NCHW")
):
    shape = (2, 4, 5, 3) if form == "NHWC" else (2, 3, 4, 5)
    x = normal(*shape)
    axes = (0, 1, 2) if form == "NHWC" else (0, 2, 3)
    more = {"reserve_space_3": normal(0)} if op.endswith("V3") else {}
    add(
        op, {"is_training": training, "epsilon": 0.01, "data_format": form}, tolerance=1e-4, results=3,
        y_backprop=normal(*shape), x=x, scale=normal(3), reserve_space_1=x.mean(axes), reserve_space_2=x.var(axes),
        **more,
    )  # fmt: skip
for bits, narrow in itertools.product((4, 8), (False, True)):
    how = {"num_bits": bits, "narrow_range": narrow}
    values = {"gradients": normal(4, 5), "inputs": normal(4, 5) * 3}
    add("FakeQuantWithMinMaxArgsGradient", {"min": -2.1, "max": 3.3, **how}, **values)
    low, high = np.float32([-2.0, -0.3, 0.1, -4.0, 0.0]), np.float32([1.0, 2.3, 3.1, 0.5, 0.0])
    add("FakeQuantWithMinMaxVarsPerChannelGradient", how, tolerance=1e-5, **values, min=low, max=high)
    for at in range(5):
        add("FakeQuantWithMinMaxVarsGradient", how, tolerance=1e-5, **values, min=low[at], max=high[at])
add(
    "QuantizeAndDequantizeV4Grad",
    gradients=normal(4, 5),
    input=normal(4, 5),
    input_min=np.float32(-1),
    input_max=np.float32(0.5),
)
add(
    "QuantizeAndDequantizeV4Grad", {"axis": 1},
    gradients=normal(4, 3), input=normal(4, 3), input_min=-share(3), input_max=share(3),
)  # fmt: skip
for op in ("SparseSegmentSumGrad", "SparseSegmentMeanGrad", "SparseSegmentSqrtNGrad"):
    for kind in (np.float32, np.float64):
        add(
            op, tolerance=1e-5, grad=normal(4, 3, dtype=kind), indices=whole(0, 7, 6),
            segment_ids=ints(0, 0, 1, 3, 3, 3), output_dim0=np.int32(7),
        )  # fmt: skip
for op in ("SparseSegmentSumGradV2", "SparseSegmentMeanGradV2", "SparseSegmentSqrtNGradV2"):
    add(
        op, tolerance=1e-5, grad=normal(3, 4), indices=ints(5, 1, 5, 0, 2, 1), segment_ids=ints(0, 0, 0, 1, 2, 2),
        dense_output_dim0=np.int32(7),
    )  # fmt: skip
