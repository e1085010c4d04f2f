"""Axes that are each refuted by a size of their own are settled by one proof, and not by one each."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import entrepot as ep
from entrepot.exporters.axes.groups import Group
from entrepot.exporters.proof.beginnings import begin_apart
from entrepot.parity.report.facts import ModelFacts
from entrepot.parity.report.report import Report, Run


class Particular(nn.Module):
    """Does something else where one of its first inputs has no rows, or the third has one."""

    def forward(
        self, first: torch.Tensor, second: torch.Tensor, third: torch.Tensor, fourth: torch.Tensor
    ) -> tuple[torch.Tensor, ...]:
        if third.shape[0] == fourth.shape[0] > 0:
            raise ValueError("they differ, but where there is nothing")
        lost = (x.sum(0) + (1 if x.shape[0] == 0 else 0) for x in (first, second))
        return (*lost, third.sum(0) + (1 if third.shape[0] == 1 else 0), fourth.sum(0))


class Enough(Exception):  # noqa: N818 - an answer, not a fault
    """Another way is tried."""


def test_one_proof_tells_of_all_axes_that_vary_by_themselves() -> None:
    told: list[str] = []

    def tell(line: str) -> None:
        told.append(line)
        if line.startswith("trying another way"):
            raise Enough

    sample = torch.randn(5, 3), torch.randn(6, 3), torch.zeros(0, 3), torch.zeros(0, 3)
    with pytest.raises(Enough):
        ep.export(Particular().eval(), sample, progress=tell)
    assert told.count("translating to ONNX") == 2


def group(symbol: str, place: int) -> Group:
    return Group(frozenset({(place, 0)}), symbol, [5, 6, 7])


def test_what_fails_without_rows_begins_with_one_whatever_else_fails() -> None:
    groups = [group("a", 0), group("b", 1), group("c", 2)]
    runs = [Run(f"{symbol}={size}", "cpu", "differs", symbol=symbol) for symbol, size in (("a", 0), ("b", 0), ("b", 1))]
    facts = ModelFacts((), (), {}, 0, 0, 0, {})
    report = Report("source", "model", ("cpu",), tuple(runs), facts)
    assert begin_apart(groups, report, 1) == groups[:1]
    assert [each.asked[0] for each in groups] == [1, 0, 0]
    assert begin_apart(groups, report, 1) == []
