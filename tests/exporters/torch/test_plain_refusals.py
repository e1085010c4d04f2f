"""What cannot be exported is said in the user's words: randomness of any library, packed sequences."""

import random

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pack_sequence, pad_packed_sequence

import entrepot as ep
from entrepot.exporters.torch.sources import module as source_of_modules

X = torch.randn(3, 4, generator=torch.Generator().manual_seed(0))


class Function(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function
        self.generator = np.random.default_rng(0)

    def forward(self, x):
        return self.function(self, x)


DRAWS = {
    "random.random": (lambda m, x: x * random.random(), "random at test_plain_refusals"),
    "random.gauss": (lambda m, x: x * random.gauss(0, 1), "random at test_plain_refusals"),
    "random.choice": (lambda m, x: random.choice((x, -x)), "random at test_plain_refusals"),
    "random.shuffle": (lambda m, x: x[random.sample(range(3), 3)], "random at test_plain_refusals"),
    "now and then": (lambda m, x: x if random.random() < 0.8 else x * 2, "random at test_plain_refusals"),
    "numpy": (lambda m, x: x + float(np.random.rand()), r"numpy\.random at test_plain_refusals"),  # noqa: NPY002
    "numpy choice": (lambda m, x: x[np.random.permutation(3)], r"numpy\.random at test_plain_refusals"),  # noqa: NPY002
    "own generator": (lambda m, x: x * m.generator.random(), "two calls with the same inputs differ"),
    "new generator": (lambda m, x: x * np.random.default_rng().random(), "two calls with the same inputs differ"),
    "torch": (lambda m, x: x * torch.rand(()), r"aten::rand at test_plain_refusals"),
    "torch choice": (lambda m, x: x if torch.rand(()) < 0.8 else -x, r"aten::rand at test_plain_refusals"),
}


@pytest.mark.parametrize("name", DRAWS)
def test_random_results_are_called_random_with_the_line_that_draws(name):
    function, place = DRAWS[name]
    states = random.getstate(), np.random.get_state()[1].copy(), torch.get_rng_state()  # noqa: NPY002
    with pytest.raises(ep.ConversionError, match=rf"results are random.*{place}.*random=True draws them in the graph"):
        ep.export(Function(function), X)
    assert random.getstate() == states[0]
    assert np.array_equal(np.random.get_state()[1], states[1])  # noqa: NPY002
    assert torch.equal(torch.get_rng_state(), states[2])


@pytest.mark.parametrize("draw", [random.random, np.random.rand, lambda: torch.rand(2).numel()])
def test_random_numbers_that_change_nothing_are_no_reason_to_refuse(draw):
    assert ep.export(Function(lambda m, x: x * 2 if draw() >= 0 else x), X, dynamic=False).report.ok


class Packing(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(4, 5, batch_first=True)

    def forward(self, x, lengths):
        packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        return pad_packed_sequence(self.lstm(packed)[0], batch_first=True)[0]


class Packed(Packing):
    def forward(self, x):
        return self.lstm(x)[0].data


def test_sequences_that_forward_packs_are_exported_by_a_later_way():
    net, x = Packing(), torch.randn(3, 6, 4)
    model = ep.export(net, (x, torch.tensor([6, 3, 4])))
    lengths = torch.tensor([2, 6, 5])
    (found,) = ep.Session(model).run((x, lengths)).values()
    np.testing.assert_allclose(found, net(x, lengths).detach().numpy(), rtol=1e-4, atol=1e-5)


def test_a_packed_sequence_is_no_input():
    packed = pack_sequence([torch.randn(4, 4), torch.randn(3, 4)])
    with pytest.raises(ep.InputError, match=r"value 'x': a PackedSequence cannot be an input.*padded tensor"):
        ep.export(Packed(), (packed,))


def test_a_branch_on_values_costs_no_axis_before_it_is_followed():
    """No capture succeeds, with whichever axes: giving up one after the other would only take longer."""
    told = []
    module = Function(lambda _, x: x * 2 if x.sum() > 0 else x - 1)
    model = ep.export(module, X, progress=told.append)
    assert model.inputs[0].shape == ("batch", "x_dim1")
    assert any("branches on the values" in line for line in told)
    assert not any("is fixed" in line for line in told)


def test_what_is_known_not_to_work_is_looked_for_once_however_many_ways_fail(monkeypatch):
    looked, told = [], []
    known = source_of_modules.known_not_to_work
    monkeypatch.setattr(source_of_modules, "known_not_to_work", lambda *given: looked.append(1) or known(*given))
    with pytest.raises(ep.VerificationError):
        ep.export(Function(lambda _, x: x + len(str(x.sum().item()))), X, progress=told.append)
    assert sum("trying another way" in line for line in told) > 2
    assert len(looked) == 1
