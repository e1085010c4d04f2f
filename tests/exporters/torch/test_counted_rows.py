"""Rows that are missing, too many, or joined again: sizes that bodies of branches and loops are given."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

import entrepot as ep
from tests.exporters.torch.control_flow import x


class Missing(nn.Module):
    def forward(self, x, mask):
        missing = x.shape[1] - mask.shape[1]
        mask = nn.functional.pad(mask, (0, missing)) if missing > 0 else 2 * mask[:, -missing:]
        return (x * mask[:, :, None]).cumsum(1)


class Shifted(nn.Module):
    def forward(self, x, mask):
        offset = x.shape[1] - mask.shape[1]
        h = torch.zeros_like(x[:, 0])
        for t in range(mask.shape[1]):
            h = torch.tanh(h + (t + offset) * mask[:, t, None])
        return h


@pytest.mark.parametrize("kind", [Missing, Shifted])
@pytest.mark.parametrize("count", [5, 9])
def test_a_difference_of_sizes_is_followed_whether_it_is_negative_or_not(kind, count):
    module = kind().eval()
    model = ep.export(module, (x(2, 7, 3), x(2, count)), progress=False)
    assert [spec.shape[1] for spec in model.inputs] == ["x_dim1", "mask_dim1"]
    for length, other in ((3, 8), (8, 3), (1, 12), (12, 1)):
        given = x(2, length, 3), x(2, other)
        result = ep.Session(model).run({"x": given[0].numpy(), "mask": given[1].numpy()})["output"]
        np.testing.assert_allclose(result, module(*given).numpy(), rtol=2e-4, atol=2e-5)


class JoinedAgain(nn.Module):
    """As models do that put features of images into a text, with a check of the values."""

    def forward(self, x):
        torch._check_tensor_all_with(ValueError, torch.isfinite(x), "finite")
        rows = list(x)
        return torch.cat(rows, dim=0), torch.cat(rows, -1), torch.stack(rows, 1), torch.stack(x.unbind(1), -1)


def test_rows_of_a_tensor_are_joined_again_however_many_there_are():
    module = JoinedAgain().eval()
    model = ep.export(module, x(2, 5, 4), progress=False)
    assert model.inputs[0].shape == ("batch", "x_dim1", "x_dim2")
    given = x(3, 7, 4)
    results = ep.Session(model).run({"x": given.numpy()}).values()
    for mine, theirs in zip(results, module(given), strict=True):
        np.testing.assert_array_equal(mine, theirs.numpy())


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
def test_numbers_are_repeated_as_often_as_counts_say(dtype):
    class Segments(nn.Module):
        def forward(self, x, ends):
            return torch.repeat_interleave(torch.arange(len(ends) - 1), ends[1:] - ends[:-1]), x.sum()

    calls = [(x(8, 4), torch.tensor(ends, dtype=dtype)) for ends in ([0, 3, 8], [0, 1, 1, 6, 8], [0, 8])]
    model = ep.export(Segments(), calls[0])
    for given in calls:
        feeds = {spec.name: each.numpy() for spec, each in zip(model.inputs, given, strict=True)}
        found = ep.Session(model, providers=["onnxruntime"]).run(feeds)["output_0"]
        np.testing.assert_array_equal(found, Segments()(*given)[0].numpy())
