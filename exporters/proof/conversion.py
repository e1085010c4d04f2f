"""A model made from another one: the two side by side, with feeds that the caller gives or that are made up."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from entrepot.exporters.options import Judging
from entrepot.exporters.proof.judge import NodeByNode, OnnxReference, judge_of
from entrepot.exporters.proof.prove import prove, unequal
from entrepot.ir.errors import EntrepotError, InputError, UnsupportedOpError
from entrepot.ir.model import Model
from entrepot.parity.feeds import Feeds, generate
from entrepot.parity.few_steps import apart_by_few_steps
from entrepot.parity.plan import plan_cases
from entrepot.parity.proposals import that_runs
from entrepot.parity.report.facts import ModelFacts
from entrepot.parity.report.report import Report, Run, Verdict
from entrepot.parity.sources import ModelSource, SourceRefusal, model_name
from entrepot.parity.verify import default_providers
from entrepot.runtime.feeds import feeds_of


def prove_result(source: Model, result: Model, feeds: Any, judging: Judging, *, made: str) -> None:
    """Give a model made from another one its report; see ``report_on``.

    Raises:
        VerificationError: It does not compute the same thing; the error carries the report.
    """
    report = report_on(source, result, feeds, judging)
    if report.failures:
        raise unequal(report, f"the {made} model")
    result.report = report


def report_on(model: Model, result: Model, feeds: Any, judging: Judging, *, made_up: bool = False) -> Report:
    """The proof; where no feeds are given and none that the model runs on can be made up, a report that says so.

    Args:
        model: The original.
        result: What was made from it.
        feeds: The inputs in any form, or ``None`` to make some up.
        judging: Who runs the result, and what agreement means.
        made_up: Whether the caller made up some of ``feeds``, so that they need not fit.

    Raises:
        InputError: The feeds given do not fit the model, or it does not run on them.
    """
    if feeds is not None and not made_up:
        return _on_given(model, result, feeds_of(model, feeds), judging)
    try:
        return _on_made_up(model, result, judging) if feeds is None else prove_conversion(model, result, feeds, judging)
    except EntrepotError as error:
        return _unproven(model, result, error)


def _on_made_up(model: Model, result: Model, judging: Judging) -> Report:
    try:
        return prove_conversion(model, result, generate(model), judging)
    except SourceRefusal:
        others = that_runs(model)
        if others is None:
            raise
    return prove_conversion(model, result, others, judging)


def _on_given(model: Model, result: Model, feeds: Feeds, judging: Judging) -> Report:
    try:
        return prove_conversion(model, result, feeds, judging)
    except SourceRefusal as refusal:
        raise InputError(f"the model does not run on these feeds: {refusal}") from refusal
    except UnsupportedOpError as error:
        return _unproven(model, result, error)


def _unproven(model: Model, result: Model, error: EntrepotError) -> Report:
    """Declined where no inputs would help, else refused."""
    doubt = f"the model could not be run: {' '.join(str(error).split())}"
    verdict: Verdict = "declined" if isinstance(error, UnsupportedOpError) else "refused"
    run = Run("every input", "source", verdict, doubt)
    facts = ModelFacts.of(result)
    return Report(model_name(model), model_name(result), default_providers(), (run,), facts, doubt=doubt)


def prove_conversion(model: Model, result: Model, feeds: Feeds, judging: Judging) -> Report:
    """Run a model and what was made from it on feeds, other values and other sizes.

    Raises:
        EntrepotError: Nothing here can run the original on these feeds.
    """
    report = prove(judge_of(model, feeds), result, feeds, judging)
    for provider in dict.fromkeys(run.provider for run in report.failures if run.provider != "source"):
        report = _like_for_like(report, provider, model, result, feeds, judging)
    return report


def _like_for_like(
    report: Report, provider: str, model: Model, result: Model, feeds: Feeds, judging: Judging
) -> Report:
    """The report, in which a provider's failures are only noted where it treats the original in the same way.

    A provider may refuse what the judge computes anyway, such as the mean of a window larger than its image, or read
    the standard differently: that says nothing about the result. Another one has to agree on the same inputs. Our own
    kernels may be what is broken, so where results differ onnx's reference has to agree with them, or they differ as
    little as a number that goes to the other of two steps explains.
    """
    agreed = {run.label for run in report.runs if run.ok}
    failed = {run for run in report.failures if run.provider == provider and run.label in agreed}
    if not failed:
        return report
    try:
        source = ModelSource(model, provider)
    except EntrepotError:
        return report
    alone = replace(judging, providers=(provider,))
    alike = {run.label for run in prove(source, result, feeds, alone).runs if run.ok or run.provider == "source"}
    if any(run.verdict == "differs" for run in failed):
        standard = _as_the_standard_says(model, feeds, judging)
        cases = [case.feeds for case in plan_cases(result, feeds) if case.label in {run.label for run in failed}]
        few = apart_by_few_steps(report, provider, model, cases)
        failed = {run for run in failed if run.verdict == "error" or run.label in standard or run in few}
    runs = (_noted(run) if run in failed and run.label in alike else run for run in report.runs)
    return replace(report, runs=tuple(runs))


def _as_the_standard_says(model: Model, feeds: Feeds, judging: Judging) -> set[str]:
    """The inputs on which our own runtime agrees about a model with onnx's reference, or onnxruntime node by node."""
    agreed: set[str] = set()
    for opinion in (OnnxReference, NodeByNode):
        try:
            source = opinion(model)
        except EntrepotError:
            continue
        report = prove(source, model, feeds, replace(judging, providers=("cpu",)))
        agreed |= {run.label for run in report.runs if run.ok}
    return agreed


def _noted(run: Run) -> Run:
    return replace(run, verdict="noted", message=f"{run.message}; {run.provider} {_ALIKE}", excuse=_ALIKE)


_ALIKE = "does the same with the original"
