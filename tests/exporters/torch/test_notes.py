"""What an export leaves fixed or out is said in the report, in the file and in print(model)."""

import json
import zlib

import pytest
import torch
from torch import nn

import entrepot as ep


class Function(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *given):
        return self.function(*given)


WEIGHT = torch.randn(4, 2)


def scrambled(x):
    return x * (zlib.crc32(bytes(int(x.shape[1]))) % 97)


def scrambled_rows(x):
    return x * (zlib.crc32(bytes(int(x.shape[0]))) % 97)


def product(x):
    return x @ WEIGHT


STATIC = [
    (scrambled, (2, 5), "x.1", "the capture fixed it at test_notes.py"),
    (scrambled_rows, (3, 5), "x.0", "the capture fixed it at test_notes.py"),
    (product, (3, 4), "x.1", "the module refuses other sizes at test_notes.py"),
]


def fixed_axes(model):
    return json.loads(model.metadata.get("entrepot.fixed_axes", "{}"))


@pytest.mark.parametrize(
    ("function", "shape", "axis", "reason"), STATIC, ids=lambda case: getattr(case, "__name__", "")
)
def test_every_axis_of_an_input_that_is_fixed_is_told_with_its_reason(function, shape, axis, reason, tmp_path):
    model = ep.export(Function(function), torch.randn(shape), input_names=["x"])
    static = {f"x.{at}" for at, size in enumerate(model.inputs[0].shape) if isinstance(size, int)}
    assert fixed_axes(model).keys() == static
    assert fixed_axes(model)[axis].startswith(reason)
    size = model.inputs[0].shape[int(axis[2:])]
    (note,) = (note for note in model.notes if f"{axis} = {size}" in note)
    assert reason in note
    model.save(tmp_path / "net.onnx")
    for text in repr(model), repr(ep.load(tmp_path / "net.onnx")):
        assert f"note: {note}" in text
    assert f"{axis}: {reason}" in str(model.report)
    assert note in json.loads(model.report.to_json())["facts"]["notes"]


def test_a_graph_that_does_not_follow_a_size_says_so(monkeypatch):
    from entrepot.exporters.torch.sources import module as exporter

    def wrong(program):
        graph = real(program)
        for node in graph.graph:
            if node.op_type == "Shape":
                node.replace_input_with(0, graph.graph.inputs[0])
        return graph

    real = exporter.translate
    monkeypatch.setattr(exporter, "translate", wrong)
    model = ep.export(Function(lambda x, y: x + y.new_ones(y.shape[0]).sum()), (torch.randn(3), torch.randn(4)))
    assert [spec.shape for spec in model.inputs] == [("batch",), (4,)]
    assert any("the graph does not follow other sizes" in reason for reason in fixed_axes(model).values())


def test_axes_that_nobody_asked_for_are_told_and_with_false_there_is_nothing_to_tell():
    sample = torch.randn(3, 4)
    named = ep.export(nn.ReLU(), sample, dynamic={"input": {0: "n"}})
    assert fixed_axes(named) == {"input.1": "it was not asked to vary"}
    assert not fixed_axes(ep.export(nn.ReLU(), sample, dynamic=False))
    assert not fixed_axes(ep.export(nn.ReLU(), sample))


def test_axes_fixed_for_one_reason_share_a_note():
    model = ep.export(Function(lambda x, y: (x + y) @ WEIGHT), (torch.randn(3, 4), torch.randn(3, 4)))
    notes = [note for note in model.notes if note.startswith("fixed")]
    assert len(notes) == 1
    assert "given.0.1 = 4, given.1.1 = 4" in notes[0]


def test_a_program_says_that_its_axes_are_as_they_were_captured():
    program = torch.export.export(nn.Linear(4, 2), (torch.randn(3, 4),))
    assert fixed_axes(ep.export(program)) == dict.fromkeys(("input.0", "input.1"), "the program was captured so")


@pytest.mark.parametrize("kind", ["module", "script"])
@pytest.mark.filterwarnings("ignore:.*torch.jit.*:DeprecationWarning")
def test_a_module_in_training_mode_is_exported_in_evaluation_mode_and_that_is_said(kind):
    module = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5))
    module = torch.jit.script(module) if kind == "script" else module
    sample = torch.randn(2, 4)
    told = "exported in evaluation mode, though {} in training mode"
    assert told.format("the module was") in ep.export(module, sample).report.notes
    assert not any("mode" in note for note in ep.export(module.eval(), sample).notes)
    if kind == "module":
        module[1].train()
        assert told.format("1 was") in ep.export(module, sample).notes


def test_a_file_may_hold_anything_for_notes(tmp_path):
    model = ep.export(nn.ReLU(), torch.randn(2))
    for text in "[1]", "{", "null", '"a"':
        model.metadata["entrepot.notes"] = model.metadata["entrepot.conditions"] = text
        assert (model.notes, model.conditions) == ((), ())
    model.metadata["entrepot.notes"] = '["\\u001b[31mred"]'
    assert "\x1b" not in repr(model)
