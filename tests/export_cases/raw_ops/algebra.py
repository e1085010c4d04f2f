"""Linear algebra, quantisation and sparse tensors."""

from __future__ import annotations

import numpy as np

from tests.export_cases.raw_ops.case import add, ints, normal


def spd(*s):
    a = normal(*s, dtype=np.float64)
    return a @ np.swapaxes(a, -1, -2) + np.eye(s[-1]) * 2


for t in ("float32", "float64"):
    tl = 1e-3 if t == "float32" else 1e-8
    add("Cholesky", tolerance=tl, input=spd(2, 4, 4).astype(t))
    for adj in (False, True):
        add("MatrixInverse", {"adjoint": adj}, tolerance=tl, input=normal(*(2, 4, 4)).astype(t))
        add(
            "MatrixSolve",
            {"adjoint": adj},
            tolerance=tl,
            matrix=normal(*(2, 4, 4)).astype(t),
            rhs=normal(*(2, 4, 3)).astype(t),
        )
        for lo in (True, False):
            add(
                "MatrixTriangularSolve",
                {"adjoint": adj, "lower": lo},
                tolerance=tl * 10,
                matrix=spd(2, 4, 4).astype(t),
                rhs=normal(*(2, 4, 3)).astype(t),
            )
    add("MatrixTriangularSolve", tolerance=tl, matrix=spd(4, 4).astype(t), rhs=normal(*(2, 4, 3)).astype(t))
    add("MatrixDeterminant", tolerance=tl, input=normal(*(3, 4, 4)).astype(t))
    add("LogMatrixDeterminant", tolerance=tl, input=normal(*(3, 4, 4)).astype(t))
    add("Lu", tolerance=tl, input=normal(*(2, 4, 4)).astype(t))
    for fm in (True, False):
        add("Qr", {"full_matrices": fm}, tolerance=tl * 10, input=normal(*(2, 5, 3)).astype(t))
        add("Qr", {"full_matrices": fm}, tolerance=tl * 10, input=normal(*(3, 5)).astype(t))
    add("SelfAdjointEigV2", {"compute_v": False}, results=1, tolerance=tl, input=spd(2, 4, 4).astype(t))
    add("Svd", {"compute_uv": False}, results=1, tolerance=tl, input=normal(*(2, 5, 3)).astype(t))
    add("Svd", {"compute_uv": False}, results=1, tolerance=tl, input=normal(*(3, 4)).astype(t))
    add("MatrixExponential", tolerance=tl, input=normal(*(2, 4, 4)).astype(t))
add("SelfAdjointEigV2", results=1, tolerance=1e-2, input=spd(3, 3).astype("f4"))
add("Svd", results=1, tolerance=1e-2, input=normal(4, 3))
add("Svd", {"full_matrices": True}, results=1, tolerance=1e-2, input=normal(4, 3))
add(
    "TridiagonalMatMul",
    tolerance=1e-4,
    superdiag=normal(2, 1, 4),
    maindiag=normal(2, 1, 4),
    subdiag=normal(2, 1, 4),
    rhs=normal(2, 4, 3),
)
for nb in (8, 4):
    for nr in (False, True):
        add(
            "FakeQuantWithMinMaxArgs",
            {"min": -1.0, "max": 2.0, "num_bits": nb, "narrow_range": nr},
            tolerance=1e-5,
            inputs=normal(20),
        )
        add(
            "FakeQuantWithMinMaxVars",
            {"num_bits": nb, "narrow_range": nr},
            tolerance=1e-5,
            inputs=normal(20),
            min=np.float32(0.2),
            max=np.float32(1.5),
        )
        add(
            "FakeQuantWithMinMaxVarsPerChannel",
            {"num_bits": nb, "narrow_range": nr},
            tolerance=1e-5,
            inputs=normal(4, 3),
            min=np.array([-1, -0.5, 0], "f4"),
            max=np.array([1, 0.7, 2], "f4"),
        )
for si in (True, False):
    for rm in ("HALF_TO_EVEN", "HALF_UP"):
        for rg in (True, False):
            add(
                "QuantizeAndDequantizeV2",
                {"signed_input": si, "range_given": rg, "round_mode": rm},
                tolerance=1e-5,
                input=normal(20),
                input_min=np.float32(-1 if si else 0),
                input_max=np.float32(1.2),
            )
            add(
                "QuantizeAndDequantizeV4",
                {"signed_input": si, "range_given": rg, "round_mode": rm},
                tolerance=1e-5,
                input=normal(20),
                input_min=np.float32(-1),
                input_max=np.float32(1.2),
            )
            add(
                "QuantizeAndDequantizeV3",
                {"signed_input": si, "range_given": rg},
                "num_bits",
                tolerance=1e-5,
                input=normal(20),
                input_min=np.float32(-1),
                input_max=np.float32(1.2),
                num_bits=np.int32(6),
            )
add(
    "QuantizeAndDequantizeV4",
    {"axis": 1},
    tolerance=1e-5,
    input=normal(4, 3),
    input_min=np.array([-1, -0.5, -2], "f4"),
    input_max=np.array([1, 0.7, 2], "f4"),
)
add(
    "SparseToDense",
    sparse_indices=ints([[0, 1], [2, 0]]),
    output_shape=ints(3, 4),
    sparse_values=normal(2),
    default_value=np.float32(7),
)
add(
    "SparseToDense",
    sparse_indices=ints(0, 2),
    output_shape=ints(3),
    sparse_values=np.float32(1),
    default_value=np.float32(0),
)
PLACES = np.array([[0, 1], [1, 2], [2, 0], [2, 3]], np.int64)
SH = np.array([4, 4], np.int64)
for aa in (False, True):
    for ab in (False, True):
        add(
            "SparseTensorDenseMatMul",
            {"adjoint_a": aa, "adjoint_b": ab},
            tolerance=1e-5,
            a_indices=PLACES,
            a_values=normal(4),
            a_shape=SH,
            b=normal(4, 4),
        )
add("SparseTensorDenseAdd", a_indices=PLACES, a_values=normal(4), a_shape=SH, b=normal(4, 4))
add("SparseReshape", input_indices=PLACES, input_shape=SH, new_shape=np.array([2, -1, 2], np.int64))
add("SparseReorder", input_indices=PLACES[[2, 0, 3, 1]], input_values=normal(4), input_shape=SH)
for o in ["Add", "Mul", "Div"]:
    add("SparseDenseCwise" + o, sp_indices=PLACES, sp_values=normal(4), sp_shape=SH, dense=normal(4, 4))
    add("SparseDenseCwise" + o, sp_indices=PLACES, sp_values=normal(4), sp_shape=SH, dense=normal(4))
add(
    "SparseReduceSum",
    known="reduction_axes",
    input_indices=PLACES,
    input_values=normal(4),
    input_shape=SH,
    reduction_axes=ints(1),
)
add("SparseFillEmptyRows", indices=PLACES[[0, 2, 3]], values=normal(3), dense_shape=SH, default_value=np.float32(9))
