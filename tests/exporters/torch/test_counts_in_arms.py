"""What a branch has found out about a number that depends on data holds in its arms."""

from __future__ import annotations

import numpy as np
import onnxruntime
import pytest
import torch
from torch import nn

import entrepot as ep


def at_most(x):
    found = x[x > 0]
    if len(found) > 6:
        found, _ = torch.topk(found, 6)
    return found


def at_least(x):
    found = x[x > 0]
    if not len(found) < 40:
        found = found[torch.topk(found, 40)[1]]
    elif len(found) < 12:
        found = torch.cat([found, found.new_zeros(12 - len(found))])
    return found


def as_many_as_rows(x):
    found, rows = x[x > 0], x.shape[0]
    return found.topk(rows)[0] if len(found) > rows else torch.cat([found, found.new_zeros(rows - len(found))])


def any_at_all(x):
    found = torch.nonzero(x > 0)
    if len(found) > 0:
        return x[found[:, 0]].mean(0), found[0]
    return x.mean(0), torch.zeros(2, dtype=torch.long)


@pytest.mark.parametrize("function", [at_most, at_least, as_many_as_rows, any_at_all])
def test_arms_rely_on_the_condition(function):
    class Module(nn.Module):
        def forward(self, x):
            return function(x)

    model = ep.export(Module(), torch.randn(6, 4, generator=torch.Generator().manual_seed(0)), progress=False)
    assert all(isinstance(size, str) for size in model.inputs[0].shape)
    session = onnxruntime.InferenceSession(model.to_proto().SerializeToString())
    for positive in (0, 1, 5, 6, 7, 11, 12, 13, 39, 40, 41, 56):
        x = torch.arange(56).add(1).where(torch.arange(56) < positive, -1).float().reshape(8, 7)
        wanted = function(x)
        wanted = [wanted] if isinstance(wanted, torch.Tensor) else wanted
        for one, other in zip(session.run(None, {"x": x.numpy()}), wanted, strict=True):
            np.testing.assert_allclose(one, other.numpy(), rtol=1e-6)


def test_an_arm_that_needs_more_than_its_condition_says_is_not_relied_on():
    class Module(nn.Module):
        def forward(self, x):
            found = x[x > 0]
            if len(found) > 3:
                found, _ = torch.topk(found, 6)  # of four or five, torch takes no six
            return found

    model = ep.export(Module(), torch.randn(6, 4, generator=torch.Generator().manual_seed(0)), progress=False)
    assert any("what is done there needs" in note for note in model.notes)
