"""Functions of Python's libraries that run over what varies, and items that are stored several at once."""

import functools
import itertools
import operator

import pytest
import torch
import torch.nn.functional as F  # noqa: N812 - its name everywhere
from torch import nn

import entrepot as ep
from entrepot.exporters.options import Options
from entrepot.exporters.paths.reading import Irregular
from entrepot.exporters.paths.rolling import columns
from entrepot.exporters.torch.rewriting import in_python
from entrepot.exporters.torch.sources.module import ModuleSource
from entrepot.exporters.torch.sources.other_ways import capture_traced


class Reduced(nn.Module):
    def forward(self, x, *, decay=0.5):  # TorchScript takes no keywords only
        first = functools.reduce(lambda a, b: torch.tanh(a * decay + b), x.unbind(1))
        return first + functools.reduce(torch.maximum, x.unbind(1), torch.zeros_like(x[:, 0]))


class Accumulated(nn.Module):
    def forward(self, x, *, decay=0.5):
        sums = itertools.accumulate(x.unbind(1))
        largest = itertools.accumulate(x.unbind(1), torch.maximum, initial=x[:, 0] * decay)
        known = itertools.accumulate([x[:, 0], x[:, -1]])
        both = torch.cat([torch.stack(list(sums), 1), torch.stack(list(largest), 1)], 1)
        return both + next(known).unsqueeze(1) * next(known).unsqueeze(1)


class Mapped(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x, *, decay=0.5):
        made = torch.stack(list(map(lambda row, other: self.layer(row) + other, x, x.flip(0))))
        return made * decay


class Swapped(nn.Module):
    def forward(self, x, *, step=2):
        y, total = x.clone(), x[:, 0]
        for at in range(0, x.shape[1] - 1, step):
            y[:, at], y[:, at + 1], total = x[:, at + 1], x[:, at] * 2, total + x[:, at]
        return y + total[:, None]


@pytest.mark.parametrize("kind", [Reduced, Accumulated, Mapped, Swapped])
def test_each_item_of_what_varies_is_taken(kind):
    module = kind().eval()
    model = ep.export(module, torch.randn(2, 5, 4))
    assert [isinstance(size, str) for size in model.inputs[0].shape[:2]] == [True, True]
    assert "with its branches and loops rewritten" in str(model)
    for shape in ((3, 8, 4), (1, 2, 4), (4, 1, 4)):
        x = torch.randn(shape)
        (found,) = ep.Session(model).run({"x": x.numpy()}).values()
        torch.testing.assert_close(torch.from_numpy(found), module(x), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("items", [[], [3], [1, 2, 3, 4]])
def test_they_do_what_those_of_python_do(items):
    assert in_python.accumulate(items) == list(itertools.accumulate(items))
    assert in_python.accumulate(items, operator.mul, initial=5) == list(
        itertools.accumulate(items, operator.mul, initial=5)
    )
    assert in_python.mapped(operator.sub, items, [2, 1]) == list(map(operator.sub, items, [2, 1]))
    assert in_python.reduce(operator.sub, items, 7) == functools.reduce(operator.sub, items, 7)
    if items:
        assert in_python.reduce(operator.sub, items) == functools.reduce(operator.sub, items)
    else:
        with pytest.raises(TypeError, match="empty"):
            in_python.reduce(operator.sub, items)


class TriedFirst(nn.Module):
    """Views pairs if there are such; what torch raises otherwise is caught."""

    def forward(self, x):
        try:
            y = x.view(x.shape[0], -1, 2)
        except RuntimeError:
            y = F.pad(x, (0, 1)).view(x.shape[0], -1, 2)
        return y


def test_no_tracer_of_torch_meets_an_error_that_is_caught():
    source = ModuleSource(TriedFirst().eval(), (torch.ones(2, 5),))
    with (
        source.guard(),
        pytest.raises(ep.ConversionError, match="an operation fails for the sample, which forward catc"),
    ):
        capture_traced(source, [], Options())


def test_captures_that_list_more_at_some_sizes_are_no_internal_error():
    assert columns([[1, 2], [3, 4]]) == [(1, 3), (2, 4)]
    with pytest.raises(Irregular):
        columns([[1, 2], [3]])
