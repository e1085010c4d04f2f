"""One capture finds the bounds of sizes by itself; masks of ones do not hide which axes belong together."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

import entrepot as ep
from entrepot.exporters import pipeline
from entrepot.exporters.arrays import NUMPY
from entrepot.exporters.axes import related
from entrepot.exporters.axes.gaps import with_gaps
from entrepot.exporters.axes.groups import name_groups
from entrepot.exporters.axes.probe import Prober
from entrepot.exporters.options import Options
from entrepot.exporters.torch.arrays import TORCH
from entrepot.exporters.torch.capture.capture import capture
from entrepot.exporters.torch.sources import calling
from entrepot.exporters.torch.sources.module import ModuleSource


@pytest.fixture
def captures(monkeypatch):
    """The calls of torch.export.export."""
    calls, export = [], torch.export.export

    def counted(*args, **kwargs):
        calls.append(args)
        return export(*args, **kwargs)

    monkeypatch.setattr(torch.export, "export", counted)
    return calls


class Table(nn.Module):
    """Learned positions, read as transformers reads them."""

    def __init__(self):
        super().__init__()
        self.register_buffer("positions", torch.arange(32).expand(1, -1))
        self.table = nn.Embedding(32, 4)

    def forward(self, x):
        return x + self.table(self.positions[:, : x.shape[1]])


class Few(nn.Module):
    """Sizes that are compared with numbers, in words that torch cannot prove by ranges alone."""

    def forward(self, x):
        torch._check(x.shape[1] % 7 < 9)
        torch._check(x.shape[1] >= 3)
        return x[:, :-2] + 1


class OtherPath(nn.Module):
    """Takes another path for long inputs, which no single capture holds."""

    def forward(self, x):
        return x + 1 if x.shape[1] <= 16 else x[:, :16] * 2


class Grid(nn.Module):
    """Pads the side of a square that so many patches make, unless it is long."""

    def forward(self, x):
        side = int((x.shape[1] * x.shape[1]) ** 0.5)
        return x + 1 if (side - 1) // 2 + 1 <= 4 else x * 2


class Gated(nn.Module):
    """Skips a mask of ones, as models do, and otherwise reads its first rows only."""

    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(9, 4)

    def forward(self, ids, mask):
        x = self.table(ids)
        if not torch.compiler.is_exporting() and bool(mask.all()):
            return x
        rows = torch.arange(ids.shape[0])[:, None]
        return x * mask[rows, torch.arange(ids.shape[1])][:, :, None]


def test_an_end_that_is_told_of_a_root_is_read_from_the_one_capture(captures):
    source = ModuleSource(Grid(), torch.randn(2, 8))
    source.ways = source.ways[:1]
    model = pipeline.export(source, Options())
    assert len(captures) == 2  # with both axes, and with that of the rows
    assert model.inputs[0].shape == ("batch", 8)
    assert "another path from size 9 on" in model.metadata["entrepot.fixed_axes"]


def test_a_largest_size_is_read_from_the_one_capture(captures):
    model = ep.export(Table(), torch.randn(2, 8, 4))
    assert len(captures) == 1
    assert model.report is not None
    assert model.report.ok
    assert model.inputs[0].shape == ("batch", "x_dim1", 4)
    assert "x_dim1 <= 32" in model.conditions


def test_conditions_that_hold_anyway_take_no_second_capture(captures):
    model = ep.export(Few(), torch.randn(2, 8))
    assert len(captures) == 1
    assert model.inputs[0].shape == ("batch", "x_dim1")


class Biased(nn.Module):
    """One row of a bias for all, cut as if there were more: how many it has left is a formula of two sizes."""

    def forward(self, x, past, bias):
        return x + bias[:, max(0, bias.shape[1] - x.shape[1] - past.shape[1]) :]


def test_what_has_one_row_in_the_sample_is_broadcast_whatever_formula_that_is(captures):
    lengths = {"x": {1: "length"}, "past": {1: "past"}}
    model = ep.export(Biased(), (torch.randn(2, 5, 4), torch.randn(2, 6), torch.randn(2, 1, 4)), dynamic=lengths)
    assert len(captures) == 1
    assert [spec.shape for spec in model.inputs] == [(2, "length", 4), (2, "past"), (2, 1, 4)]


def test_a_mask_of_ones_does_not_look_free(captures):
    sample = {"ids": torch.randint(9, (2, 5)), "mask": torch.ones(2, 5, dtype=torch.int64)}
    model = ep.export(Gated(), sample)
    assert len(captures) == 1
    assert model.report is not None
    assert model.report.ok
    assert [spec.shape for spec in model.inputs] == [("batch", "sequence")] * 2


class Three(nn.Module):
    def forward(self, a, b, c):
        return a.sum(1) + b.sum(1) + c.sum(1)


class Two(nn.Module):
    def forward(self, a, b):
        return a.sum(1) + b.sum(1)


@pytest.mark.parametrize(("shapes", "asked"), [([(2, 5), (2, 7)], 0), ([(3, 2), (3, 5), (3, 7)], 1)])
def test_a_batch_does_not_add_up_with_lengths(monkeypatch, shapes, asked):
    runs, suggested = [], calling.suggested_relations
    monkeypatch.setattr(calling, "suggested_relations", lambda *given: (runs.append(given), suggested(*given))[1])
    module = Two() if len(shapes) == 2 else Three()
    model = ep.export(module, tuple(torch.randn(*shape) for shape in shapes))
    assert len({spec.shape for spec in model.inputs}) == len(shapes)
    assert len(runs) == asked


class ThreeNormalised(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(2)

    def forward(self, a, b, c):
        return self.norm(a.mean(1)) + self.norm(b.mean(1)) + self.norm(c.mean(1))


def test_a_run_without_values_comes_to_its_end_with_buffers(monkeypatch):
    tried, found, suggested = [], [], calling.suggested_relations
    monkeypatch.setattr(calling, "suggested_relations", lambda *given: (found.append(suggested(*given)), found[-1])[1])
    monkeypatch.setattr(related, "stepped_relations", lambda *given: (tried.append(given), [])[1])
    module = ThreeNormalised().eval()
    model = ep.export(module, tuple(torch.randn(3, length, 2) for length in (2, 5, 7)))
    assert [spec.shape[1] for spec in model.inputs] == ["a_dim1", "b_dim1", "c_dim1"]
    assert found == [[]]
    assert not tried


@pytest.mark.parametrize(
    ("array", "gapped"),
    [
        (np.ones((2, 3), np.int64), [[0, 1, 1], [1, 1, 1]]),
        (np.ones((1, 2), bool), [[False, True]]),
        (np.ones((2, 3), np.float32), None),
        (np.ones(3, np.int64), None),
        (np.ones((1, 1), np.int64), None),
        (np.array([[1, 2], [3, 4]]), None),
        (np.zeros((2, 2), np.int64), None),
    ],
)
def test_only_what_may_be_a_mask_of_ones_gets_a_gap(array, gapped):
    before = array.copy()
    found = with_gaps(NUMPY, [array, np.ones(2)])
    assert found is None if gapped is None else found is not None
    if found is not None:
        np.testing.assert_array_equal(found[0], gapped)
    np.testing.assert_array_equal(array, before)


def test_an_axis_that_a_capture_ends_early_is_not_named_to_be_refused(captures):
    source = ModuleSource(OtherPath(), torch.randn(2, 8, 4))
    with source.guard():
        prober = Prober(source, source.call.tensors, source.settled())
        groups = prober.find_groups()
        name_groups(groups, TORCH, prober.base, ["x"])
        found = capture(source.module, source.call, prober, groups, progress=lambda line: None)
    assert [group.symbol for group in found.groups] == ["batch", "x_dim2"]
    assert "another path from size 17 on" in str(found.fixed[0, 1])
    assert "test_open_captures.py" in str(found.fixed[0, 1])
    assert len(captures) == 2
