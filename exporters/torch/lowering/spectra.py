"""What is a spectrum, and whether it shows that a part of it is exactly real: in angles, and hardly anywhere else."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import torch

aten = torch.ops.aten

_ENDS = {
    aten.abs.default, aten._fft_c2c.default, aten._fft_c2r.default,  # noqa: SLF001 - what fft and irfft become
    aten.sym_size.int,
}  # fmt: skip
"""What asks for sizes, or turns what is nearly real into nearly the same; after a transform no part is exactly real."""

_GOES_ON = {
    aten.add.Tensor, aten.alias.default, aten.clone.default, aten._conj.default, aten.conj_physical.default,  # noqa: SLF001
    aten.constant_pad_nd.default, aten.expand.default, aten.flip.default, aten.mul.Scalar, aten.mul.Tensor,
    aten.neg.default, aten.permute.default, aten.resolve_conj.default, aten.slice.Tensor, aten.squeeze.dim,
    aten.sub.Tensor, aten.sum.dim_IntList, aten.transpose.int, aten.unsqueeze.default, aten.view.default,
}  # fmt: skip
"""Sums, products and moves, of which the same is asked."""


_TRANSFORMS = {aten._fft_r2c.default, aten._fft_c2c.default, aten.stft.default, aten.stft.center}  # noqa: SLF001
_MOVES = {
    aten.clone.default, aten.expand.default, aten.masked_fill.Scalar, aten.permute.default, aten.select.int,
    aten.slice.Tensor, aten.squeeze.dim, aten.transpose.int, aten.unsqueeze.default, aten.view.default,
    aten.view_as_real.default,
}  # fmt: skip


def is_transform(node: torch.fx.Node) -> bool:
    """Whether a node turns a signal into a spectrum, or back."""
    return node.target in _TRANSFORMS


def is_of_spectrum(node: Any, made: Collection[Any]) -> bool:
    """Whether a node only moves numbers that a transform returns, as it is, or as what was ``made`` of it."""
    while node.target in _MOVES and node not in made:
        node = node.args[0]
    return node in made or is_transform(node)


def shows_angles(node: torch.fx.Node) -> bool:
    """Whether anything that is computed from a complex result may look at more than the size of its numbers."""
    pending: list[Any] = [node]
    seen: set[Any] = set()
    while pending:
        for user in pending.pop().users:
            if user in seen or user.target in _ENDS:
                continue
            if user.target not in _GOES_ON:
                return True
            seen.add(user)
            pending.append(user)
    return False
