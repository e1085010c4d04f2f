"""Products of as many matrices as the data say, also of none, which onnxruntime does not broadcast to."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

import entrepot as ep
from entrepot.exporters.torch.lowering.translate import _check_sizes

_ONES = torch.ones
PRODUCTS = {
    "a matrix before": lambda rows: torch.eye(4, 7) @ rows,
    "one matrix before": lambda rows: torch.eye(4, 7)[None] @ rows,
    "one matrix behind": lambda rows: rows @ torch.eye(7, 4)[None],
    "a matrix behind": lambda rows: rows @ torch.eye(7, 4),
    "a vector behind": lambda rows: rows @ _ONES(7),
    "a vector before": lambda rows: _ONES(7) @ rows,
    "rows and a vector": lambda rows: rows[:, 0] @ _ONES(7),
    "by name": lambda rows: torch.mv(rows[:, 0], _ONES(7)),
    "several behind": lambda rows: rows[:, None] @ _ONES(2, 7, 3),
    "several before": lambda rows: _ONES(2, 3, 7) @ rows[:, None],
    "of each other": lambda rows: rows @ rows.mT,
    "in indices": lambda rows: torch.einsum("ij,bjk->bik", torch.eye(4, 7), rows),
}


class Chosen(nn.Module):
    def __init__(self, product):
        super().__init__()
        self.product = product

    def forward(self, rows, marks):
        return self.product(rows[marks >= 0])


@pytest.mark.parametrize("name", PRODUCTS)
def test_products_of_those_that_were_chosen(name):
    module = Chosen(PRODUCTS[name])
    model = ep.export(module, (torch.rand(4, 7, 7), torch.tensor([0, -1, 2, 3])))
    session = ep.Session(model, providers=["onnxruntime"])
    for marks in ([0, -1, 2, 3], [-1, -1, -1], [-1], [1, 2]):
        rows = torch.rand(len(marks), 7, 7)
        (found,) = session.run({"rows": rows.numpy(), "marks": np.array(marks)}).values()
        wanted = module(rows, torch.tensor(marks)).numpy()
        assert found.shape == wanted.shape
        np.testing.assert_allclose(found, wanted, rtol=1e-5)


def test_three_complex_tensors_leave_their_sizes_open():
    class Spectra(nn.Module):
        def forward(self, x):
            x = torch.complex(x, x)
            return torch.einsum("bft,bcft,bdft->bfcd", x[:, 0], x, x.conj()).abs()

    model = ep.export(Spectra(), torch.randn(2, 3, 4, 5))
    assert not any(isinstance(size, int) for size in model.inputs[0].shape)


def test_sizes_that_a_translation_takes_for_numbers_are_named():
    sizes = {"x": {0: torch.export.Dim("batch")}}
    program = torch.export.export(nn.ReLU(), (torch.randn(2, 3),), dynamic_shapes={"input": sizes["x"]}, strict=False)
    _check_sizes(program, {"input": [0], "input_1": [0]})
    with pytest.raises(ep.ConversionError, match=r"takes the sizes input\.1 for numbers"):
        _check_sizes(program, {"input": [0, 1], "input_1": [0, 1]})
