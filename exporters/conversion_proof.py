"""Two opsets of one model, side by side."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from entrepot.exporters.options import Judging
from entrepot.exporters.proof import prove
from entrepot.ir.errors import EntrepotError, InputError, UnsupportedOpError, VerificationError
from entrepot.ir.model import Model
from entrepot.parity.compare import compare
from entrepot.parity.feeds import Feeds, generate
from entrepot.parity.report.facts import ModelFacts
from entrepot.parity.report.report import Report, Run
from entrepot.parity.tolerance import Tolerance, ToleranceLike
from entrepot.parity.verify import ModelSource, Outputs, SourceRefusal, default_providers, model_name
from entrepot.runtime.feeds import feeds_of
from entrepot.runtime.session import Session


def prove_result(
    source: Model,
    result: Model,
    feeds: Any,
    *,
    tolerance: ToleranceLike | None,
    progress: Callable[[str], None],
    made: str,
) -> None:
    """Give a model made from another one its report; see ``report_on``.

    Raises:
        VerificationError: It does not compute the same thing; the error carries the report.
    """
    report = report_on(source, result, feeds, tolerance=Tolerance.of(tolerance), progress=progress)
    if report.failures:
        raise VerificationError(f"the {made} model does not compute the same thing: {report.summary()}", report=report)
    result.report = report


def report_on(
    model: Model,
    converted: Model,
    feeds: Any,
    *,
    tolerance: Tolerance | None = None,
    progress: Callable[[str], None] | None = None,
) -> Report:
    """The proof; if no feeds are given and none that the model runs on can be made up, a report that says so.

    Raises:
        InputError: The feeds given do not fit the model, or it does not run on them.
        EntrepotError: Nothing here can run the model at all.
    """
    if feeds is not None:
        return _on_given(model, converted, feeds_of(model, feeds), tolerance, progress)
    try:
        return prove_conversion(model, converted, generate(model), tolerance=tolerance, progress=progress)
    except EntrepotError as error:
        run = Run("every input", "source", "declined", f"the model could not be run: {error}")
        return Report(model_name(model), model_name(converted), default_providers(), (run,), ModelFacts.of(converted))


def _on_given(
    model: Model,
    converted: Model,
    feeds: Feeds,
    tolerance: Tolerance | None,
    progress: Callable[[str], None] | None,
) -> Report:
    try:
        return prove_conversion(model, converted, feeds, tolerance=tolerance, progress=progress)
    except SourceRefusal as refusal:
        raise InputError(f"the model does not run on these feeds: {refusal}") from refusal


def prove_conversion(
    model: Model,
    converted: Model,
    feeds: Feeds,
    *,
    tolerance: Tolerance | None = None,
    progress: Callable[[str], None] | None = None,
) -> Report:
    """Run a model and its conversion on feeds, other values and other sizes.

    The original is run by onnxruntime if possible, whose kernels know each opset: our own runtime raises old models
    with the very adapters that are to be judged.

    Raises:
        EntrepotError: Nothing here can run the original on these feeds, or the conversion at all.
    """
    source = _evaluator(model, feeds)
    judging = Judging(_judges(converted), tolerance, progress)
    report = prove(source, converted, feeds, judging)
    refusing = {run.provider for run in report.failures if run.verdict == "error"} - {"source"}
    if not refusing:
        return report
    # a provider may refuse what makes no sense but the source computes anyway, such as the mean of a window that is
    # larger than its image: what is computed there says nothing about the result
    return prove(_Strict(source, model, refusing, feeds), converted, feeds, judging)


def _evaluator(model: Model, feeds: Feeds) -> _Evaluator:
    errors: list[EntrepotError] = []
    for provider in sorted(default_providers(), key=lambda name: name != "onnxruntime"):
        try:
            source = _Evaluator(model, provider)
            first, second = source.run(dict(feeds)), source.run(dict(feeds))
        except EntrepotError as error:
            errors.append(error)
            continue
        if compare(first, second).ok:
            return source
        errors.append(UnsupportedOpError("its results are random: two runs on the same inputs differ"))
    raise errors[-1]


def _judges(converted: Model) -> tuple[str, ...] | None:
    """All, or all but ours when it lacks an operator."""
    try:
        Session(converted)
    except UnsupportedOpError:
        others = tuple(name for name in default_providers() if name != "cpu")
        if not others:
            raise
        return others
    return None


class _Evaluator:
    """The original model; onnxruntime is never given empty inputs, on which it may abort the process (1.31, LSTM)."""

    def __init__(self, model: Model, provider: str) -> None:
        self._source = ModelSource(model, provider)
        self._spare = provider == "onnxruntime"
        self.name = self._source.name

    def run(self, feeds: dict[str, np.ndarray[Any, Any]]) -> Outputs:
        """Outputs by name.

        Raises:
            SourceRefusal: The model cannot be run on these feeds.
        """
        if self._spare and any(np.size(value) == 0 for value in feeds.values()):
            raise SourceRefusal("onnxruntime is not asked about empty inputs")
        return self._source.run(feeds)


class _Strict:
    """A source that takes only inputs on which certain providers can run the original as well."""

    def __init__(self, source: _Evaluator, model: Model, providers: set[str], sample: Feeds) -> None:
        self._source = source
        self._others = [ModelSource(model, provider) for provider in sorted(providers)]
        self._sample = {name: np.shape(value) for name, value in sample.items()}
        self.name = source.name

    def run(self, feeds: dict[str, np.ndarray[Any, Any]]) -> Outputs:
        """Outputs by name.

        Raises:
            SourceRefusal: The model cannot be run on these feeds by one of them.
        """
        if {name: np.shape(value) for name, value in feeds.items()} != self._sample:
            for other in self._others:
                other.run(feeds)
        return self._source.run(feeds)
