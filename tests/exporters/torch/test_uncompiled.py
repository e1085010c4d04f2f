"""The code of captured graphs is made when somebody calls them or reads it, and not before."""

from __future__ import annotations

import torch
from torch import nn
from torch.fx import GraphModule

from entrepot.exporters.torch.capture import blame
from entrepot.exporters.torch.capture.uncompiled import uncompiled


class Small(nn.Module):
    def forward(self, *tensors):
        return ((tensors[0] * 2).relu() + 1,)


def captured():
    return blame.export_flat(Small().eval(), [torch.randn(5, 6)], {(0, 0): torch.export.Dim.AUTO})


def test_no_code_is_written_while_a_module_is_captured(monkeypatch):
    written = []
    write = torch.fx.Graph.python_code
    monkeypatch.setattr(torch.fx.Graph, "python_code", lambda *args, **how: written.append(1) or write(*args, **how))
    captured()
    assert not written


def test_a_graph_runs_once_it_is_called():
    program, x = captured(), torch.randn(3, 6)
    (found,) = program.module()(x)
    torch.testing.assert_close(found, (x * 2).relu() + 1)
    assert "relu" in captured().graph_module.code


def test_a_graph_is_called_as_it_was_when_it_was_last_put_off():
    with uncompiled():
        graph = torch.fx.symbolic_trace(nn.ReLU())
        assert "relu" in graph.code
        node = next(each for each in graph.graph.nodes if each.op in ("call_function", "call_module"))
        with graph.graph.inserting_after(node):
            more = graph.graph.call_function(torch.neg, (node,))
        node.replace_all_uses_with(more, delete_user_cb=lambda user: user is not more)
        graph.recompile()
        assert "neg" in graph.code
    torch.testing.assert_close(graph(torch.ones(2)), -torch.ones(2))


def test_torch_is_left_as_it_was():
    before = GraphModule.recompile
    with uncompiled():
        assert GraphModule.recompile is not before
    assert GraphModule.recompile is before
