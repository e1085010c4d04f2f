"""Run a model beside the source it came from, and report where they agree."""

from __future__ import annotations

import copy
import importlib.util
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from entrepot.ir.errors import EntrepotError
from entrepot.ir.model import Model
from entrepot.ir.progress import Progress, reporter
from entrepot.parity.compare import Tolerance, scales_of
from entrepot.parity.feeds import Feeds, holds_nothing
from entrepot.parity.judge import Judge
from entrepot.parity.plan import Case, joint_cases
from entrepot.parity.report.facts import ModelFacts
from entrepot.parity.report.report import Report, Run
from entrepot.parity.runner import Runner
from entrepot.parity.sources import Outputs, Source, SourceRefusal, model_name
from entrepot.parity.sparing import few, is_large
from entrepot.parity.tolerance import ToleranceLike
from entrepot.parity.totals import told_sizes
from entrepot.parity.untouched import Untouched
from entrepot.runtime.providers import Providers, as_providers


def verify(
    source: Source,
    model: Model,
    feeds: Sequence[Feeds | Case],
    *,
    providers: Providers | None = None,
    tolerance: ToleranceLike | None = None,
    progress: Progress = None,
) -> Report:
    """Run the source and the model on every feed and compare all outputs.

    Args:
        source: What to trust. It is given copies, so it may write into its inputs.
        model: What to judge.
        feeds: The sample first (which the source must take), then others; ``plan_cases`` makes a good list.
        providers: Who runs the model; by default ``cpu``, and as a second opinion ``onnxruntime`` where it is
            installed, on the file as it is; of a large model, onnxruntime judges all, and ``cpu`` the smallest
            feed. An operator that one of them lacks, or that the second opinion runs on
            doubles in single precision, is recorded but not a failure, unless the provider is asked for by name.
        tolerance: See ``compare``.
        progress: See ``entrepot.ir.progress``.

    Returns:
        The report; ``.ok`` is the verdict. What the source refuses is recorded as refused (for the sample: as a
        failure), and an error that a provider raises about the model is a failure with its message.

    Raises:
        InputError: There is no such provider.
        MissingDependencyError: A provider asked for by name is not installed.
    """
    tell, tolerance = reporter(progress), Tolerance.of(tolerance)
    cases = [feed if isinstance(feed, Case) else Case(f"feeds {at}", feed) for at, feed in enumerate(feeds)]
    names = default_providers(model) if providers is None else as_providers(providers)
    asked: list[tuple[Case, Outputs | SourceRefusal]] = []
    for case in cases:
        if case.own:
            continue
        if not (case.spare and any(each.symbol and not isinstance(answer, SourceRefusal) for each, answer in asked)):
            asked.append(_ask(source, case, cases[0], tell))
    asked += [_ask(source, case, cases[0], tell) for case in _together(model, asked)]
    asked += [_ask(source, case, cases[0], tell) for case in cases if case.own]
    cases, answers = [case for case, _ in asked], [answer for _, answer in asked]
    # a small result near zero says little about its own scale: all runs of the source together say more
    tame = (answer for case, answer in zip(cases, answers, strict=True) if not (case.edge or case.own))
    scales = scales_of([answer for answer in tame if not isinstance(answer, SourceRefusal)])
    rows = [[_refused(case, answer, at)] for at, (case, answer) in enumerate(zip(cases, answers, strict=True))]
    judge = Judge(source, model, tolerance, scales)
    others = [row for row, case in zip(rows, cases, strict=True) if not case.own]
    sparing = providers is None and names == ("cpu", "onnxruntime") and is_large(model)
    for name in reversed(names) if sparing else names:
        chosen = few(cases, answers, rows) if sparing and name == "cpu" else range(len(cases))
        runner = Runner(model, name, judge, unasked=providers is None)
        if providers is None and (reason := runner.declines):
            rows[0].append(Run("every input", name, "declined", reason))
            continue
        for at in chosen:
            case, answer = cases[at], answers[at]
            if case.emptied and name.startswith("onnxruntime"):
                continue
            if not isinstance(answer, SourceRefusal) and not (case.own and (name != "cpu" or _speak_against(others))):
                tell(f"verifying on {name}: {case.label}")
                run = runner.run(case, answer)
                rows[at].append(run)
                if run.verdict == "declined":
                    break
        del runner  # its weights, before the next has its own
    runs = tuple(each for row in rows for each in row if each is not None)
    return Report(source.name, model_name(model), names, runs, ModelFacts.of(model))


def default_providers(model: Model | None = None) -> tuple[str, ...]:
    """Our own, and onnxruntime as an independent second opinion where it is installed.

    It alone runs a model of a gigabyte or more, if it takes it: it can leave the weights where they are.
    """
    if importlib.util.find_spec("onnxruntime") is None:
        return ("cpu",)
    return ("onnxruntime",) if model is not None and _runs_alone(model) else ("cpu", "onnxruntime")


def _runs_alone(model: Model) -> bool:
    from entrepot.runtime.providers.onnxruntime.weights import is_large

    if not is_large(model):
        return False
    try:
        Untouched(model)
    except EntrepotError:
        return False
    return True


def _ask(source: Source, case: Case, sample: Case, tell: Callable[[str], None]) -> tuple[Case, Outputs | SourceRefusal]:
    """What the source answers; where it refuses a size, perhaps to a case with integers that tell this size."""
    tell(f"running {source.name}: {case.label}")
    answer = _answer(source, case.feeds)
    if isinstance(answer, SourceRefusal) and case is not sample:
        for feeds in told_sizes(sample.feeds, case.feeds):
            other = _answer(source, feeds)
            if not isinstance(other, SourceRefusal):
                return replace(case, feeds=feeds), other
    return case, answer


def _together(model: Model, asked: Sequence[tuple[Case, Outputs | SourceRefusal]]) -> Iterator[Case]:
    """Further cases, where the source takes some symbols at no other size while the rest keep theirs."""
    refused = [case.symbol for case, answer in asked if case.symbol and isinstance(answer, SourceRefusal)]
    taken = {case.symbol for case, answer in asked if not isinstance(answer, SourceRefusal)}
    fixed = [symbol for symbol in dict.fromkeys(refused) if symbol not in taken]
    if len(fixed) < 2 or any(map(holds_nothing, asked[0][0].feeds.values())):  # other sizes beside none tell nothing
        return iter(())
    return joint_cases(model, asked[0][0].feeds, fixed)


def _answer(source: Source, feeds: Feeds) -> Outputs | SourceRefusal:
    try:
        return source.run({name: copy.deepcopy(value) for name, value in feeds.items()})
    except SourceRefusal as refusal:
        return refusal


def _speak_against(rows: Sequence[Sequence[Run | None]]) -> bool:
    return any(run is not None and run.verdict in ("differs", "error") for row in rows for run in row)


def _refused(case: Case, answer: Outputs | SourceRefusal, at: int) -> Run | None:
    """The record of a refusal; the first feed is the sample, and a source that refuses it proves nothing."""
    if not isinstance(answer, SourceRefusal):
        return None
    return Run(case.label, "source", "error" if at == 0 else "refused", str(answer), symbol=case.symbol, edge=case.edge)
