"""Axes that no way lets vary as far as the module does: they end where it takes another path, and are fixed nowhere."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

import entrepot as ep
from tests.exporters.torch.control_flow import x


def folded(pieces: list[torch.Tensor]) -> torch.Tensor:
    """Halves of halves: no graph calls itself."""
    if len(pieces) == 1:
        return pieces[0]
    half = len(pieces) // 2
    return folded(pieces[:half]) + 0.5 * folded(pieces[half:]).flip(-1)


class Folding(nn.Module):
    """The mean of a few, and of many what a function makes of them that calls itself."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.mix = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.shape[1] < 16:
            return self.mix(x).mean(1)
        return folded([self.mix(each) for each in x.unbind(1)])


def test_an_axis_ends_where_a_path_begins_that_no_graph_takes() -> None:
    module = Folding().eval()
    model = ep.export(module, x(2, 5, 4))
    assert model.inputs[0].shape == ("batch", "x_dim1", 4)
    assert "x_dim1 <= 15" in model.conditions
    assert "x.1 is at most 15: forward takes another path from size 16 on" in model.notes
    session = ep.Session(model)
    for steps in (1, 15):
        given = x(3, steps, 4)
        np.testing.assert_allclose(
            session.run({"x": given.numpy()})["output"], module(given).detach().numpy(), rtol=1e-5, atol=1e-6
        )
    with pytest.raises(ep.InputError, match="16"):
        session.run({"x": x(3, 16, 4).numpy()})


def test_it_is_an_error_where_all_axes_are_asked_for() -> None:
    with pytest.raises(ep.ConversionError, match="another path from size 16 on"):
        ep.export(Folding().eval(), x(2, 5, 4), dynamic="all")
