"""Captures that turn out to be of no use end there; the next way comes before one that fixes axes is proved."""

from __future__ import annotations

import numpy as np
import onnx_ir
import pytest
import torch
from torch import nn

import entrepot as ep
from entrepot.exporters.paths.merging import same_nodes
from entrepot.exporters.paths.path import Path
from entrepot.exporters.torch.capture import capture as capturing
from entrepot.exporters.torch.capture import ranges
from entrepot.exporters.torch.capture.watching import CaptureEnded


@pytest.fixture
def ended(monkeypatch):
    """For each capture: whether it was ended, and along which symbols."""
    found = []
    along = ranges.export_along

    def noted(flat, tensors, groups, watch=None):
        try:
            program = along(flat, tensors, groups, watch)
        except CaptureEnded:
            found.append((True, [group.symbol for group in groups]))
            raise
        found.append((False, [group.symbol for group in groups]))
        return program

    monkeypatch.setattr(ranges, "export_along", noted)
    monkeypatch.setattr(capturing, "export_along", noted)
    return found


class Deep(nn.Module):
    """Many steps."""

    def deep(self, x):
        for step in range(40):
            x = torch.sin(x + step)
        return x


class Padded(Deep):
    """Takes another path for long inputs, at its beginning."""

    def forward(self, x):
        x = x * 2 if x.shape[1] <= 9 else x * 3
        return self.deep(x)


class Counted(Deep):
    """Its batch becomes a number of Python, until it is rewritten."""

    def forward(self, x):
        return self.deep(x).reshape(sum(1 for _ in range(x.shape[0])), -1)


