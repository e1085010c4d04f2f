"""What a ``TransformerEncoder`` gives at padded positions when it is used for inference: zeros.

Without gradients, torch (2.13) leaves padding out of the computation and puts zeros there afterwards; with gradients,
and in every capture, it computes results for it as well. Whoever compares a file with the module does so without.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator

import torch
from torch import Tensor
from torch.nn import TransformerEncoder


@contextlib.contextmanager
def padding_as_in_inference(module: torch.nn.Module) -> Iterator[None]:
    """Inside, every encoder in a module gives zeros at padded positions wherever it would do so without gradients.

    Nothing changes if the kernels that do this are switched off for the whole program.
    """
    switched = torch.backends.mha.get_fastpath_enabled()
    encoders = [part for part in module.modules() if switched and _is_plain(part)]
    kinds = [type(part) for part in encoders]
    for part, kind in zip(encoders, kinds, strict=True):
        part.__class__ = type(kind.__name__, (kind,), {"forward": _emptied(kind.forward)})
    try:
        yield
    finally:
        for part, kind in zip(encoders, kinds, strict=True):
            part.__class__ = kind


def _is_plain(part: torch.nn.Module) -> bool:
    return isinstance(part, TransformerEncoder) and type(part).forward is TransformerEncoder.forward


def _emptied(forward: Callable[..., Tensor]) -> Callable[..., Tensor]:
    @functools.wraps(forward)
    def emptied(
        self: TransformerEncoder,
        src: Tensor,
        mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool | None = None,
    ) -> Tensor:
        result = forward(self, src, mask, src_key_padding_mask, is_causal)
        if mask is not None or src_key_padding_mask is None or not _skips_padding(self, src):
            return result
        padded = src_key_padding_mask != 0
        empty = torch.zeros_like(result)
        if self.norm is not None:
            empty = self.norm(empty)
        return torch.where(padded.unsqueeze(-1) & _at_the_end(padded), empty, result)

    return emptied


def _skips_padding(encoder: TransformerEncoder, src: Tensor) -> bool:
    return (
        bool(getattr(encoder, "use_nested_tensor", False))
        and getattr(encoder, "mask_check", True)
        and not encoder.layers[0].training
        and src.dim() == 3
        and not torch.is_autocast_enabled()
    )


def _at_the_end(padded: Tensor) -> Tensor:
    """Whether no row has padding before something else: only then is it left out."""
    return ~(padded[:, :-1] & ~padded[:, 1:]).any()
