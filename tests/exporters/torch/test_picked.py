"""Interpolation as elements that are picked: by scales made of sizes, and what is scaled and scaled back."""

from __future__ import annotations

import math

import pytest
import sympy
import torch
import torch.nn.functional as F  # noqa: N812 - its name everywhere
from torch import nn

import entrepot as ep
from entrepot.exporters.torch.capture.whole_parts import whole_part
from entrepot.exporters.torch.upstream import size_functions

MODES = [("nearest", 1), ("nearest", 2), ("nearest-exact", 2), ("nearest", 3)]
MODES += [("linear", 1), ("bilinear", 2), ("trilinear", 3), ("bicubic", 2)]


class Scaled(nn.Module):
    """The second tensor is brought to the size of the first, or to as much as double precision makes of it."""

    def __init__(self, mode, smooth=False):
        super().__init__()
        self.mode, self.smooth = mode, smooth

    def forward(self, x, like):
        scale = like.shape[-1] / x.shape[-1]
        scales = scale if self.mode == "nearest" else (scale,) * (x.dim() - 2)
        return F.interpolate(x, scale_factor=scales, mode=self.mode, antialias=self.smooth)


def check(module, sample, calls, provider="cpu"):
    model = ep.export(module.eval(), sample)
    session = ep.Session(model, providers=[provider])
    names = [each.name for each in model.inputs]
    for call in calls:
        (found,) = session.run(dict(zip(names, (each.numpy() for each in call), strict=True))).values()
        with torch.no_grad():
            wanted = module(*call)
        off = 4 * max(call[0].shape) * torch.finfo(torch.float32).eps  # a place, beside which filters are this steep:
        tolerance = off * 3 * max(wanted.abs().max().item(), 1.0)
        torch.testing.assert_close(torch.from_numpy(found), wanted, rtol=0, atol=tolerance)


@pytest.mark.parametrize("provider", ["cpu", "onnxruntime"])
@pytest.mark.parametrize(
    ("mode", "rank", "smooth"),
    [*((*each, False) for each in MODES), *((mode, 2, True) for mode in ("bilinear", "bicubic", "lanczos"))],
)
def test_the_sizes_that_make_a_scale_may_vary(mode, rank, smooth, provider):
    made = torch.Generator().manual_seed(0)

    def call(size, count, more=0):
        rest = [size + more] * (rank - 1)
        return torch.randn(2, 3, *rest, size, generator=made), torch.zeros(4, count)

    calls = [call(*each) for each in ((5, 5), (5, 9), (9, 5), (1, 4), (6, 12, 2), (20, 21, 1), (21, 20), (61, 7))]
    check(Scaled(mode, smooth), call(6, 10, 3), calls, provider)


def test_by_recomputed_scales_and_aligned_corners():
    class Both(nn.Module):
        def forward(self, x, like):
            scale = [like.shape[-1] / x.shape[-1]] * 2
            aligned = F.interpolate(x, scale_factor=scale, mode="bilinear", align_corners=True)
            return aligned + F.interpolate(x, scale_factor=scale, mode="bicubic", recompute_scale_factor=True)

    calls = [(torch.randn(1, 2, size, 7), torch.zeros(count)) for size, count in ((4, 7), (7, 3), (9, 20))]
    check(Both(), (torch.randn(1, 2, 5, 7), torch.zeros(10)), calls)


class Positions(nn.Module):
    """Positions of a grid for pictures of other sizes, with a little more than the size, so that none gets lost."""

    def __init__(self, grid, more):
        super().__init__()
        self.positions = nn.Parameter(torch.randn(1, 4, grid, grid))
        self.grid, self.more = grid, more

    def forward(self, x):
        height, width = (size // 2 + self.more for size in x.shape[2:])
        scales = (height / self.grid, width / math.sqrt(self.grid**2))
        positions = F.interpolate(self.positions, scale_factor=scales, mode="bicubic")
        assert (int(height), int(width)) == positions.shape[2:]
        return F.avg_pool2d(x, 2) + positions


@pytest.mark.parametrize(("grid", "more"), [(7, 0.1), (4, 0.0)])
def test_what_is_scaled_fits_what_has_the_size(grid, more):
    calls = [(torch.randn(1, 4, *sizes),) for sizes in ((14, 14), (16, 10), (122, 62), (3, 9))]
    check(Positions(grid, more), (torch.randn(1, 4, 12, 20),), calls)


def test_the_module_and_its_file_refuse_the_sizes_at_which_precision_gets_lost():
    class Exactly(nn.Module):
        def __init__(self):
            super().__init__()
            self.table = nn.Parameter(torch.randn(1, 2, 7))

        def forward(self, x):
            return x + F.interpolate(self.table, scale_factor=x.shape[-1] / 7, mode="linear")

    module = Exactly()
    check(module, (torch.randn(1, 2, 12),), [(torch.randn(3, 2, size),) for size in (7, 10, 60, 62)])
    session = ep.Session(ep.export(module, torch.randn(1, 2, 12)))
    with pytest.raises(RuntimeError, match="must match"):
        module(torch.randn(1, 2, 61))  # 61 / 7 * 7 is a little less
    with pytest.raises(ep.EntrepotError):
        session.run([torch.randn(1, 2, 61).numpy()])


L = sympy.Symbol("L", integer=True, positive=True)
Floor, Trunc = size_functions.FloorToInt, size_functions.TruncToInt
ToFloat, Divided = size_functions.ToFloat, size_functions.FloatTrueDiv


@pytest.mark.parametrize(
    ("formula", "wanted"),
    [
        (Trunc(ToFloat(L) + 0.1), L),
        (Floor(7.0 * Divided(ToFloat(L) + 0.1, 7.0)), L),
        (Floor(8.0 * Divided(ToFloat(3 * L), 8.0)), 3 * L),
        (Floor(ToFloat(L) + 1.5), L + 1),
        (Floor(7.0 * Divided(ToFloat(L), 7.0)), None),  # one less at 61
        (Floor(0.7 * ToFloat(L)), None),
        (Floor(Divided(ToFloat(L), 4.0)), None),
        (Trunc(ToFloat(L) - 1.5), None),  # towards zero from below
    ],
    ids=str,
)
def test_the_whole_part(formula, wanted):
    assert whole_part(formula) == wanted
    if wanted is not None:
        assert all(formula.subs(L, size) == wanted.subs(L, size) for size in range(1, 300))
