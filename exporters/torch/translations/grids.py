"""Sampling volumes at points of a grid, which ONNX has since opset 20 and torch.onnx (2.13) does not translate."""

from __future__ import annotations

from typing import Any

import torch
from onnxscript import opset20

op: Any = opset20
_MODES = ("linear", "nearest", "cubic")
_PADDINGS = ("zeros", "border", "reflection")


def translate_grid_sampler_3d(
    input: Any, grid: Any, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> Any:
    """``input`` is [batch, channels, depth, height, width]; points have their coordinates from width to depth."""
    how = {"mode": _MODES[interpolation_mode], "padding_mode": _PADDINGS[padding_mode]}
    return op.GridSample(input, grid, align_corners=int(align_corners), **how)


TRANSLATIONS = {torch.ops.aten.grid_sampler_3d.default: translate_grid_sampler_3d}
