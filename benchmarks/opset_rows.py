"""Every version step of every operator, in both directions, on small models made from the operator cases.

Each case becomes a model of one node in three forms: as it is, with its parameter inputs as initializers
(``#const``), and with inputs of unknown rank (``#rank``). It is brought down across each step of its operator, and
from there up again; both results are judged as ``benchmarks.opset_judge`` judges: stamp, checker, inputs and
outputs, and the expected values in onnxruntime's own kernels of that opset, or below 7 in ``tests/ir/opset/early``.

    python -m benchmarks.opset_rows [--match Resize] [--every 10]
"""

from __future__ import annotations

import argparse
import itertools
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import replace

import onnx
import onnx_ir as ir

from benchmarks.opset_corpus import RANDOM
from benchmarks.opset_judge import VERDICTS, Sample, judge, with_constants
from entrepot.ir.model import Model
from entrepot.ir.opset import OPSET
from entrepot.ir.opset.convert import convert_opset
from entrepot.ir.opset.schemas import histories
from tests.op_cases import all_cases
from tests.op_cases.case import Case
from tests.op_cases.oracle import opinions

OLDEST = 1


def forms(case: Case) -> Iterator[Sample]:
    """The case as a sample, with constants, and without shapes."""
    expected = next(iter(opinions(case).values()), None)
    if expected is None or any(value is None for value in expected):
        return
    tolerance = max(case.rtol or 0, 1e-3), max(case.atol or 0, 1e-5)
    plain = Sample(str(case), case.model(), case.feeds(), list(expected), *tolerance)
    yield plain
    twin = with_constants(plain)
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


def steps(case: Case) -> Iterator[tuple[int, int]]:
    """The adjacent versions of the case's operator that an evaluator knows, and its birth."""
    versions = [version for version in histories()[case.domain, case.op_type] if version <= case.since]
    for older, newer in itertools.pairwise((versions[0] - 1, *versions)):
        if newer > OLDEST:
            yield max(older, OLDEST), newer


def judged(case: Case) -> Iterator[tuple[tuple[str, int, int], str, str]]:
    """A row in one direction (start, stop), its verdict, and what to say about it."""
    for sample in forms(case):
        model = Model(ir.serde.deserialize_model(sample.model))
        for older, newer in steps(case):
            verdict, why = judge(sample, model, older)
            yield (case.op_type, newer, older), verdict, f"{sample.name}: {why}"
            if verdict != "right":
                continue
            down = convert_opset(model, older)
            proto = ir.serde.serialize_model(down.ir)
            back = replace(sample, model=proto, origin=sample)
            verdict, why = judge(back, down, newer)
            yield (case.op_type, older, newer), verdict, f"{sample.name}: {why}"


def main() -> int:
    """Print verdicts by direction, the rows no case reached, and everything wrong; its count is the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--match", default="", help="only operators whose name contains this")
    parser.add_argument("--every", type=int, default=1, help="only every N-th case")
    options = parser.parse_args()
    cases = [case for case in all_cases() if not case.domain and options.match in case.op_type]
    cases = [case for case in cases if not any(word in case.op_type.lower() for word in RANDOM)][:: options.every]
    rows: dict[tuple[str, int, int], Counter[str]] = defaultdict(Counter)
    bad = []
    for case in cases:
        for row, verdict, why in judged(case):
            rows[row][verdict] += 1
            if verdict in ("wrong", "invalid", "crashed"):
                bad.append(f"{verdict}: {row[0]} {row[1]} -> {row[2]}: {why}")
    for direction, chosen in (("down", lambda row: row[1] > row[2]), ("up", lambda row: row[1] < row[2])):
        total = sum((counts for row, counts in rows.items() if chosen(row)), Counter())
        reached = sum(1 for row, counts in rows.items() if chosen(row) and counts["right"])
        print(f"{direction}: {reached} steps with a right result;", {name: total[name] for name in VERDICTS})
    print(f"hub opset {OPSET}, {len(cases)} cases, {len(bad)} wrong, invalid or crashed")
    print("\n".join(bad[:100]))
    return min(len(bad), 100)


if __name__ == "__main__":
    sys.exit(main())
