"""Of equal elements, ONNX takes the first; torch may take any."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import entrepot as ep
from entrepot.exporters.torch.running.first import FirstOfEqual


class Kept(nn.Module):
    """What lies at the best places, most of which are equally good: the others were set to zero."""

    def __init__(self, *, stable: bool) -> None:
        super().__init__()
        self.stable = stable

    def forward(self, x):
        scores = torch.where(x > 1, x, torch.zeros(()))
        if self.stable:
            places = torch.sort(scores, dim=1, descending=True, stable=True).indices[:, :20]
        else:
            places = scores.topk(20).indices.sort(dim=1).values
        return x.gather(1, places)


def test_a_refusal_says_that_only_choices_between_equal_elements_differ():
    with pytest.raises(ep.VerificationError, match="all that differs is which of equal elements comes first"):
        ep.export(Kept(stable=False).eval(), torch.randn(4, 60), progress=False)


def test_what_asks_for_the_first_of_equal_elements_is_proved():
    model = ep.export(Kept(stable=True).eval(), torch.randn(4, 60), progress=False)
    assert model.report is not None
    assert model.report.ok


@pytest.mark.parametrize("how", [{}, {"stable": False}, {"descending": True}, {"stable": False, "descending": True}])
def test_sorts_that_need_not_be_stable_take_the_first_of_equal_elements_when_asked(how):
    x = torch.arange(4096).reshape(2, -1) % 3
    with FirstOfEqual():
        places = torch.sort(x, dim=-1, **how).indices
        also = torch.argsort(x, dim=-1, **how)
    expected = torch.sort(x, dim=-1, **{**how, "stable": True}).indices
    assert torch.equal(places, expected)
    assert torch.equal(also, expected)
