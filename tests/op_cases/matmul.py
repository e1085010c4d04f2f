from __future__ import annotations

import ml_dtypes
import numpy as np

from tests.op_cases.case import FLOATS, Case, f32, f64, floats, i8, i32, i64, u8, u32, u64


def scalar(value: float, dtype: type = np.float32) -> np.ndarray:
    return np.array(value, dtype)


INTEGERS = [Case(op, make(3, 4), make(4, 2)) for op in ("MatMul", "Gemm") for make in (i32, i64, u32, u64)]
SCALES = [scalar(0.02), scalar(3, np.uint8)]
LISTS = np.array([0.05], np.float32), np.array([3], np.uint8)

CASES = [
    *(Case("MatMul", make(3, 4), make(4, 2)) for make in FLOATS),
    Case("MatMul", f32(4), f32(4)),
    Case("MatMul", f32(4), f32(2, 4, 3)),
    Case("MatMul", f32(2, 3, 4), f32(4)),
    Case("MatMul", f32(2, 3, 4), f32(4, 5)),
    Case("MatMul", f32(2, 1, 3, 4), f32(5, 4, 2)),
    Case("MatMul", f32(0, 4), f32(4, 2)),
    Case("MatMul", f32(3, 0), f32(0, 2)),
    Case("MatMul", f32(2, 3, 0), f32(0, 4)),
    Case("MatMul", f32(0, 3, 0), f32(0, 4)),
    Case("MatMul", f32(0, 3, 4), f32(4, 5)),
    Case("MatMul", floats(np.nan, np.inf).reshape(1, 2), f32(2, 3)),
    *INTEGERS,
    *(Case("Gemm", make(3, 4), make(4, 2), make(2)) for make in FLOATS),
    Case("Gemm", f32(3, 4), f32(4, 2), alpha=0.5),
    Case("Gemm", f32(3, 4), f32(4, 2), f32(1, 2), beta=0.25),
    Case("Gemm", f32(3, 4), f32(4, 2), f32(3, 1), beta=0.0),
    Case("Gemm", f32(4, 3), f32(4, 2), f32(3, 2), transA=1),
    Case("Gemm", f32(3, 4), f32(2, 4), scalar(1.5), transB=1, alpha=2.0),
    Case("Gemm", f32(4, 3), f32(2, 4), transA=1, transB=1),
    Case("Gemm", f32(0, 4), f32(4, 2), f32(2)),
    Case("Gemm", i32(3, 4), i32(4, 2), i32(2), alpha=1.0, beta=1.0),
    *(Case("Einsum", make(3, 4), make(4, 5), equation="ij,jk->ik") for make in (*FLOATS, i32, u64)),
    Case("Einsum", f32(3, 4), equation="ij->ji"),
    Case("Einsum", f32(3, 3), equation="ii->i"),
    Case("Einsum", f32(3, 3), equation="ii"),
    Case("Einsum", f32(3, 4), equation="ij->"),
    Case("Einsum", f32(2, 3, 4), f32(2, 4, 5), equation="...ij,...jk->...ik"),
    Case("Einsum", f32(2, 3, 4), f32(2, 4, 5), equation="b i j , b j k"),
    Case("Einsum", f32(3), f32(4), equation="i,j->ij"),
    Case("Einsum", f32(2, 3), f32(3, 4), f32(4, 5), equation="ab,bc,cd->ad"),
    Case("Einsum", f32(0, 3), f32(3, 4), equation="ab,bc->ac"),
    Case("Einsum", f32(2, 3), f32(2, 3), equation="Ba,Ba->B"),
    Case("Einsum", f32(2, 3, 4, 5), f32(2, 3, 6, 5), equation="bhid,bhjd->bhij"),
    Case("Einsum", f32(2, 3, 4), f32(4, 3, 5), equation="abc,cbd->dab"),
    Case("Einsum", f32(2, 3), f32(4, 5), equation="ab,cd->ac"),
    Case("Einsum", f32(3), f32(3), equation="i,i"),
    Case("Einsum", f32(3, 3), f32(3), equation="ii,i->i"),
    Case("Einsum", f32(1, 3, 4), f32(2, 4, 5), equation="...ij,...jk"),
    Case("Einsum", f32(2, 0, 3), f32(2, 3, 4), equation="bij,bjk->bik"),
    Case("Einsum", f32(2, 3, 0), f32(2, 0, 4), equation="bij,bjk->bik"),
    Case("MatMulInteger", u8(3, 4, high=255), u8(4, 2, high=255)),
    Case("MatMulInteger", u8(3, 4, high=255), i8(4, 2, low=-128, high=127), scalar(12, np.uint8), scalar(-5, np.int8)),
    Case("MatMulInteger", u8(3, 4), u8(4, 2), None, np.array([1, 2], np.uint8)),
    Case("MatMulInteger", u8(3, 4), u8(4, 2), np.array([1, 2, 3], np.uint8), None).giving(None),
    Case("MatMulInteger", i8(2, 3, 4), i8(4, 2), scalar(1, np.int8)),
    Case("MatMulInteger", u8(0, 4), u8(4, 2)),
    Case("MatMulInteger", u8(4), u8(4, 2), np.array([3], np.uint8), np.array([2], np.uint8)),
    Case("MatMulInteger", u8(3, 4), u8(4), np.array([3], np.uint8), np.array([2], np.uint8)),
    Case("QLinearMatMul", u8(3, 4, high=255), *SCALES, u8(4, 2, high=255), *SCALES, *SCALES),
    Case("QLinearMatMul", i8(3, 4, low=-128, high=127), scalar(0.1), scalar(-3, np.int8), i8(4, 2, low=-128, high=127),
         scalar(0.05), scalar(4, np.int8), scalar(0.6), scalar(1, np.int8)),
    Case("QLinearMatMul", u8(2, 3, 4), *SCALES, u8(2, 4, 2), *SCALES, *SCALES),
    Case("QLinearMatMul", u8(0, 4), *SCALES, u8(4, 2), *SCALES, *SCALES),
    Case("QLinearMatMul", u8(4), *LISTS, u8(4, 2), *LISTS, *LISTS),
    Case("QLinearMatMul", u8(2, 4), *LISTS, u8(4), *LISTS, *LISTS),
    Case("Det", f32(3, 3)),
    Case("Det", f64(2, 4, 4)),
    Case("Det", f32(0, 3, 3)),
    *(
        Case("Det", np.array([[2, 1], [1, 3]], dtype)).giving(np.array(5, dtype))  # the oracles refuse or widen
        for dtype in (np.float16, ml_dtypes.bfloat16)
    ),
]  # fmt: skip
