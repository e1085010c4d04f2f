"""Shapes, and tensors in other shapes."""

from __future__ import annotations

import numpy as np

from tests.export_cases.raw_ops.case import add, ints, normal

x = normal(3, 4, 5)
for op in ("Shape", "Size", "Rank"):
    add(op, input=x)
add("ShapeN", input=[x, normal(2, 3)])
add("Reshape", known="shape", tensor=x, shape=ints(4, -1))
add("Reshape", tensor=x, shape=ints(4, 15))
add("Reshape", known="shape", tensor=np.zeros((0, 3), "f4"), shape=ints(0, 5))
add("ExpandDims", known="axis", input=x, axis=np.int32(-1))
add("Squeeze", {"axis": [1, -1]}, input=normal(2, 1, 3, 1))
add("Squeeze", input=normal(2, 1, 3, 1))
add("Transpose", known="perm", x=x, perm=ints(2, 0, 1))
add("BroadcastTo", known="shape", input=normal(1, 4), shape=ints(3, 2, 4))
add("BroadcastTo", input=normal(1, 4), shape=ints(3, 2, 4))
add("BroadcastArgs", s0=ints(2, 1, 4), s1=ints(3, 1))
add("BroadcastArgs", known="s1", s0=ints(2, 1, 4), s1=np.array([3, 1], np.int32))
add("Tile", known="multiples", input=x, multiples=ints(1, 2, 3))
add("Tile", input=x.astype("int8"), multiples=ints(1, 2, 3))
add("Fill", known="dims", dims=ints(2, 3), value=np.float32(2))
add("Fill", dims=ints(2, 3), value=np.bool_(True))
for t in ("float32", "float64", "int32", "int64", "float16"):
    add("Range", start=np.array(1, t), limit=np.array(7.5, t), delta=np.array(2, t))
    add("Range", start=np.array(7, t), limit=np.array(-2, t), delta=np.array(-2, t))
add("Range", start=np.float32(0), limit=np.float32(1), delta=np.float32(0.1))
add("LinSpace", start=np.float32(0), stop=np.float32(1), num=np.int32(7))
add("LinSpace", start=np.float32(3), stop=np.float32(1), num=np.int32(1))
add("LinSpace", start=np.float64(-3), stop=np.float64(1), num=np.int32(10))
add("DataFormatDimMap", x=ints(0, 1, -1, 3))
add("DataFormatVecPermute", x=ints(1, 2, 3, 4))
add("DataFormatVecPermute", x=ints(5, 6))
