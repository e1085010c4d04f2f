"""Modules that raise errors of kinds that libraries define for themselves."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import entrepot as ep


class ShapeError(Exception):
    """As libraries for shapes have it: neither a ValueError nor a RuntimeError."""


class Strict(nn.Module):
    """Takes rows of a width, and at least so many of them."""

    def __init__(self, least):
        super().__init__()
        self.least = least

    def forward(self, x):
        if x.shape[1] != 4 or x.shape[0] < self.least:
            raise ShapeError(f"{tuple(x.shape)} does not fit")
        return x * 2


def test_sizes_that_a_module_refuses_by_an_error_of_its_own_are_fixed():
    model = ep.export(Strict(0), torch.ones(3, 4))
    assert model.inputs[0].shape == ("batch", 4)
    assert any("ShapeError: (3, 5) does not fit" in note and "test_foreign_errors.py" in note for note in model.notes)


def test_a_sample_that_is_refused_so_is_an_error_that_says_it():
    with pytest.raises(
        ep.InputError, match=r"does not take the sample: ShapeError: \(3, 4\) does not fit, at test_foreign_errors.py"
    ):
        ep.export(Strict(5), torch.ones(3, 4))


class Slow(nn.Module):
    """Has a branch by values, and refuses no rows."""

    def forward(self, x):
        if x.shape[0] == 0:
            raise ShapeError("nothing to do")
        if x.sum() > 0:
            return x + 1
        return x * 3


def test_it_is_known_in_every_way_of_capturing():
    model = ep.export(Slow(), torch.ones(3, 4))
    assert model.report.ok
