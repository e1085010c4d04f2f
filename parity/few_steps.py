"""Quantised networks on two runtimes that are both right: now and then a number goes to the other of two steps.

How near to the middle between two steps a number lies, nobody can tell beforehand, so that moving the weights by a
rounding need not show it. What shows is that it is rare, and that it changes no more than a few steps can.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from entrepot.ir.model import Model
from entrepot.parity.feeds import Feeds
from entrepot.parity.report.report import Report, Run
from entrepot.parity.sources import ModelSource
from entrepot.parity.unsteady import LARGE_MOVE, rounds_to_steps

_FEW = 4
"""Times what steps change in a handful of runs, which find the largest change by luck."""


def apart_by_few_steps(report: Report, provider: str, model: Model, feeds: Sequence[Feeds]) -> set[Run]:
    """The runs of a provider that differ as little and as rarely as numbers between two steps explain.

    Args:
        report: All runs.
        provider: Whose runs; it has to agree in most of them.
        model: The network.
        feeds: Inputs that it runs on, several if one alone may not show how much a step changes.
    """
    runs = [run for run in report.runs if run.provider == provider]
    differing = {run for run in runs if run.verdict == "differs"}
    if not differing or len(differing) >= sum(run.ok for run in runs) or not rounds_to_steps(model):
        return set()
    source, most = ModelSource(model), dict[str, float]()
    for each in feeds:
        moved = source.steps(dict(each), LARGE_MOVE)
        most = {name: max(moved.get(name, 0.0), most.get(name, 0.0)) for name in {*moved, *most}}
    return {run for run in differing if _is_small(run, most)}


def _is_small(run: Run, most: Mapping[str, float]) -> bool:
    if run.comparison is None:
        return False
    errors = ((output.name, output.metrics) for output in run.comparison.outputs if not output.ok)
    return all(found is not None and found.max_abs <= _FEW * most.get(name, 0.0) for name, found in errors)
