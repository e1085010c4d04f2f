"""A model made from another one: the two side by side, with feeds that the caller gives or that are made up."""

from __future__ import annotations

from typing import Any

import numpy as np

from entrepot.exporters.options import Judging
from entrepot.exporters.proof.judge import Judge, judge_of
from entrepot.exporters.proof.prove import prove, unequal
from entrepot.ir.errors import EntrepotError, InputError, UnsupportedOpError
from entrepot.ir.model import Model
from entrepot.parity.feeds import Feeds, generate
from entrepot.parity.proposals import that_runs
from entrepot.parity.report.facts import ModelFacts
from entrepot.parity.report.report import Report, Run, Verdict
from entrepot.parity.sources import ModelSource, Outputs, SourceRefusal, model_name
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
    source = judge_of(model, feeds)
    report = prove(source, result, feeds, judging)
    refusing = {run.provider for run in report.failures if run.verdict == "error"} - {"source"}
    if not refusing:
        return report
    # a provider may refuse what makes no sense but the source computes anyway, such as the mean of a window that is
    # larger than its image: what is computed there says nothing about the result
    return prove(_Strict(source, model, refusing, feeds), result, feeds, judging)


class _Strict:
    """A source that takes only inputs on which certain providers can run the original as well."""

    def __init__(self, source: Judge, model: Model, providers: set[str], sample: Feeds) -> None:
        self._source = source
        self._others = [ModelSource(model, provider) for provider in sorted(providers)]
        self._sample = {name: np.shape(value) for name, value in sample.items()}
        self.name = source.name
        self.doubt = source.doubt

    def run(self, feeds: dict[str, np.ndarray[Any, Any]]) -> Outputs:
        """Outputs by name.

        Raises:
            SourceRefusal: The model cannot be run on these feeds by one of them.
        """
        if {name: np.shape(value) for name, value in feeds.items()} != self._sample:
            for other in self._others:
                other.run(feeds)
        return self._source.run(feeds)
