"""Modules that take another path for one step than for several, as recurrent decoders do after a prompt."""

from __future__ import annotations

import numpy as np
import onnxruntime
import pytest
import torch
from torch import nn

import entrepot as ep
from tests.exporters.torch.control_flow import x


class Stepping(nn.Module):
    """A step is a product with a vector that has no axis for its place; several are a loop."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(1)
        self.mix = nn.Linear(6, 4)

    def forward(self, rows: torch.Tensor, state: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        gates = self.mix(rows)
        if rows.shape[1] == 1:
            state = 0.5 * state + rows[:, 0, :, None] * gates[:, 0, None, :]
            return torch.matmul(state, gates.transpose(1, 2)).squeeze(-1)[:, None] - 1, state
        found = []
        for at in range(rows.shape[1]):
            state = 0.5 * state + rows[:, at, :, None] * gates[:, at, None, :]
            found.append(torch.matmul(state, gates[:, at, :, None]).squeeze(-1))
        return torch.stack(found, 1), state


@pytest.mark.parametrize("steps", [1, 2, 4])
def test_one_step_and_several_are_one_graph(steps: int) -> None:
    """Two steps are as many as there are rows, which must tie nothing."""
    module = Stepping().eval()
    model = ep.export(module, (x(2, steps, 6), x(2, 6, 4)))
    assert [spec.shape for spec in model.inputs] == [("batch", "rows_dim1", 6), ("batch", 6, 4)]
    session = onnxruntime.InferenceSession(model.to_proto().SerializeToString())
    for rows, count in ((1, 1), (3, 1), (1, 2), (3, 5), (2, 3)):
        given = x(rows, count, 6), x(rows, 6, 4)
        got = session.run(None, {spec.name: each.numpy() for spec, each in zip(model.inputs, given, strict=True)})
        for one, want in zip(got, module(*given), strict=True):
            np.testing.assert_allclose(one, want.detach().numpy(), rtol=1e-5, atol=1e-5)
