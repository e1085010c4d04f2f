"""A Fourier transform of pairs along one axis: torch's own cannot be traced again with sizes that vary (2.13)."""

from __future__ import annotations

from typing import Any

import torch
from onnxscript import opset18

from entrepot.exporters.functions.transforms import transformed
from entrepot.exporters.torch.translations.waves import is_power_of_two

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
    """A DFT of a power of two, else what is more exact; torch divides by 1, its root, or all of it, on either way."""
    if is_power_of_two(pairs.shape[dim]):
        return _of_known_size(pairs, dim, normalization, forward)
    return _of_any_size(pairs, dim, normalization, forward)


def _of_known_size(pairs: Any, dim: int, normalization: int, forward: bool) -> Any:
    """A DFT, which divides by the size on the way back."""
    axes = op.Constant(value_ints=[0])  # onnxruntime takes the first axis for that of a batch
    found = op.Squeeze(op.DFT(op.Unsqueeze(pairs, axes), axis=dim + 1, inverse=int(not forward)), axes)
    size = op.CastLike(op.Shape(pairs, start=dim, end=dim + 1), pairs)
    if normalization == 1:
        size = op.Sqrt(size)
    if forward:
        return op.Div(found, size) if normalization else found
    return found if normalization == 2 else op.Mul(found, size)


def _of_any_size(pairs: Any, dim: int, normalization: int, forward: bool) -> Any:
    """The transform of conjugates on the way back."""
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
