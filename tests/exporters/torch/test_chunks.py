"""Rows that are worked through in chunks, of which the last is shorter, with several results for each."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import entrepot as ep
from tests.exporters.torch.control_flow import Module


class InChunks(Module):
    def part(self, rows):
        return rows.relu(), rows.sum(1)

    def results(self, rows):
        raise NotImplementedError

    def forward(self, rows):
        shown, deep = self.results(rows)
        return torch.cat(shown), torch.cat(deep)


class Tuples(InChunks):
    def results(self, rows):
        made = [self.part(rows[at : at + 4]) for at in range(0, rows.shape[0], 4)]
        return [row[0] for row in made], [row[1] for row in made]


class Appended(InChunks):
    def results(self, rows):
        made = []
        for at in range(0, rows.shape[0], 4):
            made.append(self.part(rows[at : at + 4]))
        return [row[0] for row in made], [row[1] for row in made]


class Turned(InChunks):
    def results(self, rows):
        return zip(*[self.part(chunk) for chunk in rows.split(4)], strict=True)


class Collected(InChunks):
    def results(self, rows):
        made = {}
        for at in range(0, rows.shape[0], 4):
            for name, result in zip(("shown", "deep"), self.part(rows[at : at + 4]), strict=True):
                made.setdefault(name, []).append(result)
        return made["shown"], made["deep"]


@pytest.mark.parametrize("kind", [Tuples, Appended, Turned, Collected])
def test_several_results_of_each_chunk(kind):
    module, rows = kind(), torch.randn(6, 3)
    model = ep.export(module, rows)
    assert "captured with its branches and loops rewritten" in str(model)
    session = ep.Session(model, providers=["onnxruntime"])
    for size in (6, 1, 4, 19):
        rows = torch.randn(size, 3)
        for found, wanted in zip(session.run({"rows": rows.numpy()}).values(), module(rows), strict=True):
            np.testing.assert_allclose(found, wanted.numpy(), rtol=1e-5, atol=1e-6)
