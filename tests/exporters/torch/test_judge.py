"""The judge of the sweeps of torch: another order of scores that float32 does not tell apart is not wrong."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from tests.export_cases.case import Built, Case
from tests.sweeps.exports import OfModule


class Ranked(nn.Module):
    """Float32 has no digits for what is added to the scores."""

    def forward(self, scores: torch.Tensor, more: torch.Tensor, payload: torch.Tensor) -> torch.Tensor:
        return payload.gather(1, (scores + more).sort(dim=1, descending=True, stable=True).indices)


@pytest.mark.parametrize(
    ("more", "found", "excused"),
    [
        ([1e-9, 3e-9, 0.0], [20.0, 10.0, 30.0], True),
        ([1e-9, 3e-9, 0.0], [20.0, 10.0, 3000.0], False),
        ([1e-9, 0.0, 0.0], [20.0, 10.0, 30.0], False),
        ([0.1, 0.3, 0.0], [10.0, 20.0, 30.0], False),
    ],
    ids=["tied", "far off", "tied and in this order", "apart"],
)
def test_an_order_is_excused_only_where_float64_has_another(
    more: list[float], found: list[float], excused: bool
) -> None:
    scores, payload = torch.tensor([[1.0, 1.0, 0.5]]), torch.tensor([[10.0, 20.0, 30.0]])
    call = scores, torch.tensor([more]), payload
    subject = OfModule(Case("ranked", "modules", lambda: Built(Ranked(), (call,))))
    exported = subject.export()
    names = [spec.name for spec in exported.outputs]
    wanted = dict(zip(names, subject.answers(0), strict=True))
    answer = dict(zip(names, [np.array([found], np.float32)], strict=True))
    assert subject.is_excused(0, subject.feeds(exported, 0), wanted, answer) == excused


class Halved(nn.Module):
    """Its call names the inputs in another order."""

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return x.unsqueeze(-1) / 2 + y


def test_what_rounding_changes_is_measured_with_each_input_in_its_place() -> None:
    call = {"y": torch.ones(2, 3, 4), "x": torch.ones(2, 3)}
    subject = OfModule(Case("halved", "modules", lambda: Built(Halved(), (call,))))
    feeds = subject.feeds(subject.export(), 0)
    assert np.array_equal(subject.answers_to(feeds, 0), subject.answers(0))
