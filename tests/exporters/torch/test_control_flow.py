"""Branches and loops of Python: they follow values and sizes in the file, as they do in the module."""

from __future__ import annotations

import functools
import math

import numpy as np
import onnxruntime
import pytest
import torch
from torch import nn

import entrepot as ep
from entrepot.exporters.torch.rewriting.reaching import TAKEN, reach
from tests.exporters.torch.control_flow import LENGTHS, VALUES, Checked, IfElse, Module, Nested, x


def results(model: ep.Model, given: torch.Tensor) -> list[np.ndarray]:
    session = onnxruntime.InferenceSession(model.to_proto().SerializeToString())
    return session.run(None, {session.get_inputs()[0].name: given.numpy()})


def tensors(result) -> list[torch.Tensor]:
    return [result] if isinstance(result, torch.Tensor) else list(result)


@pytest.mark.parametrize(("kind", "sample", "others"), [(kind, first, rest) for kind, first, *rest in VALUES + LENGTHS])
def test_the_file_follows_values_and_sizes_as_the_module_does(kind, sample, others):
    module = kind().eval()
    model = ep.export(module, sample)
    assert model.report
    for given in (sample, *others):
        with torch.no_grad():
            expected = tensors(module(given.clone()))
        for mine, theirs in zip(results(model, given), expected, strict=True):
            np.testing.assert_allclose(mine, theirs.numpy(), rtol=2e-4, atol=2e-5)


def test_every_branch_is_proved_on_inputs_that_take_it_and_one_that_none_takes_is_named():
    class Rare(nn.Module):
        def forward(self, x):
            if x.mean() > 0:
                x = x * 2
            if x.abs().min() > 1e9:
                x = x + 1
            return x

    model = ep.export(Rare(), x(2, 4).abs())
    assert any(run.label.startswith("other branches") for run in model.report.ran)
    (note,) = (note for note in model.notes if "no input was found" in note)
    assert "takes the branch at test_control_flow.py:" in note
    assert "where its condition holds" in note


class Unfollowable(nn.Module):
    """What is called depends on the text of a value."""

    def forward(self, x):
        return getattr(x, {"1": "sin", "0": "cos"}[str(int(x.sum().item()) % 2)])()


class Doubling(nn.Module):
    """Never ends where there is no third row, or nothing but zeros in it."""

    def forward(self, x):
        while x[2:].abs().sum() < 9:
            x = x * 2
        return x


def test_sizes_at_which_the_module_does_not_come_to_an_end_are_refused_by_it():
    model = ep.export(Doubling(), x(4, 3))
    assert model.conditions == ("batch >= 3",)
    assert "does not come to an end" in str([run.message for run in model.report.runs])
    for rows in (3, 7):
        sample = x(rows, 3)
        assert ep.Session(model).run(sample.numpy())["output"].sum() == pytest.approx(Doubling()(sample).sum().item())
    with pytest.raises(ep.InputError, match="made for batch >= 3"):
        ep.Session(model).run(x(2, 3).numpy())


def test_a_check_of_values_is_left_out_and_that_is_said():
    assert any("the check at control_flow.py" in note for note in ep.export(Checked().eval(), x(2, 4)).notes)


def test_a_trace_that_depends_on_values_of_the_sample_is_refused():
    function = lambda x: x if x.sum() > 0 else -x  # noqa: E731 - its code is what is needed
    function.__code__ = function.__code__.replace(co_filename="<nowhere>")  # no source that could be rewritten
    kinds = {"f": function}

    class Function(nn.Module):
        def forward(self, x):
            return kinds["f"](x)

    with pytest.raises(ep.ConversionError, match="branches on the values of a tensor"):
        ep.export(Function(), x(2, 4))


def test_the_notes_say_in_which_way_a_module_was_captured():
    notes = ep.export(IfElse().eval(), x(2, 4)).notes
    assert any(note.startswith("captured with its branches and loops rewritten, since as it is: ") for note in notes)
    assert not any("captured" in note for note in ep.export(nn.ReLU(), x(2, 4)).notes)


