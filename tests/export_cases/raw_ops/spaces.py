"""Padding, blocks of space, and diagonals."""

from __future__ import annotations

import numpy as np

from tests.export_cases.raw_ops.case import add, ints, normal

TYPES = ["float32", "float64", "float16", "int32", "int64", "int8", "uint8", "int16", "uint16", "uint32", "uint64"]
x = normal(3, 4, 5)
for p in (np.array([[1, 2], [0, 0], [2, 1]], np.int32),):
    for t in [*TYPES, "bool"]:
        if t != "bool":
            add("Pad", input=x.astype(t), paddings=p)
            add("PadV2", known="paddings", input=x.astype(t), paddings=p, constant_values=np.array(3, t))
    for m in ("REFLECT", "SYMMETRIC"):
        add("MirrorPad", {"mode": m}, input=x, paddings=p)
        add("MirrorPad", {"mode": m}, "paddings", input=x.astype("int32"), paddings=p)
add(
    "SpaceToBatchND",
    known="block_shape",
    input=normal(2, 5, 6, 3),
    block_shape=ints(2, 3),
    paddings=ints([[1, 0], [0, 0]]),
)
add("SpaceToBatch", {"block_size": 2}, input=normal(2, 4, 6, 3), paddings=ints([[1, 1], [0, 0]]))
add(
    "BatchToSpaceND",
    known="block_shape",
    input=normal(12, 3, 2, 3),
    block_shape=ints(2, 3),
    crops=ints([[1, 0], [0, 2]]),
)
add("BatchToSpace", {"block_size": 2}, input=normal(8, 3, 2, 3), crops=ints([[1, 0], [0, 2]]))
for fm in ("NHWC",):
    add("SpaceToDepth", {"block_size": 2, "data_format": fm}, input=normal(2, 4, 6, 3))
    add("DepthToSpace", {"block_size": 2, "data_format": fm}, input=normal(2, 4, 6, 8))
    add("DepthToSpace", {"block_size": 2, "data_format": fm}, input=normal(2, 4, 6, 8).astype("uint8"))
add("MatrixBandPart", input=x, num_lower=np.int32(1), num_upper=np.int32(-1))
add(
    "MatrixBandPart", known="num_lower num_upper", input=x.astype("int32"), num_lower=np.int32(0), num_upper=np.int32(1)
)
add("MatrixDiag", diagonal=normal(2, 3))
add("MatrixDiagPart", input=x)
add("MatrixSetDiag", input=x, diagonal=normal(3, 4))
add("Diag", diagonal=normal(2, 3))
add("DiagPart", input=normal(2, 3, 2, 3))
for al in ["LEFT_LEFT", "RIGHT_LEFT", "LEFT_RIGHT", "RIGHT_RIGHT"]:
    for k in ((0, 0), (-1, 2), (1, 3), (-2, -1), (2, 2)):
        add("MatrixDiagPartV3", {"align": al}, "k", input=x, k=ints(*k), padding_value=np.float32(9))
        n = k[1] - k[0] + 1
        L = min(4 + min(k[1], 0), 5 - max(k[0], 0))
        add(
            "MatrixSetDiagV3",
            {"align": al},
            "k",
            input=x,
            diagonal=normal(3, n, L) if n > 1 else normal(3, L),
            k=ints(*k),
        )
        add(
            "MatrixDiagV3",
            {"align": al},
            "k num_rows num_cols",
            diagonal=normal(3, n, L) if n > 1 else normal(3, L),
            k=ints(*k),
            num_rows=np.int32(4),
            num_cols=np.int32(5),
            padding_value=np.float32(7),
        )
        add(
            "MatrixDiagV3",
            {"align": al},
            "k num_rows num_cols",
            diagonal=normal(3, n, L) if n > 1 else normal(3, L),
            k=ints(*k),
            num_rows=np.int32(-1),
            num_cols=np.int32(-1),
            padding_value=np.float32(7),
        )
