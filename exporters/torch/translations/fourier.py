"""A Fourier transform of pairs along one axis: torch's own cannot be traced again with sizes that vary (2.13)."""

from __future__ import annotations

from typing import Any

import torch
from onnxscript import opset18

from entrepot.exporters.functions.transforms import transformed

aten = torch.ops.aten
op: Any = opset18  # what torch.onnx (2.13) writes graphs in

_library = torch.library.Library("entrepot", "FRAGMENT")
_library.define("fourier(Tensor pairs, int dim, int normalization, bool forward) -> Tensor")


def _run(pairs: torch.Tensor, dim: int, normalization: int, forward: bool) -> torch.Tensor:
    whole = torch.view_as_complex(pairs.contiguous())
    return torch.view_as_real(aten._fft_c2c(whole, [dim], normalization, forward))  # noqa: SLF001


def _shape(pairs: torch.Tensor, dim: int, normalization: int, forward: bool) -> torch.Tensor:
    return pairs.new_empty(pairs.shape)


_library.impl("fourier", _run, "CompositeExplicitAutograd")
torch.library.register_fake("entrepot::fourier", _shape, lib=_library)


def translate_fourier(pairs: Any, dim: int, normalization: int, forward: bool) -> Any:
    """Of conjugates on the way back; torch divides by 1, the size's root, or all of it, on either way."""
    rank = len(pairs.shape)
    order = [*(axis for axis in range(rank) if axis not in (dim, rank - 1)), dim, rank - 1]
    back = [order.index(axis) for axis in range(rank)]
    size = op.CastLike(op.Shape(pairs, start=dim, end=dim + 1), pairs)
    conjugate = op.CastLike(op.Constant(value_floats=[1.0, -1.0]), pairs)
    given = pairs if forward else op.Mul(pairs, conjugate)
    found = op.Transpose(transformed(op.Transpose(given, perm=order)), perm=back)
    found = found if forward else op.Mul(found, conjugate)
    if normalization == 0:
        return found
    return op.Div(found, op.Sqrt(size) if normalization == 1 else size)


TRANSLATIONS = {torch.ops.entrepot.fourier.default: translate_fourier}
