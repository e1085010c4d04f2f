"""Fourier transforms, whose numbers ONNX keeps as pairs along the last axis."""

from __future__ import annotations

import onnx_ir as ir

from entrepot.importers.torch.op import Op
from entrepot.importers.torch.table import word

_COMPUTED = (ir.DataType.FLOAT, ir.DataType.DOUBLE)


@word("DFT")
def dft(op: Op) -> str | None:
    """``torch.fft``, along an axis that is known."""
    shape, axes = op.shape(0), op.ints(2) if op.has(2) else [-2]
    if op.made not in _COMPUTED or not shape or shape[-1] not in (1, 2) or axes is None:
        return None
    axis, is_real = axes[0] % len(shape) if axes[0] >= -len(shape) else len(shape), shape[-1] == 1
    inverse, onesided = bool(op.attribute("inverse")), bool(op.attribute("onesided"))
    if axis >= len(shape) - 1 or (onesided and not inverse and not is_real):
        return None
    length = op.one(1) if op.has(1) else None
    given = f"{op[0]}[..., 0]" if is_real else f"torch.complex({op[0]}[..., 0], {op[0]}[..., 1])"
    rest = ", ".join([given, *([] if length is None else [length]), f"dim={axis}"])
    if inverse and onesided:
        return f"torch.fft.irfft({rest}).unsqueeze(-1)"
    name = "ifft" if inverse else "rfft" if onesided else "fft"
    return f"torch.view_as_real(torch.fft.{name}({rest}))"
