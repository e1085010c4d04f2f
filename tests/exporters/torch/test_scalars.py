"""A size where operators usually have a constant: the file computes with the size that an axis has in a run."""

from __future__ import annotations

import operator

import numpy as np
import onnxruntime
import pytest
import torch
import torch.nn.functional as F  # noqa: N812 - its name everywhere
from torch import nn

import entrepot as ep


class OfFloats(nn.Module):
    def forward(self, x):
        n = x.shape[1]
        mask = x > 0
        return {
            "add": x + n,
            "addcdiv": torch.addcdiv(x, x, x.abs() + 1, value=n),
            "addcmul": torch.addcmul(x, x, x, value=n),
            "addmm": torch.addmm(x, x @ x.T, x, alpha=n),
            "celu": F.celu(x, n),
            "clamp": (x * 9).clamp(n / 10, n),
            "clip": (x * 9).clip(max=n),
            "copysign": torch.copysign(x, -n),
            "div": torch.div(x * 10, n, rounding_mode="trunc"),
            "elu": F.elu(x, n),
            "floor": (x * 10) // n,
            "fmod": torch.fmod(x * 10, n),
            "leaky": F.leaky_relu(x, 1 / n),
            "lerp": torch.lerp(x, x * 2, n),
            "masked": x.masked_fill(mask, n),
            "power": (x / 9) ** n,
            "powers": n**x,
            "remainder": (x * 10) % n,
            "scatter": x.scatter(1, torch.zeros(x.shape[0], 1, dtype=torch.long), n),
            "threshold": F.threshold(x, n / 10, n),
            "where": torch.where(mask, x, n),
        }


class OfIntegers(nn.Module):
    def forward(self, x):
        n = x.shape[1]
        return {
            "addmm": torch.addmm(x, x @ x.T, x),
            "and": x & n,
            "bits": (x & 12) | ((x ^ 5) & 1),
            "byte": (x.to(torch.uint8) & 7) | 128,
            "clamp": x.clamp(-n, n),
            "limited": x.clamp(0.5, 7),
            "close": torch.isclose(x * n * 1000000, x * n * 1000000 + 1),
            "floor": x // n,
            "less": x < n,
            "remainder": x % n,
            "scatter": x.scatter(1, torch.zeros(x.shape[0], 1, dtype=torch.long), n),
            "truncated": torch.fmod(x, n),
            "counted": x + x[0].numel(),
            "quotient": x / n,
        }


def _check(module, draw, tmp_path):
    ep.export(module, (draw(2, 7),), progress=False).save(tmp_path / "model.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx")
    names = [each.name for each in session.get_outputs()]
    for shape in ((2, 7), (3, 5), (1, 11)):
        x = draw(*shape)
        results = dict(zip(names, session.run(None, {"x": x.numpy()}), strict=True))
        for name, expected in module(x).items():
            np.testing.assert_allclose(results[name], expected.numpy(), rtol=1e-4, atol=1e-5, strict=True, err_msg=name)


def test_floats_beside_sizes(tmp_path):
    _check(
        OfFloats(),
        lambda *shape: torch.from_numpy(np.random.default_rng(sum(shape)).standard_normal(shape, np.float32)),
        tmp_path,
    )


def test_integers_beside_sizes(tmp_path):
    _check(
        OfIntegers(),
        lambda *shape: torch.from_numpy(np.random.default_rng(sum(shape)).integers(-30, 30, shape)),
        tmp_path,
    )


class Shifted(nn.Module):
    def __init__(self, kind, shift):
        super().__init__()
        self.kind, self.shift = kind, shift

    def forward(self, x, n):
        return self.shift(x.to(self.kind), n.to(self.kind))


@pytest.mark.parametrize("kind", [torch.uint8, torch.int32, torch.int64], ids=str)
@pytest.mark.parametrize(
    ("shift", "numpys"),
    [
        (operator.lshift, np.left_shift),
        (operator.rshift, np.right_shift),
        (torch.bitwise_left_shift, np.left_shift),
        (torch.bitwise_right_shift, np.right_shift),
    ],
)
def test_tensors_shift_tensors(kind, shift, numpys):
    given = torch.tensor([200, 8, 100, 255]), torch.tensor([1, 2, 7, 0])
    model = ep.export(Shifted(kind, shift), given, progress=False)
    (found,) = ep.Session(model, providers=["onnxruntime"]).run([each.numpy() for each in given]).values()
    expected = numpys(*(each.numpy().astype(str(kind).removeprefix("torch.")) for each in given))
    np.testing.assert_array_equal(found, expected, strict=True)
    assert "torch.jit.script" not in str(model.report)


