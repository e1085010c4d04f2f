"""Items are written where single numbers of the graph say, in all forms that Python has for that."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import entrepot as ep


class Writes(nn.Module):
    def __init__(self, write):
        super().__init__()
        self.write = write

    def forward(self, x):
        scores = x.clone()
        row, column = torch.unravel_index(x.sum(-1).argmax(), x.shape[:2])
        sized = [row.tolist() for _ in range(1)]  # a list of numbers: TorchScript does not take it
        self.write(scores, x, row, column)
        return scores * len(sized)


def write_row(scores, x, row, column):
    scores[row, :] = -torch.inf


def write_column(scores, x, row, column):
    scores[:, column] = x[:, 0].double() * 2


def write_values_that_broadcast(scores, x, row, column):
    scores[row] = x[None, :1, 0, None]
    scores[row, column] = 3


def write_behind_an_ellipsis(scores, x, row, column):
    scores[..., column % 3] = x[..., 0] * 3


def write_beside_slices_and_new_axes(scores, x, row, column):
    scores[None, row, :, 1:] = x[1, :, :2] * 5
    scores[1, column - x.shape[1], 0:2] += 7


def write_where_axes_are_apart(scores, x, row, column):
    scores[row, :, column % 3] = x[0, :, 0] * 3


def write_at_numbers_of_python(scores, x, row, column):
    scores[:, column.item() // 2] = 1.5
    scores[row.item(), column.item()] = x[0, 0] * 2


WRITES = [each for name, each in sorted(globals().items()) if name.startswith("write_")]


@pytest.mark.parametrize("write", WRITES, ids=lambda write: write.__name__)
def test_items_are_written_where_the_graph_says(write):
    x = torch.randn(4, 5, 3, generator=torch.Generator().manual_seed(0))
    model = ep.export(Writes(write), x)
    assert model.report.ok
    assert [str(size) for size in model.inputs[0].shape[:2]] == ["batch", "x_dim1"]
    for rows, columns in ((3, 3), (2, 7)):
        other = torch.randn(rows, columns, 3, generator=torch.Generator().manual_seed(rows))
        result = ep.Session(model, providers=["onnxruntime"]).run({"x": other.numpy()})["output"]
        torch.testing.assert_close(torch.from_numpy(result), Writes(write)(other))


class Scored(nn.Module):
    """Writes where a single truth says so: a number, a quotient that only counts there, and a whole tensor."""

    def forward(self, x, y):
        spread, error = (x - x.mean()).square().sum(), (x - y).square().sum()
        valid = spread > 1
        score = torch.ones_like(spread)
        score[valid] = 1 - error[valid] / spread[valid]
        score[error > 100] = 0.0
        rows = x.clone()
        rows[valid] = y
        return score, rows, x[error > 100]


@pytest.mark.parametrize("factor", [0.01, 1.0, 50.0])
def test_a_single_truth_says_whether_something_is_written(factor):
    generator = torch.Generator().manual_seed(0)
    x, y = torch.randn(2, 5, 3, generator=generator)
    model = ep.export(Scored(), (x, y), progress=False)
    x, y = factor * torch.randn(2, 7, 3, generator=generator)
    session = ep.Session(model, providers=["onnxruntime"])
    found = session.run({"x": x.numpy(), "y": y.numpy()})
    for one, other in zip(found.values(), Scored()(x, y), strict=True):
        torch.testing.assert_close(torch.from_numpy(one), other)


class OfEachRow(nn.Module):
    """Looks up, and writes, what a loop variable and tensors say that a slice keeps apart."""

    def forward(self, x):
        sums, y = [], torch.zeros_like(x)
        for row in range(x.shape[0]):
            at = torch.nonzero(x[row, 0] > 0)
            sums.append(x[row, :, at[:, 0], at[:, 1]].sum(1))
            y[row, 1:3, at[:, 0], at[:, 1]] = x[row, 0, at[:, 0], at[:, 1]]
        return torch.stack(sums), y


def test_a_loop_variable_beside_tensors_orders_axes_as_a_number():
    module = OfEachRow().eval()
    model = ep.export(module, torch.randn(3, 4, 5, 6))
    assert all(isinstance(size, str) for size in model.inputs[0].shape)
    x = torch.randn(2, 5, 7, 3)
    for found, expected in zip(ep.Session(model).run({"x": x.numpy()}).values(), module(x), strict=True):
        torch.testing.assert_close(torch.from_numpy(found), expected)
