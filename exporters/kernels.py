"""Element types that onnxruntime (1.31) has operators for, where it lacks some, and which ones stand in for those."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir

Kind = ir.DataType

FLOATS = (Kind.FLOAT, Kind.DOUBLE)
HALVES = (Kind.FLOAT16, Kind.BFLOAT16)
_BASIC = {*FLOATS, Kind.FLOAT16, Kind.INT32, Kind.INT64}
_INTEGERS = {
    Kind.INT8, Kind.INT16, Kind.INT32, Kind.INT64, Kind.UINT8, Kind.UINT16, Kind.UINT32, Kind.UINT64,
}  # fmt: skip
_ALL = {*FLOATS, Kind.FLOAT16} | _INTEGERS
_SINGLE = {Kind.FLOAT, Kind.FLOAT16}
_REAL = {*FLOATS, Kind.FLOAT16}

KINDS: dict[str, set[ir.DataType]] = {  # of the first operand, of Where the second; of Scatter* those it adds up
    **dict.fromkeys(("Add", "Sub", "Mul", "Div", "Mod", "Abs", "Less", "Greater"), _ALL),
    **dict.fromkeys(("LessOrEqual", "GreaterOrEqual"), _ALL),
    "Equal": _ALL | {Kind.BOOL, Kind.STRING},
    "Neg": _ALL - {Kind.UINT8, Kind.UINT16, Kind.UINT32, Kind.UINT64},
    **dict.fromkeys(("Max", "Min", "Clip"), _ALL - {Kind.INT16, Kind.UINT16}),
    "Pad": (_ALL | {Kind.BOOL}) - {Kind.INT16, Kind.UINT16},
    "Where": {*_REAL, Kind.INT8, Kind.INT32, Kind.INT64, Kind.UINT8, Kind.UINT32, Kind.STRING},
    **dict.fromkeys(("Pow", "ReduceSum", "ReduceMean", "ReduceProd", "ReduceL2", "CumSum", "Einsum"), _BASIC),
    "MatMul": _BASIC | {Kind.UINT32, Kind.UINT64},
    **dict.fromkeys(("ReduceMax", "ReduceMin"), _BASIC | {Kind.INT8, Kind.UINT8, Kind.BOOL}),
    **dict.fromkeys(("TopK",), _BASIC | {Kind.INT8, Kind.INT16, Kind.UINT8}),
    **dict.fromkeys(("ArgMax", "ArgMin"), _BASIC | {Kind.INT8, Kind.UINT8}),
    "Range": {*FLOATS, Kind.INT16, Kind.INT32, Kind.INT64},
    "Relu": _REAL | {Kind.INT8, Kind.INT32},
    "Sign": _ALL | {Kind.BFLOAT16},
    "Trilu": _BASIC | {Kind.BOOL},
    "EyeLike": _BASIC,
    "Unique": {*_REAL, Kind.INT8, Kind.INT64, Kind.STRING},
    "NonZero": {Kind.FLOAT, Kind.INT32, Kind.INT64, Kind.UINT8, Kind.BOOL},
    "MaxPool": _REAL | {Kind.INT8, Kind.UINT8},
    **dict.fromkeys(("Tile", "Expand", "Compress", "ReverseSequence"), _ALL | {Kind.BOOL}),
    **dict.fromkeys(("Tan", "Sinh", "Cosh", "Erf"), _SINGLE),
    **dict.fromkeys(
        ("Exp", "Log", "Sqrt", "Sin", "Cos", "Floor", "Ceil", "Round", "Sigmoid", "Tanh", "Reciprocal", "Softmax"),
        _REAL,
    ),
    **dict.fromkeys(("LogSoftmax", "DFT", "BatchNormalization", "Sum", "IsInf", "IsNaN"), _REAL),
    **dict.fromkeys(("ScatterND", "ScatterElements"), _ALL - {Kind.FLOAT16}),
    **dict.fromkeys(("Conv", "ConvTranspose", "AveragePool", "LRN"), _REAL),
}
_WIDER = {
    Kind.BOOL: (Kind.UINT8, Kind.INT32, Kind.INT64),
    Kind.INT8: (Kind.INT16, Kind.INT32),
    Kind.UINT8: (Kind.INT32, Kind.INT64),
    Kind.INT16: (Kind.INT32, Kind.INT64),
    Kind.UINT16: (Kind.INT32, Kind.INT64),
    Kind.INT32: (Kind.INT64, Kind.DOUBLE),
    Kind.UINT32: (Kind.INT64,),
    Kind.UINT64: (Kind.INT64,),  # the same bits; right for all that does not compare or divide
    Kind.FLOAT16: (Kind.FLOAT,),
    Kind.BFLOAT16: (Kind.FLOAT,),
    Kind.FLOAT: (Kind.DOUBLE,),
}


def wider(kind: Any, kinds: set[ir.DataType] | None) -> Any:
    """The type itself, or the next wider one among ``kinds``."""
    if kinds is None or kind in kinds:
        return kind
    return next((each for each in _WIDER.get(kind, ()) if each in kinds), kind)
