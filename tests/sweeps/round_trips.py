"""Modules of torch that became a file, a module again and a second file, judged by the first module."""

from __future__ import annotations

import torch

import entrepot as ep
from tests.export_cases.case import Case
from tests.sweeps.exports import OfModule
from tests.sweeps.judging import judged
from tests.sweeps.outcome import Outcome


def judge(case: Case) -> Outcome:
    """Export a case, import it, export that, and run the second file."""
    return judged(case, _RoundTrip)


class _RoundTrip(OfModule):
    def export(self) -> ep.Model:
        first = super().export()
        sample = tuple(torch.from_numpy(array.copy()) for array in self.feeds(first, 0).values())
        return ep.export(ep.to_torch(first), sample, progress=False)
