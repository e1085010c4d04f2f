"""Sums, products, extremes and scans."""

from __future__ import annotations

import numpy as np

from tests.export_cases.raw_ops.case import add, ints, normal, whole

TYPES = ["float32", "float64", "float16", "int32", "int64", "int8", "uint8", "int16", "uint16", "uint32", "uint64"]
x = normal(3, 4, 5)
for op in ["Sum", "Prod", "Max", "Min", "Mean", "All", "Any", "EuclideanNorm"]:
    k = "reduction_indices"
    for t in TYPES if op not in ("All", "Any") else ["bool"]:
        v = (whole(0, 5, (3, 4, 5)) if t != "float32" else x).astype(t)
        for ax in ([1], [0, -1], [], [0, 1, 2]):
            for kd in (True, False):
                add(op, {"keep_dims": kd}, "axis", input=v, axis=ints(ax) if ax else np.zeros(0, np.int32))
# onnxruntime (1.31) passes over NaNs in extremes and takes the mean of nothing for 0, so neither is here
add("Max", {}, "axis", input=np.zeros((0, 3), "float32"), axis=ints(0))
add("Sum", {}, "axis", input=np.zeros((0, 3), "float32"), axis=ints(0))
add("All", {}, "axis", input=np.zeros((0, 3), bool), axis=ints(0))
add("Sum", {}, "", input=x, axis=ints(1))
for op in ("ArgMax", "ArgMin"):
    for t in [*TYPES, "bool"]:
        add(
            op,
            {"output_type": "int32"},
            "dimension",
            input=whole(0, 2 if t == "bool" else 9, (3, 4), dtype=t),
            dimension=np.int32(-1),
        )
for op in ("Cumsum", "Cumprod", "CumulativeLogsumexp"):
    for t in ["float32", "float64", "float16"] + (
        ["int32", "int64", "int8", "uint8"] if op != "CumulativeLogsumexp" else []
    ):
        for e in (True, False):
            for rv in (True, False):
                add(
                    op,
                    {"exclusive": e, "reverse": rv},
                    "axis",
                    tolerance=2e-3 if t == "float16" else 1e-5,
                    x=(whole(1, 4, (3, 5))).astype(t),
                    axis=np.int32(1),
                )
add("L2Loss", t=x)
