"""Tensors that forward fills in a loop: graphs that copy none of them at each step, at any length."""

from __future__ import annotations

import numpy as np
import onnxruntime
import pytest
import torch
from torch import nn

import entrepot as ep


class Filled(nn.Module):
    """The states of a cell, written where they belong."""

    def __init__(self, backwards=False):
        super().__init__()
        self.cell, self.backwards = nn.GRUCell(3, 3), backwards

    def forward(self, x):
        state, states = x.new_zeros(x.shape[0], 3), torch.zeros_like(x)
        steps = range(x.shape[1])
        for step in reversed(steps) if self.backwards else steps:
            state = self.cell(x[:, step], state)
            states[:, step] = state
        return states


class Rollout(nn.Module):
    """States of a system, each from the one before."""

    def __init__(self):
        super().__init__()
        self.force = nn.Linear(3, 3)

    def forward(self, x):
        states = torch.zeros(x.shape[0], x.shape[1] + 1, 3)
        for step in range(x.shape[1]):
            states[:, step + 1] = states[:, step] + torch.tanh(self.force(states[:, step])) * x[:, step]
        return states


class Smoothed(nn.Module):
    """From the end to the beginning, in place."""

    def forward(self, x):
        kept = x.clone()
        for step in range(x.shape[1] - 2, -1, -1):
            kept[:, step] = x[:, step] + 0.5 * kept[:, step + 1]
        return kept


@pytest.mark.parametrize(
    "module", [Filled(), Filled(backwards=True), Rollout(), Smoothed()], ids=lambda each: str(each)[:8]
)
def test_no_step_copies_what_is_filled(module):
    generator = torch.Generator().manual_seed(0)
    model = ep.export(module.eval(), torch.randn(2, 5, 3, generator=generator))
    (loop,) = [node for node in model.ir.graph if node.op_type == "Loop"]
    assert not any(node.op_type.startswith("Scatter") for node in loop.attributes["body"].as_graph())
    session = onnxruntime.InferenceSession(model.to_proto().SerializeToString())
    for length in (1, 2, 12):
        x = torch.randn(3, length, 3, generator=generator)
        with torch.no_grad():
            wanted = module(x).numpy()
        for found in (session.run(None, {"x": x.numpy()})[0], ep.Session(model).run({"x": x.numpy()})["output"]):
            np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5, strict=True)
