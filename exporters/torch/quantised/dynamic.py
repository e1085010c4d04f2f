"""Activations that are quantised by their own range."""

from __future__ import annotations

import torch

from entrepot.exporters.torch.translations.quantisation import dequantise, quantise

_SMALLEST = 6.1e-5
"""torch makes no step smaller than this (``SMALL_SCALE_THRESHOLD``)."""

_NO_STEP = 0.1
"""Its step where everything is zero."""


def rounded_by_range(x: torch.Tensor, *, reduced: bool) -> torch.Tensor:
    """``x`` rounded to the steps between its least and largest element, 255 of them or 127; zero is one.

    As torch chooses them (``ChooseQuantizationParams``): in double precision, of which the step is then rounded. It
    multiplies by the reciprocal of the step, which is not always the quotient.
    """
    steps = 127.0 if reduced else 255.0
    low = x.amin().clamp(max=0.0).to(torch.float64)
    high = x.amax().clamp(min=0.0).to(torch.float64)
    step = (high - low) / steps
    offset = torch.round(-low / torch.where(step == 0, 1.0, step)).clamp(0.0, steps).to(torch.uint8)
    scale = torch.where(step.to(torch.float32) == 0, _NO_STEP, step.clamp(min=_SMALLEST)).to(torch.float32)
    return dequantise(quantise(x * (1.0 / scale), 1.0, offset, torch.uint8), scale, offset)
