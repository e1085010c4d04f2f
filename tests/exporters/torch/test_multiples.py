"""Modules that take sizes only in steps, or far ones: what they are exported as, and what is said of other sizes."""

from __future__ import annotations

import numpy as np
import onnxruntime
import pytest
import torch
import torch.nn.functional as F  # noqa: N812 - as everybody calls it
from torch import nn

import entrepot as ep
from entrepot.parity.feeds import generate


class Skipping(nn.Module):
    """Halves an image twice, and adds what was there before at each size on the way up."""

    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(1, 2, 3, padding=1)
        self.up = nn.ConvTranspose2d(2, 2, 2, 2)

    def forward(self, x):
        whole = self.first(x)
        half = F.max_pool2d(whole, 2)
        return self.up(self.up(F.max_pool2d(half, 2)) + half) + whole


class Masked(Skipping):
    """The same under a mask of the size of the image."""

    def forward(self, x, mask):
        return super().forward(x) * mask


class Chunked(nn.Module):
    """Attention inside chunks of four."""

    def forward(self, x):
        batch, length, _ = x.shape
        assert length % 4 == 0, "whole chunks"
        chunks = x.reshape(batch, length // 4, 4, -1)
        return (chunks @ chunks.transpose(-1, -2)).reshape(batch, length, 4)


class Odd(nn.Module):
    """A window around a middle."""

    def forward(self, x):
        assert x.shape[1] % 2 == 1
        return x[:, : x.shape[1] // 2] - x[:, x.shape[1] // 2 + 1 :].flip(1)


class Pyramid(nn.Module):
    """Features of three sizes, the smallest enlarged again beside the first: 15 goes as 16 does, and 17 does not."""

    def __init__(self):
        super().__init__()
        self.down = nn.ModuleList(nn.Conv2d(3, 3, 3, 2, 1) for _ in range(3))

    def forward(self, x):
        first = self.down[0](x)
        third = self.down[2](self.down[1](first))
        return torch.cat([first, F.interpolate(third, scale_factor=4)], 1)


CASES = {
    "pyramid": (Pyramid(), [(2, 3, 16, 24)], {"height": 8, "width": 8}),
    "skips": (Skipping(), [(2, 1, 16, 24)], {"height": 4, "width": 4}),
    "mask": (Masked(), [(2, 1, 16, 24), (2, 1, 16, 24)], {"height": 4, "width": 4}),
    "unshuffled": (nn.PixelUnshuffle(2), [(2, 3, 8, 10)], {"input_dim2": 2, "input_dim3": 2}),
    "chunks": (Chunked(), [(2, 12, 5)], {"x_dim1": 4}),
}


@pytest.mark.parametrize("case", CASES)
def test_an_axis_that_varies_in_steps_is_exported_with_its_step(case):
    module, shapes, steps = CASES[case]
    sample = tuple(torch.randn(shape) for shape in shapes)
    model = ep.export(module.eval(), sample)
    assert {f"{symbol} % {step} == 0" for symbol, step in steps.items()} <= set(model.conditions)
    other = tuple(
        torch.randn(shape[0], *shape[1:-2], *_larger(model.inputs[0].shape, shape, steps)) for shape in shapes
    )
    session = onnxruntime.InferenceSession(model.to_proto().SerializeToString())
    feeds = {spec.name: tensor.numpy() for spec, tensor in zip(model.inputs, other, strict=True)}
    expected = module(*other).detach().numpy()
    np.testing.assert_allclose(session.run(None, feeds)[0], expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(next(iter(ep.Session(model).run(feeds).values())), expected, rtol=1e-4, atol=1e-5)


def _larger(symbols, shape, steps):
    return [size + 3 * steps.get(symbol, 0) for symbol, size in zip(symbols[-2:], shape[-2:], strict=True)]


def test_shapes_are_written_over_the_sizes_themselves():
    model = ep.export(Chunked(), torch.randn(2, 12, 5))
    assert [spec.shape for spec in model.inputs] == [("batch", "x_dim1", "x_dim2")]
    assert [spec.shape for spec in model.outputs] == [("batch", "x_dim1", 4)]
    model = ep.export(nn.PixelUnshuffle(2), torch.randn(2, 3, 8, 10))
    assert model.outputs[0].shape[2:] == ("input_dim2//2", "input_dim3//2")


def test_an_axis_that_is_wrong_only_without_elements_varies_from_one_on():
    """torch (2.13) returns an empty image from PixelUnshuffle as it is, with neither fewer rows nor more channels."""
    assert nn.PixelUnshuffle(2)(torch.ones(0, 3, 8, 8)).shape == (0, 3, 8, 8)
    model = ep.export(nn.PixelUnshuffle(2), torch.randn(1, 3, 8, 8))
    assert model.inputs[0].shape == ("batch", "input_dim1", "input_dim2", "input_dim3")
    assert {"batch >= 1", "input_dim2 % 2 == 0", "input_dim3 % 2 == 0"} <= set(model.conditions)


def test_an_axis_in_steps_may_be_named():
    model = ep.export(Skipping().eval(), torch.randn(2, 1, 16, 16), dynamic={"x": {2: "rows", 3: "columns"}})
    assert model.inputs[0].shape == (2, 1, "rows", "columns")
    assert model.conditions == ("rows % 4 == 0", "columns % 4 == 0")


def test_a_remainder_is_stated():
    model = ep.export(Odd(), torch.randn(2, 7))
    assert model.conditions == ("x_dim1 % 2 == 1",)
    assert model.outputs[0].shape[0] == "batch"


def test_other_sizes_are_refused_with_the_nearest_that_fit():
    model = ep.export(Chunked(), torch.randn(2, 12, 5))
    with pytest.raises(ep.InputError, match=r"axis 1 of 'x' is 14, but the model needs x_dim1 % 4 == 0.*12 or 16"):
        ep.Session(model).run(np.ones((2, 14, 5), np.float32))


def test_the_graph_itself_refuses_other_sizes_on_request():
    model = ep.export(Chunked(), torch.randn(2, 12, 5), checks=True)
    session = onnxruntime.InferenceSession(model.to_proto().SerializeToString())
    assert session.run(None, {"x": np.ones((1, 8, 3), np.float32)})[0].shape == (1, 8, 4)
    with pytest.raises(Exception, match="x_dim1 % 4 == 0"):
        session.run(None, {"x": np.ones((1, 10, 3), np.float32)})


def test_made_up_feeds_keep_to_the_steps():
    model = ep.export(Chunked(), torch.randn(2, 12, 5))
    assert generate(model)["x"].shape == (1, 4, 3)
    assert {run.label for run in model.report.runs if run.ok} >= {"x_dim1=16", "x_dim1=24", "x_dim1=4"}


class Known(nn.Module):
    """Rows of four, and another path where there are four of them, as torch's capture then takes for granted."""

    def forward(self, x):
        rows = x.reshape(x.shape[0], -1, 4)
        return rows * 2 if (x.shape[1] - 1) // 4 + 1 == 4 else rows


def test_a_size_that_a_capture_takes_for_granted_is_noticed_before_the_graph_is_made():
    lines: list[str] = []
    model = ep.export(Known(), torch.randn(2, 16), progress=lines.append)
    first = lines.index("translating to ONNX")
    assert any(line.startswith("axis x.1 is fixed: the capture fixed it (the capture needs") for line in lines[:first])
    session = ep.Session(model)
    for size in (16, 12, 32):
        rows = np.random.default_rng(size).standard_normal((3, size)).astype(np.float32)
        (got,) = session.run([rows]).values()
        np.testing.assert_array_equal(got, rows.reshape(3, -1, 4) * (2 if size == 16 else 1))
