"""Counters that start as constants, in loops whose branches ask for them: nothing is known of them inside."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

import entrepot as ep
from entrepot.exporters.torch.rewriting import part
from entrepot.exporters.torch.upstream import FakeTensorMode
from tests.export_cases.modules.searching import LabelSmoother


class FewAtMost(nn.Module):
    def forward(self, x):
        out, found = x.clone(), torch.tensor(0)
        for i in range(x.shape[0]):
            if x[i] > 0:
                found = found + 1
                if found > 2:
                    out[i] = -x[i]
        return out, found


class Patience(nn.Module):
    def forward(self, x):
        best, waited, losses = x[0], torch.tensor(0.0), torch.zeros_like(x)
        for i in range(x.shape[0]):
            if x[i] < best:
                best, waited = x[i], torch.tensor(0.0)
            else:
                waited = waited + 1
                if waited >= 3:
                    losses[i] = best
        return losses, waited


@pytest.mark.parametrize("module", [LabelSmoother, FewAtMost, Patience])
def test_loops_that_count_from_a_constant_are_loops(module):
    model = ep.export(module(), (torch.randn(8),))
    assert "captured with its branches and loops rewritten" in str(model)
    session = ep.Session(model)
    for length in (1, 2, 7, 20):
        x = torch.randn(length)
        expected = module()(x)
        expected = expected if isinstance(expected, tuple) else (expected,)
        for found, wanted in zip(session.run({"x": x.numpy()}).values(), expected, strict=True):
            np.testing.assert_array_equal(found, wanted.numpy())


def test_what_stands_for_a_constant_is_not_the_memory_it_lies_in():
    with FakeTensorMode():
        counter = torch.tensor(0)
        assert counter.item() == 0
        [found] = part.stand_ins([counter], None, {})
        assert found.constant is None
