"""Large models are run as often as their proof needs, and not more often."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from entrepot.ir.model import Model
from entrepot.parity.plan import Case
from entrepot.parity.report.report import Run
from entrepot.parity.sources import Outputs, SourceRefusal

LARGE = 1 << 28
"""Bytes of weights."""


def is_large(model: Model) -> bool:
    """Whether runs of a model take long enough to be counted."""
    tensors = (value.const_value for value in model.ir.graph.initializers.values())
    return sum(tensor.nbytes for tensor in tensors if tensor is not None) >= LARGE


def few(
    cases: Sequence[Case], answers: Sequence[Outputs | SourceRefusal], runs: Sequence[Sequence[Run | None]]
) -> list[int]:
    """Which cases our own runtime is asked about where onnxruntime has judged all: the smallest, edges, and its own.

    Args:
        cases: All of them.
        answers: Those of the source.
        runs: What was said of each case so far.
    """
    taken = [at for at, answer in enumerate(answers) if not isinstance(answer, SourceRefusal)]
    if any(run is not None and run.verdict == "declined" for row in runs for run in row):
        return taken
    extreme = {at for at in taken if cases[at].edge or cases[at].own or cases[at].emptied}
    smallest = min((at for at in taken if at not in extreme), key=lambda at: _elements(cases[at]), default=0)
    return [at for at in taken if at == smallest or at in extreme]


def _elements(case: Case) -> int:
    return sum(_size(value) for value in case.feeds.values())


def _size(value: Any) -> int:
    return sum(map(_size, value)) if isinstance(value, list) else int(np.size(value))
