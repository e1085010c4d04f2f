"""TODO convolution."""

from __future__ import annotations

from entrepot.ir.opset.rules import extended, unchanged

extended("ConvTranspose", 1, 11)
unchanged("Conv", 1, 11, 22)
unchanged("ConvTranspose", 11, 22)
unchanged("DeformConv", 19, 22)
