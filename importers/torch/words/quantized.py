"""Numbers on few steps, and what they stand for."""

from __future__ import annotations

import onnx_ir as ir

from entrepot.importers.torch.op import Op
from entrepot.importers.torch.table import word

_FLOAT = ir.DataType.FLOAT
_STEPS = (ir.DataType.UINT8, ir.DataType.INT8, ir.DataType.INT16)
"""Types that numbers are rounded to."""


@word("DequantizeLinear")
def dequantize_linear(op: Op) -> str | None:
    """``(x - zero) * scale``."""
    plain = not op.attribute("block_size") and op.attribute("output_dtype") in (0, int(_FLOAT))
    if not plain or op.dtype(0) not in (*_STEPS, ir.DataType.INT32) or op.dtype(1) != _FLOAT:
        return None
    scale, zero = _along(op, 1), _along(op, 2)
    if scale is None or zero is None:
        return None
    number = f"{op[0]}.to({op.dtype_text(_FLOAT)})"
    return f"{number if zero == '0' else f'({number} - {zero})'} * {scale}"


@word("QuantizeLinear")
def quantize_linear(op: Op) -> str | None:
    """``round(x / scale) + zero``, between the ends of its type: a function of the file."""
    plain = not op.attribute("block_size") and op.attribute("precision") in (0, int(_FLOAT))
    op.attribute("output_dtype")  # which the type of the result says
    if not plain or op.made not in _STEPS or op.dtype(0) != _FLOAT or op.dtype(1) != _FLOAT:
        return None
    scale, zero = _along(op, 1), _along(op, 2)
    if scale is None or zero is None:
        return None
    return f"{op.writer.helper('quantized')}({op[0]}, {scale}, {zero}, {op.dtype_text(op.made)})"


def _along(op: Op, position: int) -> str | None:
    """A scale or zero point as it is broadcast, a number or one for each place of an axis; ``None`` if that is open."""
    axis, rank, shape = op.attribute("axis"), op.rank(0), op.shape(position)
    if not op.has(position):
        return "0"
    number = op.number(position)
    if number is not None:
        return number
    if shape is None or rank is None:
        return None
    behind = rank - 1 - axis % max(rank, 1)
    if not shape or not behind or (shape == (1,) and rank):
        return op[position]
    return f"{op[position]}.reshape(-1{', 1' * behind})"
