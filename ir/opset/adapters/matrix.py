"""TODO matrix."""

from __future__ import annotations

from entrepot.ir.opset.rules import extended, unchanged

extended("Gemm", 9, 11)
unchanged("Einsum", 12, 28)
unchanged("Gemm", 1, 6)
unchanged("Gemm", 11, 13)
unchanged("Gemm", 7, 9)
unchanged("MatMul", 1, 9, 13)
