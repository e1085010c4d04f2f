"""A Fourier transform of pairs along one axis: torch's own cannot be traced again with sizes that vary (2.13).

Real numbers are given as they are, along a last axis of one.
"""

from __future__ import annotations

from typing import Any

import torch
from onnxscript import opset18

aten = torch.ops.aten
op: Any = opset18  # what torch.onnx (2.13) writes graphs in

_library = torch.library.Library("entrepot", "FRAGMENT")
_library.define("fourier(Tensor pairs, int dim, int normalization, bool forward) -> Tensor")


def _run(pairs: torch.Tensor, dim: int, normalization: int, forward: bool) -> torch.Tensor:
    whole = torch.nn.functional.pad(pairs, (0, 2 - pairs.shape[-1])).contiguous()
    found = aten._fft_c2c(torch.view_as_complex(whole), [dim], normalization, forward)  # noqa: SLF001
    return torch.view_as_real(found)


def _shape(pairs: torch.Tensor, dim: int, normalization: int, forward: bool) -> torch.Tensor:
    return pairs.new_empty((*pairs.shape[:-1], 2))


_library.impl("fourier", _run, "CompositeExplicitAutograd")
torch.library.register_fake("entrepot::fourier", _shape, lib=_library)


def translate_fourier(pairs: Any, dim: int, normalization: int, forward: bool) -> Any:
    """A DFT, which divides by the size on the way back; torch divides by 1, its root, or all of it, on either way."""
    axes = op.Constant(value_ints=[0])  # onnxruntime (1.31) takes the first axis for that of a batch
    given = pairs if dim else op.Unsqueeze(pairs, axes)
    found = op.DFT(given, axis=dim or 1, inverse=int(not forward))
    found = found if dim else op.Squeeze(found, axes)
    size = op.CastLike(op.Shape(pairs, start=dim, end=dim + 1), pairs)
    if normalization == 1:
        size = op.Sqrt(size)
    if forward:
        return op.Div(found, size) if normalization else found
    return found if normalization == 2 else op.Mul(found, size)


TRANSLATIONS = {torch.ops.entrepot.fourier.default: translate_fourier}
