"""Networks that are lists of layers themselves, or hold them."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import entrepot as ep

NETWORKS = {
    "chain": lambda: nn.Sequential(nn.Linear(6, 5), nn.ReLU(), nn.Linear(5, 3), nn.LayerNorm(3), nn.GELU()),
    "chain with a reshape": lambda: nn.Sequential(
        nn.Linear(6, 4), nn.Unflatten(1, (2, 2)), nn.Flatten(), nn.Linear(4, 5), nn.LayerNorm(5), nn.GELU()
    ),
    "chain of chains": lambda: nn.Sequential(
        nn.Sequential(nn.Linear(6, 4), nn.Tanh()), nn.Sequential(nn.Linear(4, 4), nn.Tanh()), nn.Flatten(0), nn.ReLU()
    ),
}


@pytest.mark.parametrize("name", NETWORKS)
def test_they_are_lists_again_with_the_same_keys_and_results(name: str) -> None:
    torch.manual_seed(0)
    original = NETWORKS[name]().eval()
    net = ep.to_torch(ep.export(original, torch.randn(3, 6), verify=False))
    assert net.report.ok
    assert list(net.state_dict()) == list(original.state_dict())
    x = torch.randn(5, 6)
    torch.testing.assert_close(net(x), original(x), rtol=1e-5, atol=1e-6)
