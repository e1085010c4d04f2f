"""``int``, ``float`` and ``len`` of sizes, in captures of modules as they are."""

from __future__ import annotations

import functools
import sys
import types

import pytest
import torch
from torch import nn

import entrepot as ep
from entrepot.exporters.torch.capture import blame
from entrepot.exporters.torch.capture.casts import casts_followed


def halved(size):
    return int(size / 2)


class Halves(nn.Module):
    def forward(self, x):
        return x.reshape(len(x), 2, halved(x.shape[1])).sum(1)


class Scaled(nn.Module):
    def forward(self, x):
        return x * float(len(x)) + self.shift(x.shape)

    @staticmethod
    def shift(shape):
        return int(shape[1]) if isinstance(shape[1], int | torch.SymInt) and isinstance(len(shape), int) else 0


def decorated(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        return function(*args, **kwargs)

    return wrapper


@decorated
def third(size):
    return int(size) // 3


class Decorated(nn.Module):
    """Wrapped by what wraps another function, too, with the same code; calls a method of a part."""

    def __init__(self):
        super().__init__()
        self.part = Part()

    @decorated
    def forward(self, x):
        return self.part.divided(x, third(x.shape[1]))


class Part(nn.Module):
    def divided(self, x, by):
        return x.reshape(len(x), 3, by).mean(1)


class Called(nn.Module):
    """Prepares its argument before ``forward`` is called."""

    def __call__(self, x):
        return super().__call__(x.reshape(x.shape[0], 3, int(x.shape[1]) // 3))

    def forward(self, x):
        return x.sum(1)


class Typed(nn.Module):
    """Asks for the class itself, which is left alone here."""

    def forward(self, x):
        return x + torch.ones(3, dtype=int) if type(x.shape[-1]) is int else x


class Pooled(nn.Module):
    """Reads how many rows there will be of a tensor before ``forward`` is called, and complains by that afterwards."""

    def __call__(self, x, index, rows=None):
        if rows is None:
            rows = int(index.max()) + 1 if index.numel() > 0 else 0
        try:
            return super().__call__(x, index, rows)
        except IndexError as error:
            if rows <= int(index.max()):
                raise ValueError(f"{rows} rows are too few") from error
            raise

    def forward(self, x, index, rows=None):
        return x.new_zeros(rows, x.shape[1]).index_add(0, index, x)


library = types.ModuleType("library")
library.part = types.ModuleType("library.part")
exec("def in_rows(x):\n    return x.reshape(len(x), -1).sum(1) if len(x) > 0 else x", vars(library.part))


class ByPath(nn.Module):
    """Calls a function of a library by its path."""

    def forward(self, x):
        return library.part.in_rows(x)


class Keeping(nn.Module):
    """Keeps the function that it calls."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


class Asks(nn.Module):
    """Checks that a number is a whole one, which a size is."""

    def forward(self, x, count=None):
        count = x.shape[1] if count is None else count
        if not (isinstance(count, int) and count > 0):
            raise ValueError("count has to be a positive integer")
        return x.sum(1) / count


class Counted(nn.Module):
    """Counts with what it asks of sizes: Python's truths are numbers."""

    def forward(self, x):
        longer = torch.cat([x, x[:, : 1 + int(x.shape[0] > 6)]], 1)
        return longer * (float(x.shape[0] > 6) + 0.5)


class FirstTurn(nn.Module):
    """Counts with what it asks of a counter, in a loop that ends when the values say so."""

    def forward(self, x):
        step = 0
        while (x.abs() > 1).any():
            x = x * 0.5 + float(step == 0) + 2 * int(step > 1)
            step += 1
            if step > 9:
                break
        return x, step


class Behind(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, *tensors):
        return (self.inner(*tensors),)


@pytest.mark.parametrize(
    "module", [Halves(), Scaled(), Decorated(), Called(), ByPath(), Asks(), Keeping(library.part.in_rows)]
)
def test_sizes_stay_sizes_in_one_capture(module):
    dims = {(0, 0): torch.export.Dim.AUTO, (0, 1): torch.export.Dim.AUTO}
    program = blame.export_flat(Behind(module).eval(), [torch.randn(5, 6)], dims)
    (given,) = [
        node.meta["val"] for node in program.graph.nodes if node.op == "placeholder" and node.name == "tensors_0"
    ]
    assert all(isinstance(size, torch.SymInt) for size in given.shape)
    model = ep.export(module, torch.randn(5, 6), progress=False)
    assert model.report.ok
    assert not any(isinstance(size, int) for size in model.inputs[0].shape)
    assert not any("rewritten" in note for note in model.notes)


@pytest.mark.parametrize(("module", "way"), [(Counted(), "as it is"), (FirstTurn(), "rewritten")])
def test_a_truth_about_sizes_counts(module, way):
    model = ep.export(module, torch.randn(5, 6) + 4, progress=False)
    assert any("rewritten" in note for note in model.notes) == (way == "rewritten")
    for rows in (2, 6, 7, 11):
        for scale in (0.1, 40):
            x = torch.randn(rows, 6) * scale
            expected = module(x)
            expected = expected if isinstance(expected, tuple) else (expected,)
            for found, wanted in zip(ep.Session(model).run({"x": x.numpy()}).values(), expected, strict=True):
                torch.testing.assert_close(torch.from_numpy(found), torch.as_tensor(wanted))


def test_a_size_that_a_tensor_holds_is_one():
    model = ep.export(Pooled(), (torch.randn(4, 3), torch.tensor([0, 0, 1, 2])), progress=False)
    x, index = torch.randn(6, 3), torch.tensor([1, 0, 4, 2, 1, 1])
    (found,) = ep.Session(model).run({"x": x.numpy(), "index": index.numpy()}).values()
    torch.testing.assert_close(torch.from_numpy(found), Pooled()(x, index))


def test_a_class_that_is_more_than_called_is_left_alone():
    model = ep.export(Typed(), torch.randn(2, 3), progress=False)
    assert model.report.ok


def test_names_are_taken_back_and_those_of_the_module_left(monkeypatch):
    names = vars(sys.modules[__name__])
    with casts_followed(Halves()):
        assert (names["len"]("ab"), names["int"]("7"), names["int"]("11", 2)) == (2, 7, 3)
        assert isinstance(3, names["int"])
        assert issubclass(bool, names["int"])
    assert not {"int", "float", "len"} & names.keys()
    monkeypatch.setitem(names, "len", len)
    with casts_followed(Halves()):
        assert names["len"] is len
