"""Slices that are written to: as torch does it, at sizes that leave nothing of them, too, and without transposing."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

import entrepot as ep
from entrepot.exporters.torch.translations.parts_replaced import slice_scatter

WRITES = {
    "two_ends": lambda y: y[:, 2:5].mul_(3),
    "one_end": lambda y: y[:, 3:].mul_(3),
    "up_to": lambda y: y[:, :-2].mul_(3),
    "between": lambda y: y[:, 2:-1].mul_(3),
    "from_behind": lambda y: y[:, -3:-1].mul_(3),
    "never": lambda y: y[:, 4:2].mul_(3),
    "last": lambda y: y[:, -1].mul_(3),
    "one": lambda y: y[:, 1].mul_(3),
    "last_but_one": lambda y: y[:, -2].mul_(3),
    "half": lambda y: y[:, y.shape[1] // 2 :].mul_(3),
    "parts_of_sizes": lambda y: y[:, y.shape[1] // 3 : y.shape[1] // 2].mul_(3),
    "a_part_of_a_part": lambda y: y[1, :, 2:4].mul_(3),
}


class Writing(nn.Module):
    def __init__(self, name):
        super().__init__()
        self.name = name

    def forward(self, x):
        y = x + 1
        WRITES[self.name](y)
        return y


@pytest.mark.parametrize("name", WRITES)
def test_what_is_written_stands_where_torch_has_it(name):
    module = Writing(name)
    model = ep.export(module, torch.randn(3, 9, 7))
    assert not {"Transpose", "ScatterND", "ScatterElements"} & {node.op_type for node in model.ir.graph}
    session = ep.Session(model)
    for length in (2, 3, 4, 12):
        x = torch.randn(2, length, 7)
        (found,) = session.run({model.inputs[0].name: x.numpy()}).values()
        np.testing.assert_allclose(found, module(x).numpy(), rtol=1e-6)


@pytest.mark.parametrize(("width", "kind"), [(7, "ScatterElements"), (5000, "Concat")])
def test_a_few_numbers_at_known_places_are_scattered(width, kind, monkeypatch):
    monkeypatch.setitem(WRITES, "other", lambda y: y[1].mul_(3))
    module, x = Writing("other"), torch.randn(3, width)
    model = ep.export(module, x, dynamic=False)
    assert kind in {node.op_type for node in model.ir.graph}
    (found,) = ep.Session(model).run({model.inputs[0].name: x.numpy()}).values()
    np.testing.assert_allclose(found, module(x).numpy(), rtol=1e-6)


def test_a_slice_that_ends_before_it_begins_is_left_to_torch():
    x = torch.randn(2, 5, 7)
    assert slice_scatter(x, x[:, -1:-3], 1, -1, -3) is NotImplemented
    torch.testing.assert_close(slice_scatter(x, x[:, -3:-1], 1, -3, -1), x)


@pytest.mark.parametrize("write", [lambda y: y[:, ::2].mul_(3), lambda y: y[:, -3:5].mul_(3)], ids=["steps", "mixed"])
def test_other_slices_are_left_to_torch(write, monkeypatch):
    monkeypatch.setitem(WRITES, "other", write)
    model = ep.export(Writing("other"), torch.randn(3, 9, 7))
    assert "ScatterND" in {node.op_type for node in model.ir.graph}
