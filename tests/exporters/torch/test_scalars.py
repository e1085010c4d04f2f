"""A size where operators usually have a constant: the file computes with the size that an axis has in a run."""

from __future__ import annotations

import numpy as np
import onnxruntime
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
