"""Fourier transforms of pairs of reals: DFT along one axis after the other."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from entrepot.exporters.fourier import transformed
from entrepot.exporters.jax.step import Step, kind_of
from entrepot.exporters.jax.table import Pair, complex_rule


@complex_rule("fft")
def fft(step: Step, x: Any) -> Any:
    """FFT, its inverse, and both for results or arguments that are real."""
    kind = int(step.params["fft_type"])
    rank, count = len(step.ins[0].shape), len(step.params["fft_lengths"])
    axes = [*range(rank - count, rank)]
    if kind in (0, 1):
        return _split(step, _along(step, _joined(step, x), axes, inverse=kind == 1))
    if kind == 2:
        half = step.op("Unsqueeze", x, [-1])
        zero = step.op("Mul", half, 0.0)
        whole = _along(step, step.op("Concat", half, zero, axis=-1), axes[-1:], inverse=False)
        end = step.sizes.vector([step.outs[0].shape[-1]])
        cut = step.op("Slice", whole, [0], end, [rank - 1])
        return _split(step, _along(step, cut, axes[:-1], inverse=False))
    return _real(step, _joined(step, x), axes)


def _real(step: Step, pairs: ir.Value, axes: list[int]) -> ir.Value:
    """The inverse for what is the half of a spectrum: its other half are the conjugates, backwards."""
    rank, length = len(step.ins[0].shape), step.params["fft_lengths"][-1]
    pairs = _along(step, pairs, axes[:-1], inverse=True)
    first = step.op("Slice", pairs, [0], step.sizes.vector([length // 2 + 1]), [rank - 1])
    turn = step.build.constant(np.array([1, -1]), kind_of(step.dtype))
    ends = step.sizes.vector([(length + 1) // 2])
    middle = step.op("Slice", pairs, [1], ends, [rank - 1])
    mirrored = step.op("Mul", step.op("Slice", middle, [-1], [-(2**62)], [rank - 1], [-1]), turn)
    whole = _along(step, step.op("Concat", first, mirrored, axis=rank - 1), axes[-1:], inverse=True)
    return step.op("Gather", whole, np.array(0, np.int64), axis=-1)


def _along(step: Step, pairs: ir.Value, axes: list[int], *, inverse: bool) -> ir.Value:
    for axis in axes:
        pairs = transformed(step.build, pairs, axis, inverse=inverse)
    return pairs


def _joined(step: Step, x: Pair) -> ir.Value:
    result: ir.Value = step.op("Concat", *(step.op("Unsqueeze", part, [-1]) for part in x), axis=-1)
    return result


def _split(step: Step, pairs: ir.Value) -> Pair:
    return Pair(*(step.op("Gather", pairs, np.array(at, np.int64), axis=-1) for at in (0, 1)))
