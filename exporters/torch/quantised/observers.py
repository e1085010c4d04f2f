"""Fake quantisation: what a module computes that is trained to be quantised, with the ranges that it has."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch

from entrepot.exporters.torch.upstream import FakeQuantizeBase


@contextlib.contextmanager
def observers_off(root: torch.nn.Module) -> Iterator[None]:
    """Inside, no call changes a range: torch's fused kernel writes to buffers without counting that as a write."""
    watching = [part.observer_enabled for part in _fakes(root) if int(part.observer_enabled)]
    try:
        for flag in watching:
            flag.zero_()
        yield
    finally:
        for flag in watching:
            flag.fill_(1)


def observer_note(root: torch.nn.Module) -> str:
    """That observers would have changed ranges in the user's own calls."""
    watching = any(int(part.observer_enabled) for part in _fakes(root))
    return "observers were off: fake quantisation uses the ranges that it has" if watching else ""


def fake_quantised(part: Any, x: torch.Tensor, *, on: bool) -> torch.Tensor:
    """What a part of this kind returns, in steps and back; a scale for each channel if it has several."""
    from entrepot.exporters.torch.translations.quantisation import dequantize_range, quantize_range

    if not on:
        return x
    limits = part.activation_post_process
    low, high, axis = limits.quant_min, limits.quant_max, part.ch_axis if part.is_per_channel else 0
    kind = torch.int8 if low < 0 else torch.uint8
    steps = quantize_range(x, part.scale, part.zero_point, low, high, kind, axis)
    return dequantize_range(steps, part.scale, part.zero_point, axis)


def _fakes(root: torch.nn.Module) -> list[Any]:
    return [part for part in root.modules() if isinstance(part, FakeQuantizeBase)]