class ShiftedBytes(nn.Module):
    def forward(self, x):
        return x << 3, x >> 3, x >> 9, x << 9, 5 << x, 200 >> x, x >> x.shape[0]


def test_bytes_are_shifted_by_numbers_and_numbers_by_bytes():
    given = torch.tensor([200, 8, 2, 255], dtype=torch.uint8)
    model = ep.export(ShiftedBytes(), given, progress=False)
    found = ep.Session(model, providers=["onnxruntime"]).run([given.numpy()])
    for one, other in zip(found.values(), ShiftedBytes()(given), strict=True):
        np.testing.assert_array_equal(one, other.numpy(), strict=True)


class OfRatios(nn.Module):
    """Whole numbers and floats beside the larger of a ratio of two sizes and 1."""

    def forward(self, x):
        ratio = max(x.shape[1] / x.shape[0], 1.0)
        places = torch.arange(x.shape[1])
        made = [places * ratio, places + ratio, places - ratio, ratio - places, places / ratio, ratio / (places + 1)]
        made += [places // ratio, places % ratio, places**ratio, torch.where(places > 2, places, ratio)]
        made += [places > ratio, places == ratio, (places * ratio).clamp(max=ratio)]
        return *made, x * ratio, x - ratio, torch.sub(x, ratio, alpha=3)


def test_numbers_beside_the_ratio_of_two_sizes():
    model = ep.export(OfRatios(), torch.randn(5, 6), progress=False)
    assert all(isinstance(size, str) for size in model.inputs[0].shape)
    session = onnxruntime.InferenceSession(model.to_proto().SerializeToString())
    for shape in ((5, 6), (3, 8), (9, 4)):
        x = torch.randn(shape)
        for found, wanted in zip(session.run(None, {"x": x.numpy()}), OfRatios()(x), strict=True):
            assert found.dtype == wanted.numpy().dtype
            np.testing.assert_allclose(found, wanted.numpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("x", [torch.randn(3, 5) * 3, torch.randint(-5, 5, (3, 5))], ids=["floats", "integers"])
def test_a_whole_number_and_a_fraction_are_taken_together(x):
    class Bounded(nn.Module):
        def forward(self, x):
            return x.clamp(-1, 2.5), torch.clamp(x, min=0.5, max=4), torch.where(x > 0, 1, 2.5)

    model = ep.export(Bounded(), x, progress=False)
    assert "captured by" not in str(model)
    for one, other in zip(ep.Session(model).run([x.numpy()]).values(), Bounded()(x), strict=True):
        np.testing.assert_array_equal(one, other.numpy(), strict=True)


def leading(x):
    """Numbers that come first, where operators have a tensor."""
    whole = x.long()
    waves = 2 * (np.arange(x.shape[1]) // 2) / x.shape[1]
    products = (
        torch.mul(2, x),
        torch.mul(2, whole),
        torch.mul(2.5, whole),
        x + torch.from_numpy(waves.astype("float32")),
    )
    return (
        *products,
        torch.sub(2.5, x),
        torch.add(1, x, alpha=3),
        torch.div(1, x),
        torch.floor_divide(7, whole.abs() + 1),
    )


class Leading(nn.Module):
    def forward(self, x):
        return leading(x)


def test_numbers_come_first():
    model = ep.export(Leading(), torch.randn(3, 4), dynamic={"x": {0: "batch"}})
    x = torch.randn(5, 4) * 3
    found = ep.Session(model, providers=["onnxruntime"]).run({"x": x.numpy()}).values()
    for one, wanted in zip(found, leading(x), strict=True):
        assert one.dtype == wanted.numpy().dtype
        np.testing.assert_allclose(one, wanted.numpy(), rtol=1e-6)
