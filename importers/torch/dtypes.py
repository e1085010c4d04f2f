"""Element types as torch names them."""

from __future__ import annotations

import onnx_ir as ir

_D = ir.DataType

NAMES: dict[ir.DataType, str] = {
    _D.FLOAT: "torch.float32",
    _D.DOUBLE: "torch.float64",
    _D.FLOAT16: "torch.float16",
    _D.BFLOAT16: "torch.bfloat16",
    _D.INT64: "torch.int64",
    _D.INT32: "torch.int32",
    _D.INT16: "torch.int16",
    _D.INT8: "torch.int8",
    _D.UINT8: "torch.uint8",
    _D.BOOL: "torch.bool",
    _D.COMPLEX64: "torch.complex64",
    _D.COMPLEX128: "torch.complex128",
    _D.UINT16: "torch.uint16",
    _D.UINT32: "torch.uint32",
    _D.UINT64: "torch.uint64",
    _D.FLOAT8E4M3FN: "torch.float8_e4m3fn",
    _D.FLOAT8E4M3FNUZ: "torch.float8_e4m3fnuz",
    _D.FLOAT8E5M2: "torch.float8_e5m2",
    _D.FLOAT8E5M2FNUZ: "torch.float8_e5m2fnuz",
    _D.FLOAT8E8M0: "torch.float8_e8m0fnu",
}

FLOATS = frozenset({_D.FLOAT, _D.DOUBLE, _D.FLOAT16, _D.BFLOAT16})
WHOLE = frozenset({_D.INT64, _D.INT32, _D.INT16, _D.INT8, _D.UINT8})
COMPUTED = FLOATS | WHOLE | {_D.BOOL}
"""What torch computes with, and not only stores."""
