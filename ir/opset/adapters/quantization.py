"""TODO quantization."""

from __future__ import annotations

from entrepot.ir.opset.rules import extended, unchanged

extended("DequantizeLinear", 10, 13)
extended("DequantizeLinear", 19, 21)
extended("DequantizeLinear", 21, 23)
extended("QuantizeLinear", 10, 13)
extended("QuantizeLinear", 13, 19)
extended("QuantizeLinear", 19, 21)
extended("QuantizeLinear", 21, 23)
unchanged("DequantizeLinear", 13, 19)
unchanged("DequantizeLinear", 23, 24, 25, 28)
unchanged("QLinearMatMul", 10, 21)
unchanged("QuantizeLinear", 23, 24, 25, 28)
