"""Convolutions: only their element types changed.

ConvTranspose 11 reworded how SAME padding is split; runtimes never read it otherwise, so nothing changes.
"""

from __future__ import annotations

from entrepot.ir.opset.bodies import expanded
from entrepot.ir.opset.rules import impossible, unchanged

unchanged("Conv", 1, 11, 22)
unchanged("ConvTranspose", 1, 11, 22)
unchanged("DeformConv", 19, 22)
impossible("DeformConv", 19, 0, "no deformable convolution existed before opset 19")
impossible("Col2Im", 18, 0, "no operator summed overlapping blocks before opset 18")
expanded("CausalConvWithState", 27)
