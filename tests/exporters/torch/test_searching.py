"""Searches in what is not sorted are refused by the source, since torch promises no result for them."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

import entrepot as ep
from entrepot.exporters.torch.running.searching import searches_checked

_SORTED, _UNSORTED = torch.tensor([0.0, 1.0, 2.0, 3.0]), torch.tensor([3.0, 1.0, 2.0, 0.0])
_VALUES = torch.tensor([0.5, 1.0, 2.5, float("nan")])


@pytest.mark.parametrize("right", [False, True])
def test_searches_in_what_is_sorted_are_as_they_were(right):
    wanted = torch.searchsorted(_SORTED, _VALUES, right=right), torch.bucketize(_VALUES, _SORTED, right=right)
    with searches_checked():
        found = torch.searchsorted(_SORTED, _VALUES, right=right), torch.bucketize(_VALUES, _SORTED, right=right)
        by_order = torch.searchsorted(_SORTED.flip(0), _VALUES, right=right, sorter=torch.tensor([3, 2, 1, 0]))
    assert all(torch.equal(*pair) for pair in zip((*found, by_order), (*wanted, wanted[0]), strict=True))


@pytest.mark.parametrize(
    "search", [lambda: torch.searchsorted(_UNSORTED, _VALUES), lambda: torch.bucketize(0.5, _UNSORTED)]
)
def test_searches_in_what_is_not_sorted_are_errors(search):
    search()
    with searches_checked(), pytest.raises(RuntimeError, match="the sequence is not sorted"):
        search()
    search()


def test_searches_of_many_calls_at_once_are_not_looked_at():
    with searches_checked():
        found = torch.vmap(lambda value: torch.searchsorted(_UNSORTED, value))(_VALUES)
    assert found.shape == _VALUES.shape


class Resampled(nn.Module):
    def forward(self, weights: Tensor, at: Tensor) -> Tensor:
        return torch.searchsorted(weights.cumsum(0), at)


def test_a_search_that_goes_wrong_for_some_values_is_exported():
    """Negative weights, which are among the edge values, give sums that do not ascend."""
    model = ep.export(Resampled(), (torch.rand(6), torch.rand(3) * 3))
    assert "refused by the source" in str(model)
    assert all(isinstance(axis, str) for spec in model.inputs for axis in spec.shape)


class Interpolated(nn.Module):
    def forward(self, times: Tensor, values: Tensor, at: Tensor) -> Tensor:
        after = torch.searchsorted(times, at).clamp(1, times.shape[0] - 1)
        before = after - 1
        share = (at - times[before]) / (times[after] - times[before])
        return torch.lerp(values[before], values[after], share)


def test_times_of_other_lengths_are_times():
    times = torch.linspace(0, 1, 7) ** 2
    model = ep.export(Interpolated(), (times, torch.randn(7), torch.rand(5)))
    assert "needs times.0 == values.0" in str(model)
    assert "refused by the source" in str(model)  # at edge values
    assert "no other size proved" not in str(model)
