import itertools

import pytest
import torch
import torch.nn.functional as F  # noqa: N812 - its name everywhere
from torch import nn

import entrepot as ep
from entrepot.exporters.torch.translations.embedding import embedding_bag

WEIGHT = torch.randn(10, 4, generator=torch.Generator().manual_seed(0))
RECTANGLE = torch.tensor([[1, 2, 0], [0, 0, 0], [9, 9, 3]])
RAGGED = torch.tensor([1, 2, 4, 5, 4, 3, 2, 9])


@pytest.mark.parametrize(("mode", "padding"), [*itertools.product(["sum", "mean", "max"], [None, 0, -10, 9])])
def test_rectangular_bags_are_those_of_torch(mode, padding):
    expected = F.embedding_bag(RECTANGLE, WEIGHT, mode=mode, padding_idx=padding)
    torch.testing.assert_close(embedding_bag(RECTANGLE, WEIGHT, mode=mode, padding_idx=padding), expected)


@pytest.mark.parametrize(
    ("mode", "padding", "last"), [*itertools.product(["sum", "mean", "max"], [None, 2], [False, True])]
)
def test_ragged_bags_are_those_of_torch(mode, padding, last):
    offsets = torch.tensor([0, 3, 3, 8] if last else [0, 3, 3, 7])
    how = {"mode": mode, "padding_idx": padding, "include_last_offset": last}
    torch.testing.assert_close(
        embedding_bag(RAGGED, WEIGHT, offsets, **how), F.embedding_bag(RAGGED, WEIGHT, offsets, **how)
    )


def test_weights_per_row_count():
    each = torch.linspace(-1, 2, 9).reshape(3, 3)
    expected = F.embedding_bag(RECTANGLE, WEIGHT, mode="sum", per_sample_weights=each)
    torch.testing.assert_close(embedding_bag(RECTANGLE, WEIGHT, mode="sum", per_sample_weights=each), expected)


class Recurrent(nn.Module):
    """All three kinds in a row, each with other options."""

    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(4, 3, num_layers=2, bidirectional=True)
        self.gru = nn.GRU(6, 5, batch_first=True, bias=False)
        self.rnn = nn.RNN(5, 2, nonlinearity="relu", bidirectional=True)

    def forward(self, x, state):
        y, (h, c) = self.lstm(x, (state, state * 0.5))
        y, g = self.gru(y)
        y, r = self.rnn(y)
        return y, h, c, g, r


@pytest.fixture(scope="module")
def recurrent():
    torch.manual_seed(0)
    module = Recurrent().eval()
    return module, ep.export(module, (torch.randn(5, 1, 4), torch.randn(4, 1, 3)))


def test_recurrences_stay_operators_and_follow_length_and_batch(recurrent):
    _, model = recurrent
    kinds = [node.op_type for node in model.ir.graph]
    assert (kinds.count("LSTM"), kinds.count("GRU"), kinds.count("RNN")) == (2, 1, 1)
    assert "Loop" not in kinds
    assert [spec.shape for spec in model.inputs] == [("x_dim0", "batch", 4), (4, "batch", 3)]


def test_packed_weights_are_named_by_their_layer_and_are_no_larger(recurrent):
    module, model = recurrent
    names = list(model.ir.graph.initializers)
    assert {"lstm.W_l0", "lstm.R_l1", "lstm.B_l1", "gru.W_l0", "rnn.W_l0"} <= set(names)
    assert not any("weight_ih" in name for name in names)
    weights = sum(parameter.nbytes for parameter in module.parameters())
    assert sum(value.const_value.nbytes for value in model.ir.graph.initializers.values()) <= 1.05 * weights
