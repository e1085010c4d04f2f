"""Every version step of every operator, in both directions, on small models made from the operator cases.

Each case, and each variant of it that ``tests.op_cases.variants`` makes, becomes a model of one node in three forms:
as it is, with its parameter inputs as initializers (``#const``), and with inputs of unknown rank (``#rank``). It is
lowered across each step of its operator, and raised again. Where an older opset accepts the very same node, that is
raised as well (``#old``), and compared with what onnxruntime's kernel of the older opset computes. All are judged
as ``tests.judges.verdict`` judges: stamp, checker, inputs and outputs, and the expected values in an evaluator that
knows the opset.

``benchmarks.opset_rows`` runs them all; the tests run samples.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import onnx

from entrepot.ir.io.read import load
from entrepot.ir.model import Model
from entrepot.ir.opset.convert import convert_opset
from entrepot.ir.opset.rules import Step, find, keep
from entrepot.ir.opset.schemas import histories
from tests.judges.differences import known
from tests.judges.draws import draws
from tests.judges.early.use import BreachError
from tests.judges.evaluators import APART, evaluate
from tests.judges.settle import settle
from tests.judges.verdict import Sample, judge, opinion, tolerance
from tests.judges.verdict import with_constants as constant
from tests.op_cases import all_cases, other_cases
from tests.op_cases.case import Case
from tests.op_cases.variants import variants

BAD = ("wrong", "invalid", "crashed")
RANDOM = ("bernoulli", "multinomial", "random")


def forms(case: Case) -> Iterator[Sample]:
    """The case as a sample, with constants, and without shapes."""
    plain = opinion(case)
    if plain is None:
        return
    yield plain
    twin = constant(plain)
    if twin is not None:
        yield twin
    yield replace(plain, name=f"{plain.name}#rank", model=without_shapes(plain.model))


def without_shapes(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model without the shapes of its inputs and outputs."""
    bare = onnx.ModelProto()
    bare.CopyFrom(model)
    for value in [*bare.graph.input, *bare.graph.output]:
        if value.type.HasField("tensor_type"):
            value.type.tensor_type.ClearField("shape")
    return bare


def steps(case: Case, *, changing: bool = False) -> Iterator[Step]:
    """Up from every version of the case's operator that an evaluator knows, and from before its birth; 0 is that."""
    versions = [version for version in histories()[case.domain, case.op_type] if version <= case.since]
    for older, newer in itertools.pairwise((0, *versions)):
        step = Step(case.domain, case.op_type, older, newer)
        ways = (step, _turned(step)) if older else (_turned(step),)
        if newer > 1 and not (changing and all(find(way) is keep for way in ways)):
            yield step


def _turned(step: Step) -> Step:
    return step._replace(start=step.stop, stop=step.start)


def judged(case: Case, *, changing: bool = False) -> Iterator[tuple[Step, str, str]]:
    """Each step in each direction, its verdict, and what to say about it; ``changing`` leaves out what only keeps."""
    for step, verdict, why in verdicts(case, list(steps(case, changing=changing))):
        excuse = known(case, step) if verdict in ("wrong", "invalid") else ""
        yield (step, "not judged", excuse) if excuse else (step, verdict, why)


def verdicts(case: Case, chosen: Sequence[Step]) -> Iterator[tuple[Step, str, str]]:
    """As ``judged``, for the given steps, with nothing excused."""
    for sample in forms(case):
        model = _model(sample)
        for step in chosen:
            yield from _there_and_back(sample, model, step, _opset_before(case, step))
        if case.is_retired:
            verdict, why = judge(sample, model, case.opset + 1)
            yield Step(case.domain, case.op_type, case.since, case.opset + 1), verdict, f"{sample.name}: {why}"
    for step in chosen:
        old = _old(case, _opset_before(case, step)) if step.start else None
        if old is not None:
            verdict, why = judge(old, _model(old), step.stop)
            yield step, verdict, f"{old.name}: {why}"


def _model(sample: Sample) -> Model:
    return load(sample.model)


def _opset_before(case: Case, step: Step) -> int:
    return step.start or step.stop - 1 if not case.is_drawn else step.stop - 1  # nothing early draws


def _there_and_back(sample: Sample, model: Model, up: Step, target: int) -> Iterator[tuple[Step, str, str]]:
    verdict, why = judge(sample, model, target)
    yield _turned(up), verdict, f"{sample.name}: {why}"
    if verdict == "right":
        down = convert_opset(model, {sample.domain: target})
        back = replace(sample, model=down.to_proto(), origin=sample)
        verdict, why = judge(back, down, up.stop)
        yield up, verdict, f"{sample.name}: {why}"


def _old(case: Case, opset: int) -> Sample | None:
    """The very same node at an older opset, where it is valid and an evaluator has a kernel for it."""
    if any(isinstance(value, np.ndarray) and not value.size for value in case.inputs):
        return None  # some of onnxruntime's kernels, GRU's for one, end the process on empty tensors
    try:
        proto = case.model(opset)
        onnx.checker.check_model(proto, full_check=True)
    except (ValueError, TypeError, onnx.checker.ValidationError, onnx.shape_inference.InferenceError):
        return None
    try:
        answers = evaluate(proto, case.feeds(), APART.run)
    except BreachError:
        return None
    if answers.by is None or any(value is None for value in answers.values):
        return None
    name, drawn = f"{case}#old", case.is_drawn
    return Sample(name, proto, case.feeds(), answers.values, *tolerance(case), case.domain, is_drawn=drawn)


def operators(match: str) -> dict[tuple[str, str], list[Case]]:
    """The cases by operator, without those that draw lots."""
    found: dict[tuple[str, str], list[Case]] = defaultdict(list)
    for case in [*all_cases(), *other_cases()]:
        if (case.domain, case.op_type) in histories() and match in case.op_type:
            found[case.domain, case.op_type].append(case)
    return {key: cases for key, cases in found.items() if not any(word in key[1].lower() for word in RANDOM)}


def everything(match: str, strength: int) -> Iterator[tuple[Case, bool]]:
    """Every case, every variant and everything that draws, and whether it is a variant."""
    for cases in operators(match).values():
        yield from ((case, False) for case in cases)
        if strength:
            yield from ((case, True) for case in variants(cases, settle, strength=strength))
    yield from ((case, False) for case in draws() if match in case.op_type)
