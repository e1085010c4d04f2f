"""The one proof: a source that can be trusted, a model, every case that may tell them apart, and who is in doubt.

Every exporter, ``convert_opset``, ``simplify``, ``verify`` and the command line end here.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from entrepot.exporters.options import Judging
from entrepot.exporters.proof.judge import doubt_about_runs
from entrepot.ir.errors import VerificationError
from entrepot.ir.model import Model
from entrepot.ir.pointwise import may_not_end
from entrepot.ir.typing.consistent import inconsistencies
from entrepot.parity import verify as parity
from entrepot.parity.edges import edge_cases
from entrepot.parity.emptied import Emptied
from entrepot.parity.feeds import Feeds, holds_nothing, vary
from entrepot.parity.plan import Case, plan_cases, sized_cases
from entrepot.parity.report.report import Report, Run
from entrepot.parity.sources import ExactSource, Source
from entrepot.parity.sparing import is_large
from entrepot.parity.tolerance import classify

BRANCH = "other branches"
"""How runs on inputs are labelled that take other branches of the source."""


def prove(
    source: Source,
    model: Model,
    sample: Feeds,
    judging: Judging,
    *,
    edges: Sequence[Mapping[str, int]] = (),
    more: Sequence[Feeds] = (),
    only_sample: bool = False,
) -> Report:
    """Run ``source`` and ``model`` on the sample, other values, every axis at other sizes, and edge values.

    Edge values are tried on sources that can also compute in float64, which shows which results are well-defined.

    Empty inputs are tried on our own runtime only: onnxruntime 1.31 fails in several operators on them, and aborts the
    process in LSTM. A graph that refuses an empty input is recorded but not a failure; a wrong result is one. They are
    not tried where a loop ends by what it computes, and nobody counts its turns. Nor is onnxruntime asked where a
    product or a normalisation is left nothing; a graph that refuses that is a failure.

    Args:
        source: What to trust. If it has a ``doubt``, a reason why its word proves nothing, so has the report.
        model: What to judge.
        sample: Its inputs.
        judging: Who runs it, and what agreement means.
        edges: Further sizes to try, by symbol: where the capture assumed something about small sizes or about several
            at once, and where the source takes another path.
        more: Further inputs to try, which take other branches of the source than the sample does.
        only_sample: Leave all but the sample out.
    """
    cases = [Case("sample", sample)] if only_sample else _cases(source, model, sample, edges)
    cases += [Case(f"{BRANCH} {number}", feeds) for number, feeds in enumerate(more, 1)]
    report = _run(source, model, cases, judging)
    if report.declined and (wrong := next(inconsistencies(model.ir), "")):  # which is no lack of the runtime's
        report = dataclasses.replace(report, runs=(*report.runs, Run("every input", "onnx", "error", wrong)))
    agreeing = {run.provider for run in report.runs if run.ok}
    doubts = (getattr(source, "doubt", ""), _nobody(report), doubt_about_runs(model, agreeing))
    return dataclasses.replace(report, doubt=next(filter(None, doubts), ""))


def agrees(report: Report) -> bool:
    """Whether the model ran and nothing speaks against it; ``report.ok`` asks for a judge without doubt as well."""
    return not report.failures and bool(report.ran)


def unequal(report: Report, what: str = "the exported model") -> VerificationError:
    """The error for a report that refutes a model."""
    return VerificationError(f"{what} does not compute the same thing: {report.summary()}", report=report)


def _nobody(report: Report) -> str:
    reasons = [run.message for run in report.declined]
    return f"nothing here runs the result: {'; '.join(reasons)}" if reasons and not report.ran else ""


def _cases(source: Source, model: Model, sample: Feeds, edges: Sequence[Mapping[str, int]]) -> list[Case]:
    planned = plan_cases(model, sample, sparing=is_large(model))
    cases = [_untied(case, sample) for case in (*planned, *_small_cases(model, sample, edges))]
    cases += _full_masks(sample)
    if may_not_end(model.ir):  # nor may the source: a sum of nothing never grows
        counted = getattr(source, "counts_turns", True)
        return cases if counted else [*cases[:1], *(case for case in cases[1:] if not _is_empty(case))]
    return [*cases, *edge_cases(sample)] if isinstance(source, ExactSource) else cases


def _run(source: Source, model: Model, cases: Sequence[Case], judging: Judging) -> Report:
    names = tuple(parity.default_providers(model) if judging.providers is None else judging.providers)
    tolerance, progress = judging.tolerance, judging.progress
    emptied = Emptied(model)
    full = [dataclasses.replace(case, emptied=emptied.by(case.feeds)) for case in cases if not _is_empty(case)]
    empty = [case for case in cases if _is_empty(case)]
    if not full:  # the graph takes nothing else
        chosen = ("cpu",) if judging.providers is None else names
        return parity.verify(source, model, empty, providers=chosen, tolerance=tolerance, progress=progress)
    own = [dataclasses.replace(case, own=True) for case in empty] if "cpu" in names else []
    cases = [*full, *own]
    return parity.verify(source, model, cases, providers=judging.providers, tolerance=tolerance, progress=progress)


def _small_cases(model: Model, sample: Feeds, edges: Sequence[Mapping[str, int]]) -> Iterator[Case]:
    rng = np.random.default_rng(0)
    for sizes in edges:
        for case in sized_cases(model, sample, sizes, rng):
            yield dataclasses.replace(case, symbol=[*sizes][-1])  # of several, one is given up


def _full_masks(sample: Feeds) -> list[Case]:
    """The sample without gaps in what may be masks: sources that skip a mask of ones do something else then."""
    ones = {name: np.ones_like(value) for name, value in sample.items() if _may_be_mask(value)}
    return [Case("masks of ones", {**sample, **ones})] if ones else []


def _may_be_mask(value: Any) -> bool:
    if not isinstance(value, np.ndarray) or value.ndim < 2 or value.dtype.kind not in "biu":
        return False
    return bool(((value == 0) | (value == 1)).all() and (value == 0).any() and (value == 1).any())


def _untied(case: Case, sample: Feeds) -> Case:
    """Give resized floats values of their own: repeated ones tie, and either of two equal values may come first."""
    rng = np.random.default_rng(1)
    feeds = {
        name: vary(value, rng) if _is_float(value) and value.shape != np.shape(sample[name]) else value
        for name, value in case.feeds.items()
    }
    return dataclasses.replace(case, feeds=feeds)


def _is_float(value: Any) -> bool:
    return isinstance(value, np.ndarray) and classify(value.dtype) == "float"


def _is_empty(case: Case) -> bool:
    return any(map(holds_nothing, case.feeds.values()))
