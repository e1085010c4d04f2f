"""Complex numbers and Fourier transforms."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.export_cases.raw_ops.case import add, ints, normal


def pairs(*shape: int, dtype: Any = np.complex64) -> np.ndarray:
    return (normal(*shape) + 1j * normal(*shape)).astype(dtype)


for kind in (np.complex64, np.complex128):
    x, y = pairs(3, 4, dtype=kind), pairs(3, 4, dtype=kind)
    for op in ("Add", "AddV2", "Sub", "Mul", "RealDiv", "Div", "SquaredDifference", "Pow", "Equal", "NotEqual"):
        add(op, tolerance=2e-5, x=x, y=y[:1])
    for op in ("Neg", "Exp", "Log", "Square", "Reciprocal", "Sqrt", "OnesLike", "ZerosLike"):
        add(op, tolerance=2e-5, x=x)
    real = "float32" if kind == np.complex64 else "float64"
    for op in ("Real", "Imag", "Angle", "Conj", "ComplexAbs"):
        add(op, {} if op == "Conj" else {"Tout": real}, tolerance=2e-5, **{"x" if op == "ComplexAbs" else "input": x})
    add("Complex", {"Tout": np.dtype(kind).name}, real=normal(3, 4).astype(real), imag=normal(4).astype(real))
    for op in ("FFT", "FFT2D", "FFT3D", "IFFT", "IFFT2D", "IFFT3D"):
        add(op, tolerance=1e-4, input=pairs(2, 4, 8, 5, dtype=kind))
        add(op, tolerance=1e-3, input=pairs(3, 8, 16, dtype=kind))
    for size in ([8], [5], [6]):
        add(
            "RFFT",
            {"Tcomplex": np.dtype(kind).name},
            tolerance=1e-4,
            input=normal(3, 8).astype(real),
            fft_length=ints(size),
        )
        add("IRFFT", {"Treal": real}, tolerance=1e-4, input=pairs(3, 5, dtype=kind), fft_length=ints(size))
    add(
        "RFFT2D",
        {"Tcomplex": np.dtype(kind).name},
        tolerance=1e-4,
        input=normal(3, 6, 8).astype(real),
        fft_length=ints(4, 7),
    )
    add("IRFFT2D", {"Treal": real}, tolerance=1e-4, input=pairs(3, 6, 5, dtype=kind), fft_length=ints(4, 8))
    add(
        "RFFT",
        {"Tcomplex": np.dtype(kind).name},
        "fft_length",
        tolerance=1e-4,
        input=normal(2, 400).astype(real),
        fft_length=ints([300]),
    )
    add("MatMul", {"transpose_a": True}, tolerance=1e-4, a=pairs(4, 3, dtype=kind), b=pairs(4, 5, dtype=kind))
    add("BatchMatMulV2", {"adj_y": True}, tolerance=1e-4, x=pairs(2, 3, 4, dtype=kind), y=pairs(2, 5, 4, dtype=kind))
    add("Einsum", {"equation": "ij,jk->ik"}, tolerance=1e-4, inputs=[pairs(3, 4, dtype=kind), pairs(4, 5, dtype=kind)])

x = pairs(3, 4, 5)
add("Reshape", known="shape", tensor=x, shape=ints(4, -1))
add("Transpose", known="perm", x=x, perm=ints(2, 0, 1))
add("ConjugateTranspose", known="perm", x=x, perm=ints(2, 0, 1))
add("ConcatV2", known="axis", values=[x, x], axis=np.int32(-1))
add(
    "StridedSlice",
    {"shrink_axis_mask": 2},
    "begin end strides",
    input=x,
    begin=ints(0, 1),
    end=ints(2, 2),
    strides=ints(1, 1),
)
add("Pack", {"axis": 1}, values=[x, x])
add("Unpack", {"num": 4, "axis": 1}, value=x)
add("Sum", {"keep_dims": True}, "axis", input=x, axis=ints([1]))
add("Mean", {}, "axis", tolerance=1e-4, input=x, axis=ints([0, -1]))
add("GatherV2", known="axis", params=x, indices=ints(0, 2), axis=np.int32(2))
add("Pad", known="paddings", input=x, paddings=ints([[1, 0], [0, 2], [0, 0]]))
add("ReverseV2", known="axis", tensor=x, axis=ints([1]))
add("Roll", known="axis", input=x, shift=ints([2]), axis=ints([2]))
add("SelectV2", condition=np.array([True, False, True, True, False]), t=x, e=-x)
for op in ("Shape", "Size", "Rank"):
    add(op, input=x)
for source, target in (
    ("complex64", "float32"),
    ("float32", "complex64"),
    ("complex64", "complex128"),
    ("int32", "complex64"),
):
    add("Cast", {"DstT": target}, x=(x * 3).astype(source) if source[0] == "c" else np.arange(5).astype(source))
