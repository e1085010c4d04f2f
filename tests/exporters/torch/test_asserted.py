"""Asserted values: what a graph cannot raise is left out, and sizes vary as if it had not been there."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F  # noqa: N812 - its name everywhere
from torch import Tensor, nn

import entrepot as ep


def mirrored(x: Tensor, before: int, after: int) -> Tensor:
    """Padded by mirror, and first with zeros where there is not enough to mirror."""
    length, most = x.shape[-1], max(before, after)
    start, end, given = before, after, x
    if length <= most:
        more = most - length + 1
        end_more = min(after, more)
        start, end = before - (more - end_more), after - end_more
        x = F.pad(x, (more - end_more, end_more))
    padded = F.pad(x, (start, end), mode="reflect")
    assert padded.shape[-1] == length + before + after
    assert (padded[..., before : before + length] == given).all()
    return padded


class Mirrored(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return mirrored(x, 6, 9) * 2


class Spectrum(nn.Module):
    """Torch asks for the sizes of what it transforms, so they may not depend on the way taken."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("window", torch.hann_window(16))

    def forward(self, x: Tensor) -> Tensor:
        rest = -x.shape[-1] % 4
        return torch.stft(mirrored(x, 6, 6 + rest), 16, 4, window=self.window, return_complex=True).abs()


def check(model: ep.Model, module: nn.Module, *lengths: int) -> None:
    session = ep.Session(model, providers=["onnxruntime"])
    for length in lengths:
        x = torch.randn(3, length, generator=torch.Generator().manual_seed(length))
        found = session.run({"x": x.numpy()})["output"]
        torch.testing.assert_close(torch.from_numpy(found), module(x), rtol=1e-4, atol=1e-4)


def test_both_ways_of_a_size_are_in_the_graph() -> None:
    module = Mirrored().eval()
    model = ep.export(module, torch.randn(2, 20))
    check(model, module, 9, 10, 20, 33, 5)
    assert "left out" in str(model)


def test_the_way_of_the_sample_is_taken_where_more_sizes_vary_then() -> None:
    module = Spectrum().eval()
    model = ep.export(module, torch.randn(2, 40))
    check(model, module, 40, 41, 63, 90)
    with pytest.raises(ep.InputError, match="x_dim1"):
        ep.Session(model).run({"x": torch.randn(2, 5).numpy()})
