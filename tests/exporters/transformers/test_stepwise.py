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


PIECE = 8


class InPieces(nn.Module):
    """Sums of tokens, piece by piece; a token after a state is added to it, and masked as no other is."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(2)
        self.embed, self.head = nn.Embedding(VOCABULARY, 2 * WIDTH), nn.Linear(WIDTH, VOCABULARY)

    def mask(self, rows: Tensor) -> Tensor | None:
        return None if rows.shape[1] == 1 else torch.ones(rows.shape[:2])

    def forward(self, input_ids: Tensor, state: Tensor | None = None) -> Any:
        rows, count = self.embed(input_ids), input_ids.shape[1]
        if (mask := self.mask(rows)) is not None:
            rows = rows * mask[:, :, None]
        rows, _ = rows.split(WIDTH, -1)
        rows = rows.reshape(rows.shape[0], rows.shape[1], -1, 2).flatten(2)  # which torch asks whether there is one for
        if state is not None and count == 1:
            state = state + rows[:, 0]
            return self.head(state[:, None]), state
        pieces = nn.functional.pad(rows, (0, 0, 0, -count % PIECE)).reshape(len(rows), -1, PIECE, WIDTH)
        state = torch.zeros_like(rows[:, 0]) if state is None else state
        sums = torch.zeros_like(pieces)
        for at in range(pieces.shape[1]):
            sums[:, at] = torch.ones(PIECE, PIECE).tril() @ pieces[:, at] + state[:, None]
            state = sums[:, at, -1]
        return self.head(sums.reshape(len(rows), -1, WIDTH)[:, :count]), state


def test_a_single_token_goes_its_own_way_beside_that_of_several_at_once() -> None:
    module = InPieces().eval()
    package = ep.export_transformer(module)
    assert package.report, package.report
    assert package.manifest.step == 0  # any number of them
    decoder = package.graphs["decoder"]
    (branch,) = (node for node in decoder.ir.graph if node.op_type == "If")
    arms = [[node.op_type for node in each.as_graph()] for each in branch.attributes.values()]
    assert sorted("Loop" in arm for arm in arms) == [False, True]
    assert min(map(len, arms)) <= 6
    assert any(run.label == f"sequence={PIECE + 1}" for run in decoder.report.runs)  # what is more than a piece
    state = torch.randn(3, WIDTH)
    for count in (1, 2, PIECE, PIECE + 1, 3 * PIECE + 2):
        ids = torch.arange(3 * count).reshape(3, count) % VOCABULARY
        wanted = module(ids, state)
        given = {"input_ids": ids.numpy(), "past.": state.numpy(), "first_scored": np.array([0])}
        found = ep.Session(decoder).run(given)
        for one, other in zip(found.values(), wanted, strict=True):
            np.testing.assert_allclose(one, other.detach().numpy(), rtol=1e-4, atol=1e-5)