class Printed(Module):
    """A size that becomes a text has no place in a graph."""

    def forward(self, x):
        return x * len(f"{x.shape[0]:b}")


def test_what_came_of_every_way_is_in_the_notes_and_the_report():
    model = ep.export(Printed(), x(5, 4))
    (note,) = [note for note in model.notes if note.startswith("tried as well, to no avail: ")]
    assert [way in note for way in ("branches and loops rewritten", "in parts: ", "jit.script: ", "jit.trace: ")]
    assert note in model.report.notes


class Counted(Printed):
    """It writes to an argument as well, as caches with a fixed maximum do."""

    def forward(self, x, count):
        count.add_(1)
        return super().forward(x) + count


def test_the_sample_is_left_as_it_was_by_every_way():
    count = torch.tensor(4)
    model = ep.export(Counted(), (x(5, 4), count))
    assert any("jit.trace: " in note for note in model.notes)
    assert count.item() == 4


def test_an_error_says_what_came_of_the_other_ways():
    with pytest.raises(ep.EntrepotError) as caught:
        ep.export(Unfollowable(), x(5, 4))
    assert [each.partition(":")[0] for each in caught.value.__notes__] == [
        "with its branches and loops rewritten",
        "in parts",
        "by torch.jit.script",
        "by torch.jit.trace",
        "as it decides for the sample",
    ]


def test_the_module_is_left_as_it_was():
    module = Nested()
    before = {name: dict(vars(part)) for name, part in module.named_modules()}
    ep.export(module, x(2, 4))
    assert {name: dict(vars(part)) for name, part in module.named_modules()}.keys() == before.keys()
    assert all(vars(part).keys() == before[name].keys() for name, part in module.named_modules())
    assert "forward" not in vars(module)


@functools.cache
def grid(height, width):
    rows, columns = torch.meshgrid(torch.linspace(-1, 1, height), torch.linspace(-1, 1, width), indexing="ij")
    return torch.stack([rows, columns], -1)


class Placed(nn.Module):
    """The grid of each size is made once."""

    def forward(self, x):
        return x[..., None] * grid(*x.shape[-2:])


def test_functions_that_remember_their_results_by_size_are_followed():
    model = ep.export(Placed(), torch.ones(2, 5, 6))
    assert model.report.ok
    assert not any("fixed: x" in note or "in parts" in note for note in model.notes)
    assert type(grid(7, 7)) is torch.Tensor


class Stacked(nn.Module):
    """Frames with the ones before and after them; the sizes are arguments, of which TorchScript would make inputs."""

    def forward(self, x, width: int = 5, step: int = 3):
        length, rows = x.shape[0], []
        for i in range(math.ceil(length / step)):
            if width <= length - i * step:
                rows.insert(i, x[i * step : i * step + width].reshape(-1))
            else:
                row = x[i * step :].reshape(-1)
                for _ in range(width - (length - i * step)):
                    row = torch.cat([row, x[-1]])
                rows.insert(i, row)
        return torch.stack(rows)


def test_numbers_among_the_arguments_do_not_break_the_way_by_script():
    model = ep.export(Stacked(), torch.randn(11, 2))
    assert [value.name for value in model.inputs] == ["x"]
    assert "by torch.jit.script: the exported model does not compute the same thing" in str(model)  # of math.ceil


def test_a_branch_that_needs_what_changes_slowly_is_reached():
    def run(tensors):
        TAKEN.add(("series.py:3", bool((tensors[0].diff(dim=0) > 0).all())))
        return True

    found, never = reach(run, [torch.tensor([[1.0], [0.5], [2.0], [1.0]])], {"series.py:3"})
    assert never == []
    assert [each[0].flatten().tolist() for each in found] == [[1.0, 1.5, 3.5, 4.5]]