class Squares(Deep):
    """Takes multiples of four only, and asks for them."""

    def forward(self, x):
        torch._check(x.shape[1] % 4 == 0)
        return self.deep(x.reshape(x.shape[0], x.shape[1] // 4, 4))


def test_a_capture_is_ended_where_the_module_goes_on(ended):
    model = ep.export(Padded(), torch.randn(3, 5), dynamic={"x": {0: "batch"}})
    assert not any(early for early, _ in ended)  # nobody asked for the other axis
    ended.clear()
    model = ep.export(Padded(), torch.randn(3, 5))
    assert ended[0][0]
    assert len(ended[0][1]) == 2
    session = ep.Session(model)
    for length in (4, 9, 10, 30):
        x = torch.randn(2, length)
        (got,) = session.run({"x": x.numpy()}).values()
        assert np.allclose(got, Padded()(x), atol=1e-5)


class PaddedLate(Deep):
    """Takes another path for inputs longer than any that is tried."""

    def forward(self, x):
        x = x * 2 if x.shape[1] <= 40 else x * 3
        return self.deep(x)


class Bounded(Deep):
    """Takes no longer inputs."""

    def forward(self, x):
        if x.shape[1] > 40:
            raise ValueError("too long")
        return self.deep(x)


def test_a_capture_is_ended_before_it_is_asked_whether_the_module_goes_on(ended):
    model = ep.export(PaddedLate(), torch.randn(3, 5))
    assert ended[0][0]
    session = ep.Session(model)
    for length in (4, 40, 41, 90):
        x = torch.randn(2, length)
        (got,) = session.run({"x": x.numpy()}).values()
        assert np.allclose(got, PaddedLate()(x), atol=1e-5)


def test_a_capture_that_ends_where_the_module_does_is_made_anew(ended):
    model = ep.export(Bounded(), torch.randn(3, 5))
    assert [early for early, _ in ended] == [True, False]
    assert model.inputs[0].shape == ("batch", "x_dim1")
    session = ep.Session(model)
    for length in (4, 40):
        x = torch.randn(2, length)
        (got,) = session.run({"x": x.numpy()}).values()
        assert np.allclose(got, Bounded()(x), atol=1e-5)
    with pytest.raises(ep.InputError):
        session.run({"x": np.zeros((2, 41), np.float32)})


def test_a_capture_that_fixes_an_axis_waits_for_the_next_way():
    told = []
    model = ep.export(Counted(), torch.randn(3, 5), progress=told.append)
    assert sum("translating" in line for line in told) == 1
    assert [spec.shape[0] for spec in model.inputs] == ["batch"]
    assert "since as it is: fixes x.0" in str(model.report)


def test_a_capture_is_taken_up_again_where_the_next_way_is_no_better():
    class Kept(Deep):
        def forward(self, x):
            x = self.deep(x)
            rows = {str(len(x)): x}  # nothing that is rewritten
            return rows[str(len(x))] * float(str(len(x)))

    told = []
    model = ep.export(Kept(), torch.randn(3, 5), progress=told.append)
    assert sum(line == "capturing the module" for line in told) == 1
    assert not isinstance(model.inputs[0].shape[1], int)
    assert told.index("translating to ONNX") > told.index("capturing the rewritten module")


class CountedFirst(Deep):
    """Its batch becomes a number of Python at the beginning, until it is rewritten."""

    def forward(self, x):
        return self.deep(x.reshape(sum(1 for _ in range(x.shape[0])), -1))


class TextFirst(Deep):
    """The same, whatever is rewritten."""

    def forward(self, x):
        rows = {str(len(x)): x}
        return self.deep(rows[str(len(x))] * float(str(len(x))))


@pytest.mark.parametrize("module", [CountedFirst(), TextFirst()])
def test_a_capture_that_fixes_an_axis_at_its_beginning_ends_there_if_it_waits(module, ended):
    model = ep.export(module, torch.randn(3, 5))
    assert [early for early, _ in ended] == [True, False]
    assert not any(isinstance(size, int) for size in model.inputs[0].shape)
    x = torch.randn(3, 7)
    assert np.allclose(ep.Session(model).run([x.numpy()])["output"], module(x), atol=1e-5)


def test_a_capture_that_fixes_an_axis_later_is_made_to_its_end(ended):
    ep.export(Counted(), torch.randn(3, 5))
    assert [early for early, _ in ended] == [False, False]


def test_a_capture_that_was_put_off_is_taken_up_where_it_ended(ended):
    class Chosen(Deep):
        def forward(self, x):
            x = x * [3.0, 2.0][bool(x.shape[1] <= 9)]  # nothing that is rewritten
            for factor in range(2):
                x = x * (factor + 1)
            return self.deep(x)

    told = []
    model = ep.export(Chosen(), torch.randn(3, 5), progress=told.append)
    assert "capturing the rewritten module" in told
    assert len([symbols for early, symbols in ended if early and len(symbols) == 2]) == 1
    session = ep.Session(model)
    for length in (4, 9, 10, 30):
        x = torch.randn(2, length)
        assert np.allclose(session.run([x.numpy()])["output"], Chosen()(x), atol=1e-5)


def test_sizes_that_go_in_steps_are_no_numbers(ended):
    model = ep.export(Squares(), torch.randn(3, 8))
    assert not isinstance(model.inputs[0].shape[1], int)
    assert not ended[-1][0]


def path(text):
    return Path(
        onnx_ir.from_onnx_text(f'<ir_version: 10, opset_import: ["" : 20]> g (float[n] x) => (float[n] y) {text}'),
        {},
        [],
    )


def test_captures_are_alike_whose_constants_happen_to_be_equal_in_one_of_them():
    shared = path("{ eight = Constant <value_float = 8.0> () z = Add (x, eight) y = Mul (z, eight) }")
    apart = path(
        "{ seven = Constant <value_float = 7.0> () z = Add (x, seven)"
        " eight = Constant <value_float = 8.0> () y = Mul (z, eight) }"
    )
    other = path("{ eight = Constant <value_float = 8.0> () z = Add (x, eight) y = Mul (eight, z) }")
    assert same_nodes([shared, apart])
    assert not same_nodes([shared, other])


class LoopedAndCounted(nn.Module):
    """One axis varies in the rewritten module, and both in parts only."""

    def forward(self, x):
        total = x[0] * 0
        for row in range(x.shape[0]):
            total = torch.tanh(total + x[row])
        return total * len("x" * x.shape[1])


def test_ways_are_tried_after_one_that_is_better_than_what_was_put_off():
    model = ep.export(LoopedAndCounted(), torch.randn(4, 3))
    assert model.inputs[0].shape == ("batch", "x_dim1")
    assert "with its branches and loops rewritten: fixes x.1" in str(model)
