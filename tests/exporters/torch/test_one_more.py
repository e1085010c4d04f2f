"""Layers and factorisations of as many rows as the data say, also of none."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

import entrepot as ep


class Chosen(nn.Module):
    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def forward(self, rows, marks):
        made = self.layer(rows[marks >= 0])
        return tuple(made) if isinstance(made, tuple) else made


def _flat(made):
    return [made] if isinstance(made, torch.Tensor) else [each for part in made for each in _flat(part)]


def _squares(rows):
    return rows @ rows.mT + torch.eye(rows.shape[-1])


LAYERS = {
    "lstm": (nn.LSTM(6, 4, batch_first=True), (9, 6)),
    "both ways": (nn.LSTM(6, 4, num_layers=2, bidirectional=True, batch_first=True), (9, 6)),
    "gru": (nn.GRU(6, 4, batch_first=True), (9, 6)),
    "rnn": (nn.RNN(6, 4, batch_first=True), (9, 6)),
    "groups": (nn.GroupNorm(2, 4), (4, 6)),
    "groups of vectors": (nn.GroupNorm(2, 4), (4,)),
    "eigenvalues": (lambda rows: torch.linalg.eigvalsh(_squares(rows)), (3, 3)),
    "both of them": (lambda rows: torch.linalg.eigh(_squares(rows)).eigenvalues, (3, 3)),
    "triangles": (
        lambda rows: torch.linalg.solve_triangular(_squares(rows).tril(), rows[:, :, :1], upper=False),
        (3, 3),
    ),
}


@pytest.mark.parametrize("name", LAYERS)
def test_layers_of_what_was_chosen(name):
    layer, shape = LAYERS[name]
    module = Chosen(layer).eval()
    model = ep.export(module, (torch.rand(4, *shape), torch.tensor([0, -1, 2, 3])))
    assert isinstance(model.inputs[0].shape[0], str)
    session = ep.Session(model, providers=["onnxruntime"])
    for marks in ([0, -1, 2, 3], [-1, -1, -1], [-1], [1, 2]):
        rows = torch.rand(len(marks), *shape)
        feeds = {"rows": rows.numpy(), "marks": np.array(marks)}
        with torch.no_grad():
            wanted = _flat(module(rows, torch.tensor(marks)))
        for found, each in zip(session.run(feeds).values(), wanted, strict=True):
            assert found.shape == each.shape
            np.testing.assert_allclose(found, each.numpy(), rtol=1e-4, atol=1e-5)
