"""The loss of alignments against torch's own."""

import pytest
import torch
import torch.nn.functional as F  # noqa: N812 - its name everywhere
from torch import nn

import entrepot as ep
from entrepot.exporters.torch.translations.ctc import ctc_loss

LOGS = torch.randn(7, 3, 5, generator=torch.Generator().manual_seed(0), dtype=torch.float64).log_softmax(-1)
TARGETS = torch.tensor([[1, 1, 2], [4, 3, 3], [2, 0, 0]])
SIZES = torch.tensor([3, 2, 1])
LENGTHS = torch.tensor([7, 4, 5])


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("blank", [0, 4])
def test_losses_are_those_of_torch(reduction, blank):
    targets = TARGETS if blank == 0 else (TARGETS % 4)
    how = {"blank": blank, "reduction": reduction}
    expected = F.ctc_loss(LOGS, targets, LENGTHS, SIZES, **how)
    torch.testing.assert_close(ctc_loss(LOGS, targets, LENGTHS, SIZES, **how), expected)


def test_targets_may_come_in_one_row_and_lengths_as_numbers():
    row = torch.cat([target[:size] for target, size in zip(TARGETS, SIZES, strict=True)])
    expected = F.ctc_loss(LOGS, row, (7, 4, 5), (3, 2, 1), reduction="none")
    torch.testing.assert_close(ctc_loss(LOGS, row, (7, 4, 5), (3, 2, 1), reduction="none"), expected)


def test_what_cannot_be_aligned_is_infinite_or_zero():
    short = torch.tensor([3, 2, 0])
    for zero in (False, True):
        expected = F.ctc_loss(LOGS, TARGETS, short, SIZES, reduction="none", zero_infinity=zero)
        found = ctc_loss(LOGS, TARGETS, short, SIZES, reduction="none", zero_infinity=zero)
        torch.testing.assert_close(found[:2], expected[:2])


def test_an_empty_target_is_all_blanks():
    none = torch.tensor([0, 2, 1])
    expected = F.ctc_loss(LOGS, TARGETS, LENGTHS, none, reduction="none")
    torch.testing.assert_close(ctc_loss(LOGS, TARGETS, LENGTHS, none, reduction="none"), expected)


class Loss(nn.Module):
    def forward(self, logits, targets, lengths, sizes):
        return F.ctc_loss(logits.log_softmax(-1), targets, lengths, sizes)


def test_a_model_that_returns_this_loss_is_exported_and_its_length_varies():
    model = ep.export(Loss(), (LOGS.float(), TARGETS, LENGTHS, SIZES), dynamic={"logits": {0: "time"}})
    assert model.report.ok
