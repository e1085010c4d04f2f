"""Weights are kept as they are written to, and what is compiled or mapped inside a module is left alone."""

import pytest
import torch
from torch import nn
from torch.nn import functional

import entrepot as ep
from entrepot.exporters.structure import flatten
from entrepot.exporters.torch.arrays import TORCH
from entrepot.exporters.torch.running.eager import Eager
from entrepot.exporters.torch.running.guard import untouched
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


class Rescaled(nn.Module):
    """Halves its weight the first time that it is called, as RWKV does for inference."""

    def __init__(self):
        super().__init__()
        self.linear, self.halved = nn.Linear(3, 3), False

    def forward(self, x):
        if not self.halved:
            self.linear.weight.div_(2)
            self.halved = True
        return self.linear(x)


def test_a_copy_that_computes_in_double_keeps_the_weights_that_are_written_to():
    module, x = Rescaled(), torch.randn(2, 3)
    call = flatten(((x,), {}), arrays=TORCH)
    with untouched(module) as state:
        eager = Eager(module, call.tree, state)
        eager.require_function(call.tensors)
        double = eager.in_double(1 << 20)
        (wanted,) = eager(call.tensors).tensors
        for _ in range(2):
            (found,) = double([x.double()]).tensors
            torch.testing.assert_close(found, wanted.double(), rtol=1e-5, atol=1e-6)


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
