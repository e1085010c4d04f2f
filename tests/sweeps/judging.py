"""What becomes of an export with nothing but a sample, or without one, whatever framework the model is from.

A case has *passed* when onnxruntime computes what the framework computes, on the sample and on every other call of the
case. It is *static* when the file takes the sample and refuses another call by a size that it states; *wrong* when the
results differ anywhere or the file fails where it states no limit; *refused* when there is no file; *crashed* when the
error is not one of ours; *invalid* when the framework itself does not accept the case.
"""

from __future__ import annotations

import abc
import json
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

import entrepot as ep
from entrepot.parity.compare import compare, scales_of
from entrepot.parity.sensitivity import sensitivity
from entrepot.parity.untouched import Untouched
from entrepot.runtime.feeds import feeds_of
from tests.sweeps.outcome import Outcome, line

Arrays = Mapping[str, np.ndarray]


class Subject(abc.ABC):
    """A case that was built: a model, and calls of it, the first of which is the sample.

    The model is called here as its users call it, so that the exporter's view of it is not asked.

    Args:
        model: What is exported.
        calls: Arguments, as the framework's users give them.
    """

    def __init__(self, model: Any, calls: Sequence[Any]) -> None:
        self.model, self.calls = model, calls

    @abc.abstractmethod
    def export(self) -> ep.Model:
        """The file, from nothing but the sample."""

    @abc.abstractmethod
    def answers(self, at: int) -> Sequence[np.ndarray]:
        """What the framework returns for a call, in order."""

    @abc.abstractmethod
    def feeds(self, exported: ep.Model, at: int) -> Arrays:
        """A call as the file takes it."""

    def answers_to(self, feeds: Arrays, at: int) -> Sequence[np.ndarray]:
        """What the framework returns for a call whose arrays are replaced by these; for ``noise``."""
        raise NotImplementedError

    def noise(self, at: int, feeds: Arrays, wanted: Arrays) -> Mapping[str, float]:
        """How far results may be off: some networks amplify rounding, and the model itself shows how much."""

        def compute(nudged: Arrays) -> dict[str, np.ndarray]:
            return dict(zip(wanted, self.outputs(self.answers_to(nudged, at), len(wanted)), strict=True))

        return sensitivity(compute, feeds, wanted)

    def is_excused(self, at: int, feeds: Arrays, wanted: Arrays, found: Arrays) -> bool:
        """Whether results that differ are no worse than the framework's."""
        return False

    def outputs(self, answers: Sequence[np.ndarray], count: int) -> Sequence[np.ndarray]:
        """Those of the answers that a file of ``count`` outputs has."""
        return answers

    def reason_for_static(self, exported: ep.Model, why: str) -> str:
        """What the export says about the size that a call was refused for."""
        reasons = json.loads(exported.metadata.get("entrepot.fixed_axes", "{}"))
        return f"{why}; {reasons}" if reasons else why


def judged(case: Any, build: Callable[[Any], Subject]) -> Outcome:
    """Build, export and run a case.

    Args:
        case: With a ``name`` and a ``corpus``.
        build: Makes the subject; whatever it raises, the case is at fault.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            subject = build(case)
            expected = [subject.answers(at) for at in range(len(subject.calls))]
    except Exception as error:  # noqa: BLE001 - whatever a model raises, the case is at fault
        return Outcome(case.name, case.corpus, "invalid", line(error))
    started = time.process_time()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            exported = subject.export()
    except ep.EntrepotError as error:
        return Outcome(case.name, case.corpus, "refused", line(error), seconds=time.process_time() - started)
    except Exception as error:  # noqa: BLE001 - this is what the sweep is looking for
        return Outcome(case.name, case.corpus, "crashed", line(error), seconds=time.process_time() - started)
    seconds = time.process_time() - started
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        session, lacks = _session(exported)
        verdict, why = _verdict(subject, exported, session, expected)
    kinds = [node.op_type for node in exported.ir.graph.all_nodes()]
    fixed = exported.metadata.get("entrepot.fixed_axes", "")
    transposes = kinds.count("Transpose")
    return Outcome(case.name, case.corpus, verdict, why, fixed, seconds, len(kinds), transposes, lacks)


def _verdict(
    subject: Subject, exported: ep.Model, session: Any, expected: Sequence[Sequence[np.ndarray]]
) -> tuple[str, str]:
    names = [spec.name for spec in exported.outputs]
    for at, answers in enumerate(expected):
        found, why = _of_call(subject, exported, session, at, subject.outputs(answers, len(names)))
        if found != "passed":
            feeds = subject.feeds(exported, at)
            shapes = ", ".join([str(np.shape(array)) for array in feeds.values()][:6])
            return found, f"at {shapes}{', ...' if len(feeds) > 6 else ''}: {why}" if at else f"at the sample: {why}"
    return "passed", ""


def _session(exported: ep.Model) -> tuple[Any, str]:
    """The file in onnxruntime, or in our own runtime where it lacks an operator, and why that is."""
    try:
        return Untouched(exported), ""
    except ep.UnsupportedOpError as error:
        return ep.Session(exported, providers=["cpu"]), line(error)


def _of_call(
    subject: Subject, exported: ep.Model, session: Any, at: int, answers: Sequence[np.ndarray]
) -> tuple[str, str]:
    feeds, names = subject.feeds(exported, at), [spec.name for spec in exported.outputs]
    if len(feeds) != len(exported.inputs):
        return "wrong", f"the file takes {len(exported.inputs)} inputs, the call has {len(feeds)}"
    if len(answers) != len(names):
        return "wrong", f"the file gives {len(names)} outputs, the model {len(answers)}"
    try:
        feeds_of(exported, feeds)
    except ep.InputError as error:
        return "static", subject.reason_for_static(exported, line(error))
    try:
        found = session.run(feeds)
    except ep.EntrepotError as error:
        return "wrong", f"does not run: {line(error)}"
    problems = _problems(subject, at, feeds, dict(zip(names, answers, strict=True)), found)
    return ("wrong", "; ".join(problems)[:300]) if problems else ("passed", "")


def _problems(subject: Subject, at: int, feeds: Arrays, wanted: Arrays, found: Arrays) -> Sequence[str]:
    scales = scales_of([wanted])
    comparison = compare(wanted, found, scales=scales)
    if not comparison.ok:
        comparison = compare(wanted, found, scales=scales, noise=subject.noise(at, feeds, wanted))
    return () if comparison.ok or subject.is_excused(at, feeds, wanted, found) else comparison.problems
