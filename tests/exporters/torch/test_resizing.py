"""Interpolation: every mode by size and by scale, with corners aligned or not, without aliasing or with it."""

import pytest
import torch
import torch.nn.functional as F  # noqa: N812 - its name everywhere

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

    assert ep.export(resized, PLANE, dynamic=False).report.ok


@pytest.mark.parametrize("scale", [(2.0, 1.7), (3.0, 1.0)])
@pytest.mark.parametrize(("mode", "align", "smooth"), [("bilinear", True, False), ("bicubic", False, True)])
def test_the_sizes_of_a_plane_may_vary(mode, align, smooth, scale):
    def resized(x):
        return F.interpolate(x, mode=mode, align_corners=align, antialias=smooth, scale_factor=scale)

    model = ep.export(resized, PLANE, dynamic={"x": {2: "height", 3: "width"}}, verify=False)
    for size in ((4, 5), (9, 3), (1, 1)):
        x = PLANE.repeat(1, 1, 2, 2)[..., : size[0], : size[1]].contiguous()
        (found,) = ep.Session(model).run({"x": x.numpy()}).values()
        torch.testing.assert_close(torch.from_numpy(found), resized(x), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("mode", ["nearest", "nearest-exact", "linear", "trilinear", "area"])
@pytest.mark.parametrize("by", [{"size": 9}, {"scale_factor": 2.0}, {"scale_factor": 1.7}, {"scale_factor": 0.6}])
def test_interpolation_of_other_ranks(mode, by):
    align = {"align_corners": True} if mode in ("linear", "trilinear") else {}
    x = torch.randn(1, 2, 4, 5, 6)[(slice(None), slice(None), *[0] * (2 if mode == "linear" else 0))]
    assert ep.export(lambda x: F.interpolate(x, mode=mode, **align, **by), x, dynamic=False).report.ok


@pytest.mark.parametrize("count", [5, 14])
@pytest.mark.parametrize("mode", ["nearest", "nearest-exact"])
def test_the_nearest_element_is_that_of_torch_at_all_sizes(mode, count):
    """onnxruntime's Resize takes the element before, at 21 as 6 and 45 as 18, whatever the sizes of the sample are."""

    def resized(x, like):
        return F.interpolate(x, size=like.shape[-1:], mode=mode)

    model = ep.export(resized, (torch.randn(2, 3, 7), torch.randn(2, count)))
    session = ep.Session(model, providers=["onnxruntime"])
    names = [each.name for each in model.inputs]
    for size, count in ((21, 6), (45, 18), (6, 20), (1, 4), (35, 35), (64, 5)):
        call = torch.arange(2.0 * 3 * size).reshape(2, 3, size), torch.zeros(2, count)
        (found,) = session.run(dict(zip(names, (each.numpy() for each in call), strict=True))).values()
        torch.testing.assert_close(torch.from_numpy(found), resized(*call), rtol=0, atol=0)


@pytest.mark.parametrize("sizes", [(16, 8), (18, 15)])
@pytest.mark.parametrize("up", [False, True])
def test_what_was_halved_is_doubled_by_one_node_at_all_sizes(up, sizes):
    def halved_and_back(x):
        return F.interpolate(F.max_pool2d(x, 2, ceil_mode=up), size=x.shape[2:])

    model = ep.export(halved_and_back, torch.randn(2, 3, *sizes))
    assert [node.op_type for node in model.ir.graph].count("Resize") == 1
    session = ep.Session(model, providers=["onnxruntime"])
    for size in range(2, 90):
        x = torch.arange(3.0 * size * 7).reshape(1, 3, size, 7)
        (found,) = session.run({model.inputs[0].name: x.numpy()}).values()
        torch.testing.assert_close(torch.from_numpy(found), halved_and_back(x), rtol=0, atol=0)


def test_whole_scales_are_written_as_they_are():
    model = ep.export(torch.nn.UpsamplingBilinear2d(scale_factor=2), PLANE)
    assert [node.op_type for node in model.ir.graph] == ["Resize"]


@pytest.mark.parametrize("provider", ["cpu", "onnxruntime"])
@pytest.mark.parametrize("mode", ["nearest", "nearest-exact", "bilinear", "bicubic"])
@pytest.mark.parametrize("scale", [0.35, 0.7, 1.1, 1.25, 1.3])
def test_scales_give_as_many_samples_as_torch_takes(mode, scale, provider):
    """``int(90 * 0.7)`` is 62, and 63 in single precision; and ``int(5 * 1.1)`` leaves a size as it is."""

    def resized(x):
        return F.interpolate(x, scale_factor=scale, mode=mode)

    session = ep.Session(ep.export(resized, torch.randn(1, 2, 21, 31)), providers=[provider])
    for sizes in ((90, 180), (360, 20), (4, 3), (3, 7), (50, 9)):
        x = torch.randn(2, 1, *sizes)
        (found,) = session.run([x.numpy()]).values()
        off = 4 * max(sizes) * torch.finfo(x.dtype).eps  # a place, in elements, beside which filters are this steep:
        torch.testing.assert_close(torch.from_numpy(found), resized(x), rtol=0, atol=off * 3 * x.abs().max().item())
