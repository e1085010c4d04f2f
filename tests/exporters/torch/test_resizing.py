"""Interpolation: every mode by size and by scale, with corners aligned or not, without aliasing or with it."""

import pytest
import torch
import torch.nn.functional as F

import entrepot as ep

PLANE = torch.randn(2, 3, 7, 10, generator=torch.Generator().manual_seed(0))
BY = {"size": {"size": (5, 13)}, "scale": {"scale_factor": (0.73, 1.7)}, "whole scale": {"scale_factor": 2.0}}
BY["computed scale"] = {"scale_factor": (0.73, 1.7), "recompute_scale_factor": True}
SMOOTH = [
    pytest.param(mode, align, smooth, id=f"{mode}{' aligned' * align}{' antialiased' * smooth}")
    for mode in ("bilinear", "bicubic")
    for align in (False, True)
    for smooth in (False, True)
] + [pytest.param("lanczos", False, True, id="lanczos")]


@pytest.mark.parametrize("by", BY)
@pytest.mark.parametrize(("mode", "align", "smooth"), SMOOTH)
def test_interpolation_of_a_plane(mode, align, smooth, by):
    def resized(x):
        return F.interpolate(x, mode=mode, align_corners=align, antialias=smooth, **BY[by])

    model = ep.export(resized, PLANE)
    assert model.report.ok
    if not smooth or by in ("size", "whole scale"):  # else torch (2.13) gives other numbers for a plane of width 1
        assert all(isinstance(size, str) for size in model.inputs[0].shape), model.notes


@pytest.mark.parametrize("mode", ["nearest", "nearest-exact", "linear", "trilinear", "area"])
@pytest.mark.parametrize("by", [{"size": 9}, {"scale_factor": 1.7}, {"scale_factor": 0.6}])
def test_interpolation_of_other_ranks(mode, by):
    align = {"align_corners": True} if mode in ("linear", "trilinear") else {}
    x = torch.randn(1, 2, 4, 5, 6)[(slice(None), slice(None), *[0] * (2 if mode == "linear" else 0))]
    assert ep.export(lambda x: F.interpolate(x, mode=mode, **align, **by), x, dynamic=False).report.ok
