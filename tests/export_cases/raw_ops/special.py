"""Integrals, sequences and gradients."""

from __future__ import annotations

import numpy as np

from tests.export_cases.raw_ops.case import add, ints, normal

SIZES = [0.0, 1e-8, 0.1, 0.5, 0.9, 1.0, 1.5, 1.7, 2.0, 3.0, 5.0, 7.0, 9.0, 12.0, 30.0, 45.0]
PLACES = np.array([*SIZES, *(-size for size in SIZES)])
for kind, tolerance in (("float32", 2e-5), ("float64", 1e-8)):
    for op in ("Dawsn", "FresnelCos", "FresnelSin", "Expint", "Spence"):
        add(op, tolerance=tolerance, x=PLACES.astype(kind))
    grid = np.meshgrid([0.3, 1.0, 2.5, 20.0, 300.0], [0.4, 1.0, 3.0, 50.0], [0.0, 1e-4, 0.2, 0.5, 0.9, 1.0])
    a, b, x = (each.ravel().astype(kind) for each in grid)
    add("Betainc", tolerance=max(tolerance, 1e-4 if kind == "float32" else 0.0), a=a, b=b, x=x)

for merge in (True, False):
    for blank in (-1, 0):
        attributes = {"merge_repeated": merge, "blank_index": blank}
        scores = np.round(normal(7, 3, 4))
        add("CTCGreedyDecoder", attributes, inputs=normal(7, 3, 4), sequence_length=ints(7, 4, 5))
        add("CTCGreedyDecoder", attributes, inputs=np.repeat(scores, 2, 0), sequence_length=ints(14, 9, 2))

for first, second in (
    ((2, 1, 3), (4, 3)),
    ((1,), (1,)),
    ((2, 3), (2, 3)),
    ((1, 3), (5, 1)),
    ((), (2, 1)),
    ((3,), (1, 3)),
    ((2, 1), (1, 1)),
):
    add("BroadcastGradientArgs", s0=np.array(first, np.int32), s1=np.array(second, np.int32))
add("BiasAddGrad", tolerance=1e-4, out_backprop=normal(2, 3, 4))
add("BiasAddGrad", {"data_format": "NCHW"}, tolerance=1e-4, out_backprop=normal(2, 3, 4, 5))
add(
    "StridedSliceGrad", {"shrink_axis_mask": 2}, "begin end strides shape", shape=ints(3, 4, 5), begin=ints(0, 1, 4),
    end=ints(2, 2, 0), strides=ints(1, 1, -2), dy=normal(2, 2),
)  # fmt: skip
