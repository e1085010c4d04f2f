"""Fourier transforms and window functions.

DFT: 17 takes ``axis`` as an attribute (default 1); 20 as an input (default -2).
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from entrepot.ir.opset.bodies import expanded
from entrepot.ir.opset.builder import OpBuilder
from entrepot.ir.opset.rules import Replacement, adapter, impossible

for _name in ("BlackmanWindow", "HammingWindow", "HannWindow"):
    expanded(_name, 17)
for _name in ("DFT", "STFT", "MelWeightMatrix"):
    impossible(_name, 17, 0, "no signal processing existed before opset 17")


@adapter("DFT", 17, 20)
def dft_axis_to_input(op: OpBuilder, _node: ir.Node) -> Replacement:
    """Write the axis out: the default changed."""
    op.inputs(op.x(), op.input(1), op.const(np.int64(op.attr("axis", 1))))
    return op.drop("axis")


@adapter("DFT", 20, 17)
def dft_axis_to_attribute(op: OpBuilder, _node: ir.Node) -> Replacement:
    """Move a known axis to an attribute, counted from the front."""
    axis = -2 if op.input(2) is None else int(op.need_known(2, "axis").item())
    axis = axis if axis >= 0 else axis + op.need_rank(op.x())
    op.inputs(op.x(), op.input(1))
    return op.set(axis=axis)
