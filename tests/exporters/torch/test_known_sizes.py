"""Sizes that a capture finds to be numbers after it has noted symbols for them."""

import torch

from entrepot.exporters.torch.lowering.known_sizes import settle_sizes


class Late(torch.nn.Module):
    """The last axis is taken apart before anything says how long it is."""

    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(16))

    def forward(self, x):
        return torch.stack([x.neg(), x.abs()]), x.neg() + self.weight


def test_sizes_that_are_found_late_are_numbers_everywhere():
    auto = torch.export.Dim.AUTO
    program = torch.export.export(Late(), (torch.randn(3, 16),), dynamic_shapes={"x": {0: auto, 1: auto}})
    values = [node.meta["val"] for node in program.graph.nodes if isinstance(node.meta.get("val"), torch.Tensor)]
    assert any(isinstance(value.shape[-1], torch.SymInt) for value in values)
    settle_sizes(program)
    values = [node.meta["val"] for node in program.graph.nodes if isinstance(node.meta.get("val"), torch.Tensor)]
    assert {value.shape[-1] for value in values} == {16}
    assert all(isinstance(value.shape[-1], int) for value in values)
    assert isinstance(values[1].shape[0], torch.SymInt)
    assert {value.stride() for value in values if value.dim() == 2} == {(16, 1)}
