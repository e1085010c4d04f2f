"""What a capture leaves out changes nothing of the program."""

from __future__ import annotations

import contextlib
import operator
from types import SimpleNamespace

import pytest
import torch
from torch import nn

from entrepot.exporters.torch.capture import blame
from entrepot.exporters.torch.capture.sparing import sparing
from entrepot.exporters.torch.upstream import ShapeEnv, SymNode, node_making, node_meanings


class Windows(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Sequential(nn.Linear(4, 8), nn.GELU())

    def forward(self, *tensors):
        (x,) = tensors
        return self.inner(x.reshape(x.shape[0] // 2, 2, -1, 4)).sum(1)


def captured():
    dims = {(0, 0): 2 * torch.export.Dim("half__axis", min=2), (0, 1): torch.export.Dim.AUTO}
    return blame.export_flat(Windows().eval(), [torch.randn(6, 10, 4)], dims)


def described(program):
    known = ("stack_trace", "nn_module_stack")
    return [
        (str(node), node.target, str(node.args), str(node.meta.get("val")), *(node.meta.get(each) for each in known))
        for node in program.graph.nodes
    ]


def test_a_program_is_the_same(monkeypatch):
    spared = described(captured())
    monkeypatch.setattr(blame, "sparing", contextlib.nullcontext)
    assert spared == described(captured())
    assert any("forward" in (each[4] or "") for each in spared)


def test_torch_is_left_as_it_was():
    def state():
        spared = ShapeEnv._create_fx_call_function, SymNode.__dict__["expr"]
        return node_making.CapturedTraceback, node_meanings._extract_tensor_metadata, *spared

    before = state()
    with sparing():
        assert all(one is not other for one, other in zip(state(), before, strict=True))
    assert state() == before


def test_what_torch_asks_of_weights_passes_no_mode(monkeypatch):
    asked = []

    class Counting(blame.Rewriting):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            asked.append(func)
            return super().__torch_function__(func, types, args, kwargs)

    class Unused(nn.Module):
        def __init__(self, count):
            super().__init__()
            self.weights = nn.ParameterList(torch.randn(3) for _ in range(count))

        def forward(self, *tensors):
            return torch.sin(tensors[0])

    def asked_with(count):
        asked.clear()
        blame.export_flat(Unused(count).eval(), [torch.randn(2, 3)], {})
        return len(asked)

    monkeypatch.setattr(blame, "Rewriting", Counting)
    assert asked_with(12) - asked_with(2) <= 20 * 10


@pytest.mark.parametrize("checked", [False, True])
@pytest.mark.parametrize("kept", [False, True])
def test_operations_on_sizes_are_noted_where_somebody_reads_them(checked, kept, monkeypatch):
    monkeypatch.setattr(ShapeEnv, "_create_fx_call_function", lambda *_: ("node", True))
    environment = SimpleNamespace(_translation_validation_enabled=checked, should_record_events=kept)
    with sparing():
        noted = ShapeEnv._create_fx_call_function(environment, operator.add, (None, None))
    assert noted == (("node", True) if checked or kept else (None, False))
