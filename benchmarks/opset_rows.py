"""Every version step of every operator, in both directions, on small models made from the operator cases.

Each case, and each variant of it that ``tests.op_cases.variants`` makes, becomes a model of one node in three forms:
as it is, with its parameter inputs as initializers (``#const``), and with inputs of unknown rank (``#rank``). It is
brought down across each step of its operator, and from there up again. Where an older opset takes the very same node,
that is brought up as well (``#old``), held to what onnxruntime's kernel of the older opset makes of it. All are judged
as ``benchmarks.opset_judge`` judges: stamp, checker, inputs and outputs, and the expected values in an evaluator that
knows the opset.

    python -m benchmarks.opset_rows [--match Resize] [--every 10] [--strength 1]
"""

from __future__ import annotations

import argparse
import itertools
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Container, Iterator, Sequence
from dataclasses import replace

import numpy as np
import onnx

from benchmarks.opset_coverage import Rows, unreached
from benchmarks.opset_differences import known
from benchmarks.opset_draws import draws
from benchmarks.opset_evaluators import APART, evaluate
from benchmarks.opset_judge import VERDICTS, Sample, judge, opinion, tolerance
from benchmarks.opset_judge import with_constants as constant
from benchmarks.opset_settle import settle
from entrepot.ir.io.read import load
from entrepot.ir.model import Model
from entrepot.ir.opset.convert import convert_opset
from entrepot.ir.opset.rules import Step, find, keep
from entrepot.ir.opset.schemas import histories
from tests.ir.opset.early.use import BreachError
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
    """The model with nothing said of the shapes of its inputs and outputs."""
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
    """As ``judged``, of the steps given, with nothing excused."""
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


def _old_files(match: str, every: int) -> Iterator[tuple[Step, str, str]]:
    """What only files of opsets 1 to 6 say, from there up."""
    from tests.ir.opset.early import sweep, uses  # they read this module

    for node in [node for node in uses.old_nodes() if match in node.op_type][::every]:
        yield from sweep.judged(node)


def _bodies(covered: Container[tuple[str, str]], match: str) -> Iterator[tuple[Step, str, str]]:
    from benchmarks.opset_backend_rows import backend_rows  # reads thousands of files

    return backend_rows(covered, match)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print verdicts by direction, the rows never reached, and everything wrong; its count is the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--match", default="", help="only operators whose name contains this")
    parser.add_argument("--every", type=int, default=1, help="only every N-th case and variant")
    parser.add_argument("--strength", type=int, default=2, choices=(0, 1, 2), help="0: no variants; 2: all pairs")
    options = parser.parse_args(arguments)
    started, rows, bad, counts = time.time(), Rows(), [], Counter[bool]()
    chosen = itertools.islice(everything(options.match, options.strength), 0, None, options.every)
    for case, is_variant in chosen:
        counts[is_variant] += 1
        for step, verdict, why in judged(case, changing=is_variant):
            rows.add(step, verdict, why)
            if verdict in BAD:
                bad.append(f"{verdict}: {step.op_type} {step.start} -> {step.stop}: {why}")
    covered = operators("").keys()
    for step, verdict, why in itertools.chain(
        _old_files(options.match, options.every), _bodies(covered, options.match)
    ):
        rows.add(step, verdict, why)
        if verdict in BAD:
            bad.append(f"{verdict}: {step.op_type} {step.start} -> {step.stop}: {why}")
    print(rows.table(VERDICTS))
    print(unreached(rows, options.match))
    print("\n".join(bad[:200]))
    print(f"{counts[False]} cases, {counts[True]} variants, {time.time() - started:.0f} s: {len(bad)} bad")
    return min(len(bad), 100)


if __name__ == "__main__":
    sys.exit(main())
