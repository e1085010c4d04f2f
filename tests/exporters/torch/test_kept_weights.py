"""Weights are kept as they are written to, and what is compiled or mapped inside a module is left alone."""

import pytest
import torch
from torch import nn
from torch.nn import functional

import entrepot as ep
from entrepot.exporters.torch.running.kept_weights import WeightKeeper


def limited(weight):
    functional.embedding(torch.tensor([0]), weight, None, 0.1)


def replaced(weight):
    weight.data = weight.data * 2


def filled(weight):
    weight.detach().view(-1)[0] = 5.0


def several(weight):
    torch._foreach_mul_([weight], 2.0)


def into(weight):
    torch.add(weight, 1, out=weight.detach())


@pytest.mark.parametrize("write", [limited, replaced, filled, several, into, lambda weight: weight.clamp_(-0.1, 0.1)])
def test_the_value_before_is_kept_however_a_weight_is_written_to(write):
    weight, other = nn.Parameter(torch.randn(3, 2)), nn.Parameter(torch.randn(3, 2))
    before = weight.detach().clone()
    with torch.no_grad(), WeightKeeper([(weight, 0), (other, 0)]) as keeper:
        functional.embedding(torch.tensor([1]), other)
        write(weight)
    assert not torch.equal(weight, before)
    ((found, _, value),) = keeper.kept.values()
    assert found is weight
    assert torch.equal(value, before)


def test_weights_that_share_memory_are_kept_together():
    memory = torch.randn(5)
    weights = [nn.Parameter(memory[:2]), nn.Parameter(memory[2:])]
    before = memory.clone()
    with torch.no_grad(), WeightKeeper([(weight, 0) for weight in weights]) as keeper:
        weights[1].mul_(2)
        memory.fill_(0)
    for weight, _, value in keeper.kept.values():
        weight.data.copy_(value)
    assert torch.equal(memory, before)


class Conditional(nn.Module):
    def forward(self, x):
        return torch.cond(x.sum() > 0, lambda y: y + 1, lambda y: y * 2, (x,))


class Mapped(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 3)

    def forward(self, x):
        return torch.func.vmap(torch.func.jacrev(self.linear))(x).add_(1)


@pytest.mark.parametrize("kind", [Conditional, Mapped])
def test_functions_that_take_functions_are_run_as_ever(kind):
    module = kind().eval()
    assert isinstance(ep.export(module, torch.randn(2, 3)).inputs[0].shape[0], str)
    with torch.no_grad():
        assert module(torch.ones(4, 3)).shape[0] == 4
