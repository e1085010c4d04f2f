"""Activations, losses, products of matrices."""

from __future__ import annotations

import numpy as np

from tests.export_cases.raw_ops.case import add, ints, normal, whole

x = normal(3, 4, 5)
E = np.array(
    [0.0, -0.0, 1e-8, 0.3, -0.3, 1.0, -1.0, 6.0, 7.0, 20.0, -20.0, 100.0, -100.0, 1e4, -1e4, np.inf, -np.inf, np.nan],
    "float32",
)
for op in ["Relu", "Relu6", "Elu", "Selu", "LeakyRelu", "Softplus", "Softsign"]:
    for t in ("float32", "float64", "float16") + (
        ("int32", "int64", "int8", "uint8") if op in ("Relu", "Relu6") else ()
    ):
        add(op, features=(E if t[0] == "f" else np.array([0, 1, -1, 6, 9, 100])).astype(t))
for op in ["Softmax", "LogSoftmax"]:
    add(op, logits=normal(3, 5))
    add(op, logits=normal(2, 3, 5).astype("float64"))
    add(op, logits=np.array([[1e4, -1e4, 0]], "f4"))
for op in ["Relu", "Relu6", "LeakyRelu", "Elu", "Selu", "Softplus", "Softsign"]:
    add(op + "Grad", gradients=normal(18), **{"outputs" if op in ("Elu", "Selu") else "features": E})
for op in ["Sigmoid", "Tanh", "Sqrt", "Rsqrt", "Inv", "Reciprocal"]:
    add(op + "Grad", y=normal(9), dy=normal(9))
add("SoftmaxCrossEntropyWithLogits", tolerance=1e-5, features=normal(3, 5), labels=abs(normal(3, 5)))
add(
    "SoftmaxCrossEntropyWithLogits",
    tolerance=1e-5,
    features=normal(3, 5).astype("float64"),
    labels=abs(normal(1, 5)).astype("float64"),
)
add("SparseSoftmaxCrossEntropyWithLogits", tolerance=1e-5, features=normal(3, 5), labels=ints(0, 4, 2))
for t in ("float32", "float64", "int32", "int64", "uint8"):
    add(
        "MatMul", {"transpose_a": True}, tolerance=1e-5, a=whole(0, 9, (4, 3), dtype=t), b=whole(0, 9, (4, 5), dtype=t)
    ) if t != "uint8" else add(
        "BatchMatMulV3", {"Tout": "int32"}, x=whole(0, 9, (2, 4, 3), dtype=t), y=whole(0, 9, (2, 3, 5), dtype=t)
    )
add("BatchMatMulV2", {"adj_y": True}, tolerance=1e-5, x=normal(2, 1, 3, 4), y=normal(3, 5, 4))
add("Einsum", {"equation": "bij,bjk->ik"}, tolerance=1e-4, inputs=[normal(2, 3, 4), normal(2, 4, 5)])
add("Einsum", {"equation": "...ij,jk->...ik"}, tolerance=1e-4, inputs=[normal(2, 3, 4), normal(4, 5)])
add("Einsum", {"equation": "ii->i"}, inputs=[normal(3, 3)])
add("Cross", a=normal(2, 3), b=normal(2, 3))
add("Cross", a=whole(0, 5, (2, 3), dtype="int16"), b=whole(0, 5, (2, 3), dtype="int16"))
for op in ("Equal", "Greater", "Less"):
    add(op, x=normal(3), y=normal(3))
add("Select", condition=np.array([True, False, True]), t=x, e=-x)
add("SelectV2", condition=np.array([True, False, True, True, False]), t=x, e=np.float32(0))
add("SelectV2", condition=x > 0, t=x > 1, e=x < 3)
add("ApproximateEqual", {"tolerance": 0.5}, x=normal(9), y=normal(9))
add("AddN", inputs=[x, x, x])
add("ClipByValue", t=x, clip_value_min=np.float32(-0.5), clip_value_max=np.float32(0.5))
add("OnesLike", x=x.astype("int8"))
add("ZerosLike", x=x > 0)
add("LogicalAnd", x=x > 0, y=x < 1)
