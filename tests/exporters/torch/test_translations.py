import importlib
import itertools
import pkgutil
from collections import Counter

import pytest
import torch
import torch.nn.functional as F  # noqa: N812 - its name everywhere
from torch import nn

import entrepot as ep
from entrepot.exporters.torch import translations
from entrepot.exporters.torch.translations.attention import scaled_dot_product_attention
from entrepot.exporters.torch.translations.distance import cdist, pdist
from entrepot.exporters.torch.translations.embedding import embedding_bag
from entrepot.exporters.torch.translations.ordering import bucketize, searchsorted

WEIGHT = torch.randn(10, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
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
    each = torch.linspace(-1, 2, 9, dtype=WEIGHT.dtype).reshape(3, 3)
    expected = F.embedding_bag(RECTANGLE, WEIGHT, mode="sum", per_sample_weights=each)
    torch.testing.assert_close(embedding_bag(RECTANGLE, WEIGHT, mode="sum", per_sample_weights=each), expected)


def _masks():
    some = torch.rand(2, 1, 5, 7, generator=torch.Generator().manual_seed(1)) > 0.5
    some[0, 0, 2] = False  # a row that may attend to nothing
    return {
        "none": None,
        "bool": some,
        "float": torch.zeros(5, 7, dtype=torch.float64).masked_fill(~some[0, 0], -torch.inf),
    }


@pytest.mark.parametrize("mask", ["none", "bool", "float"])
@pytest.mark.parametrize("how", [{}, {"scale": 0.3}, {"enable_gqa": True}], ids=str)
def test_attention_is_that_of_torch(mask, how):
    generator = torch.Generator().manual_seed(0)
    query = torch.randn(2, 4, 5, 8, generator=generator, dtype=torch.float64)
    key, value = torch.randn(2, 2, 2 if "enable_gqa" in how else 4, 7, 8, generator=generator, dtype=torch.float64)
    args = (query, key, value, _masks()[mask])
    torch.testing.assert_close(scaled_dot_product_attention(*args, **how), F.scaled_dot_product_attention(*args, **how))


def test_causal_attention_is_that_of_torch_for_any_rank():
    query, key, value = torch.randn(3, 2, 5, 8, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    for axes in (query, key, value), (query[0], key[0], value[0]):
        torch.testing.assert_close(
            scaled_dot_product_attention(*axes, is_causal=True), F.scaled_dot_product_attention(*axes, is_causal=True)
        )


@pytest.mark.parametrize("right", [False, True])
def test_searching_is_that_of_torch(right):
    rows = torch.tensor([[1.0, 2.0, 2.0, 5.0], [0.0, 0.0, 3.0, 4.0]])
    values = torch.tensor([[0.0, 2.0, 9.0], [0.0, 3.5, 4.0]])
    assert torch.equal(searchsorted(rows, values, right=right), torch.searchsorted(rows, values, right=right))
    assert torch.equal(bucketize(values, rows[0], right=right), torch.bucketize(values, rows[0], right=right))
    order = torch.tensor([[3, 0, 1, 2], [3, 1, 0, 2]])
    shuffled = torch.empty_like(rows).scatter(1, order, rows)
    assert torch.equal(searchsorted(shuffled, values, sorter=order), torch.searchsorted(rows, values))


@pytest.mark.parametrize("p", [0.0, 1.0, 2.0, 3.0, float("inf")])
def test_distances_are_those_of_torch(p):
    one, other = torch.randn(2, 5, 3, dtype=torch.float64), torch.randn(4, 3, dtype=torch.float64)
    torch.testing.assert_close(cdist(one, other, p), torch.cdist(one, other, p), atol=1e-12, rtol=1e-12)
    torch.testing.assert_close(pdist(other, p), torch.pdist(other, p), atol=1e-12, rtol=1e-12)
    torch.testing.assert_close(pdist(other[:1], p), torch.pdist(other[:1], p))


class Ordered(nn.Module):
    """Equal values keep their order; products of any sign; a selection of unknown length."""

    def forward(self, x):
        values, indices = torch.sort(x.round(), dim=0, stable=True, descending=True)
        return values, indices, torch.argsort(x, dim=1, stable=True), x.cumprod(1), torch.masked_select(x, x[:, :1] > 0)


def test_sorting_products_and_selections_are_translated():
    model = ep.export(Ordered(), torch.randn(6, 3, generator=torch.Generator().manual_seed(0)))
    assert model.inputs[0].shape == ("batch", "x_dim1")


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
    assert [spec.shape for spec in model.inputs] == [("batch", "x_dim1", 4), (4, "x_dim1", 3)]


def test_packed_weights_are_named_by_their_layer_and_are_no_larger(recurrent):
    module, model = recurrent
    names = list(model.ir.graph.initializers)
    assert {"lstm.W_l0", "lstm.R_l1", "lstm.B_l1", "gru.W_l0", "rnn.W_l0"} <= set(names)
    assert not any("weight_ih" in name for name in names)
    weights = sum(parameter.nbytes for parameter in module.parameters())
    assert sum(value.const_value.nbytes for value in model.ir.graph.initializers.values()) <= 1.05 * weights


@pytest.mark.parametrize("table", ["REPLACEMENTS", "TRANSLATIONS"])
def test_each_function_is_replaced_in_one_place(table):
    modules = pkgutil.iter_modules(translations.__path__, f"{translations.__name__}.")
    found = Counter(key for each in modules for key in getattr(importlib.import_module(each.name), table, {}))
    assert found
    assert [key for key, count in found.items() if count > 1] == []


class WithNothing(nn.Module):
    """Puts tensors in a row after one axis without elements, which torch takes for nothing of any rank."""

    def forward(self, x):
        return torch.cat([x, x.new_empty(0, dtype=torch.float64), 2 * x], -1), torch.cat([x[0, :0], x])


def test_an_axis_without_elements_adds_nothing_but_its_type():
    model = ep.export(WithNothing().eval(), torch.randn(3, 5))
    assert [output.dtype for output in model.outputs] == ["float64", "float32"]
    assert all(isinstance(size, str) for size in model.inputs[0].shape)
