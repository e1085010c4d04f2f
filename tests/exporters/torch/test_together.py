"""Conditions on several sizes at once, which a change of one size, or of all by chance, may keep to."""

import itertools
import math

import numpy as np
import pytest
import torch
from torch import nn

import entrepot as ep


class ByCondition(nn.Module):
    """Another result where a condition on frames, rows and columns holds."""

    def __init__(self, condition):
        super().__init__()
        self.condition = condition

    def forward(self, x):
        if self.condition(*x.shape[1:]):
            return x * 2 + 1
        return x - 3


class PaddedTokens(nn.Module):
    """As many tokens as a picture has elements, padded to the next multiple of eight."""

    def forward(self, x):
        tokens = x.flatten(1)
        pad = -tokens.shape[1] % 8
        if pad > 0:
            return torch.cat([tokens, tokens[:, -1:].repeat(1, pad)], 1)
        return tokens * 2


class CommonDivisor(nn.Module):
    """A number that Python makes of two sizes, which is 1 for most."""

    def forward(self, x):
        return x * math.gcd(x.shape[1], x.shape[2])


CONDITIONS = {
    "a multiple in the sample": (lambda f, h, w: f * h * w % 8 == 0, (2, 4, 4)),
    "half of another": (lambda f, h, w: h // 2 == w, (3, 5, 7)),
    "equal": (lambda f, h, w: h == w, (1, 6, 4)),
    "larger, of a square": (lambda f, h, w: h > w, (2, 8, 8)),
    "even together, of a square": (lambda f, h, w: (h + w) % 2 == 0, (2, 8, 8)),
    "much longer": (lambda f, h, w: max(h, w) > 2 * min(h, w), (2, 8, 8)),
    "a product": (lambda f, h, w: h * w > 40, (3, 5, 7)),
}


class Halved(nn.Module):
    """A condition on half of the height and half of the width, both of which go in steps of two."""

    def __init__(self, condition):
        super().__init__()
        self.condition = condition

    def forward(self, x):
        y = nn.functional.pixel_unshuffle(x, 2)
        return y * 2 if self.condition(*y.shape[2:]) else y + 1


SIZES = (2, 3), (1, 2, 3), (2, 5, 8, 14), (1, 4, 5, 7, 8)
EVEN = (3,), (1,), (2, 6, 8, 12, 16), (4, 6, 8, 12, 14)


def wrong(module, sample, choices=SIZES):
    """The sizes of other calls for which a file does not give what the module gives."""
    model = ep.export(module, sample, progress=False)
    session = ep.Session(model, providers=["cpu"])
    found = []
    for sizes in itertools.product(*choices):
        x = torch.randn(sizes, generator=torch.Generator().manual_seed(0))
        (y,) = session.run([x.numpy()]).values()
        expected = module(x).numpy()
        if y.shape != expected.shape or not np.array_equal(y, expected):
            found.append(sizes)
    return found


@pytest.mark.parametrize("name", CONDITIONS)
def test_a_condition_on_several_sizes_is_followed(name):
    condition, sizes = CONDITIONS[name]
    assert wrong(ByCondition(condition).eval(), torch.randn(2, *sizes)) == []


@pytest.mark.parametrize("condition", [lambda h, w: h == w, lambda h, w: h // 2 == w], ids=["equal", "half"])
def test_a_condition_on_halves_of_sizes_is_followed(condition):
    assert wrong(Halved(condition).eval(), torch.randn(2, 1, 10, 14), EVEN) == []


@pytest.mark.parametrize("sizes", [(2, 8, 8), (2, 4, 4), (3, 5, 7)], ids=str)
def test_tokens_are_padded_at_other_sizes_as_well(sizes):
    assert wrong(PaddedTokens().eval(), torch.randn(4, *sizes)) == []


def test_axes_that_a_square_sample_ties_are_tried_in_another_way():
    """One of the ways follows the branch; the first one alone would hold for squares."""
    model = ep.export(ByCondition(lambda f, h, w: h > w).eval(), torch.randn(2, 2, 8, 8), progress=False)
    assert len(set(model.inputs[0].shape)) == 4
    assert "ties x.2, x.3 together" in model.report.summary() + str(model)


def test_what_python_makes_of_sizes_is_looked_at_where_they_have_divisors_in_common():
    """A trace of coprime sizes multiplies by 1, and is right for their neighbours."""
    model = ep.export(CommonDivisor().eval(), torch.randn(2, 5, 7), progress=False)
    assert model.inputs[0].shape == ("batch", 5, 7)
