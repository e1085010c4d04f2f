"""Sizes that Python computes with fractions: the file has to compute what Python does, to the last bit."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import nn

import entrepot as ep

SIZES = [*range(1, 40), 57, 100, 333, 799, 800, 1333, 1443, 1450]


class Counted(nn.Module):
    """As many ones as a function makes of two sizes."""

    def __init__(self, count):
        super().__init__()
        self.count = count

    def forward(self, x):
        return torch.ones(self.count(x.shape[1], x.shape[2])), x.sum()


def by_shorter_side(h, w):
    scale = min(800 / min(h, w), 1333 / max(h, w))
    return math.floor(float(h) * scale)


def of_three(h, w):
    return max(h, w, 50)


def of_a_list(h, w):
    return min([h // 2, w, h + w])


def of_a_generator(h, w):
    return max(size + 1 for size in (h, w))


def of_a_size_and_a_fraction(h, w):
    return int(max(h * 0.3, 7.5))


@pytest.mark.parametrize(
    "count",
    [
        lambda h, w: int(h * 0.7),
        lambda h, w: int(w / 0.3),
        lambda h, w: round(h * 1.1),
        lambda h, w: math.ceil(h * (77 / w)),
        lambda h, w: int(math.sqrt(h * w) * 1.1 + 0.1),
        lambda h, w: 3 + int(-(h**2) * -0.01),
        by_shorter_side,
        of_three,
        of_a_list,
        of_a_generator,
        of_a_size_and_a_fraction,
    ],
)
def test_every_size_is_as_python_computes_it(count: Callable[[int, int], int]) -> None:
    model = ep.export(Counted(count).eval(), (torch.zeros(1, 64, 80),))
    session = ep.Session(model)
    shapes = [(h, w) for h in SIZES for w in (h, 2 * h + 1)]
    names = list(session.run({"x": np.zeros((1, 64, 80), np.float32)}))
    found = [len(session.run({"x": np.zeros((1, *shape), np.float32)})[names[0]]) for shape in shapes]
    assert found == [count(*shape) for shape in shapes]


def test_a_fraction_beside_a_tensor_keeps_its_type() -> None:
    class Scaled(nn.Module):
        def forward(self, x):
            return x * min(64 / x.shape[1], 96 / x.shape[2])

    for kind in (torch.float16, torch.float32, torch.float64):
        model = ep.export(Scaled(), (torch.ones(2, 8, 9, dtype=kind),))
        x = torch.ones(2, 300, 7, dtype=kind)
        (y,) = ep.Session(model).run({"x": x.numpy()}).values()
        np.testing.assert_allclose(y, Scaled()(x).numpy(), rtol=float(torch.finfo(kind).eps) * 2)
