"""Strides that a capture reads sizes off."""

import math
from types import SimpleNamespace

import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.symbolic_shapes import DimDynamic, ShapeEnv, StatelessSymbolicContext
from torch.nn import functional

import entrepot as ep
from entrepot.exporters.torch.lowering.size_arithmetic import settle_strides

aten = torch.ops.aten


def program(*, turned):
    """Three sizes, and the strides of all axes."""
    mode = FakeTensorMode(shape_env=ShapeEnv())
    context = StatelessSymbolicContext(dynamic_sizes=[DimDynamic.DYNAMIC] * 3)
    value = mode.from_tensor(torch.empty(2, 3, 5), symbolic_context=context)
    graph = torch.fx.Graph()
    tensor = graph.placeholder("tensor")
    tensor.meta["val"] = value.permute(2, 0, 1) if turned else value
    strides = [graph.call_function(aten.sym_stride.int, (tensor, axis)) for axis in (0, 1, -1)]
    graph.output(tuple(strides))
    module = torch.fx.GraphModule({}, graph)
    return SimpleNamespace(graph_module=module)


def test_strides_of_what_lies_in_order_are_products_of_sizes():
    made = program(turned=False)
    settle_strides(made)
    assert made.graph_module(torch.empty(4, 6, 7)) == (42, 7, 1)
    targets = [node.target for node in made.graph_module.graph.nodes]
    assert targets.count(aten.sym_stride.int) == 1  # of the last axis, which is a number
    assert targets.count(aten.sym_size.int) == 3


def test_strides_of_what_lies_otherwise_are_left():
    made = program(turned=True)
    settle_strides(made)
    targets = [node.target for node in made.graph_module.graph.nodes]
    assert targets.count(aten.sym_stride.int) == 3


class Blocks(nn.Module):
    """Overlapping blocks, of lengths of which it is not seen that they are positive."""

    def forward(self, x):
        length = x.shape[-1]
        block = min(35, length)
        hop = block - 6
        count = math.ceil((max(length, block) - block) / hop) + 1
        padded = functional.pad(x, (0, (count - 1) * hop + block - length)).contiguous()
        places = [padded.stride(0), padded.stride(1), hop, 1]
        return padded.as_strided([padded.shape[0], 1, count, block], places)


def test_strides_of_axes_that_may_be_empty_are_known():
    model = ep.export(Blocks().eval(), torch.randn(2, 1, 50), progress=False)
    assert model.inputs[0].shape[0] == "batch"
    for length in (20, 35, 50, 93):
        x = torch.randn(3, 1, length)
        result = ep.Session(model, providers=["onnxruntime"]).run({model.inputs[0].name: x.numpy()})
        assert torch.equal(torch.from_numpy(next(iter(result.values()))), Blocks()(x))
