"""Models that take several tokens otherwise than one after the other are not tried with several."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import entrepot as ep
from entrepot.runtime.generation.package import Package

VOCABULARY, WIDTH = 30, 8
Tensor = torch.Tensor


class Bounding(nn.Module):
    """A sum of what tokens add to a state, which it bounds where it takes several; scores do not show it."""

    def __init__(self, least: float) -> None:
        super().__init__()
        torch.manual_seed(2)
        self.embed, self.head = nn.Embedding(VOCABULARY, WIDTH), nn.Linear(WIDTH, VOCABULARY)
        self.least = least
        with torch.no_grad():
            self.embed.weight[:, 0] *= 1e-4
            self.head.weight[:, 0] = 0

    def forward(self, input_ids: Tensor, state: Tensor | None = None) -> Any:
        rows = self.embed(input_ids)
        if input_ids.shape[1] > 1:
            rows = torch.where(rows.abs() < self.least, self.least, rows)
        sums = rows.cumsum(1)
        sums = sums if state is None else sums + state[:, None]
        return self.head(sums), sums[:, -1]


def exported(least: float) -> tuple[Package, list[str]]:
    told: list[str] = []
    return ep.export_transformer(Bounding(least).eval(), progress=told.append), told


@pytest.mark.parametrize(("least", "captures", "step"), [(0.0, 1, 0), (1e-3, 0, 1)])
def test_a_form_is_not_captured_whose_states_are_others_than_those_of_single_tokens(
    least: float, captures: int, step: int
) -> None:
    package, told = exported(least)
    assert package.report, package.report
    assert package.manifest.step == step
    assert told.count("exporting the decoder") == 1
    refused = [line for line in told if "several tokens at once" in line]
    assert len(refused) == 1 - captures
    assert all("are others than after one at a time" in line for line in refused)
    got = package.generate(input_ids=np.array([[4, 9, 11], [7, 7, 2]]), max_new_tokens=4)
    assert got.shape == (2, 7)
