"""Every torch model of the zoo, exported once and brought to every opset: what arrives, and does it compute the same?

    python -m benchmarks.zoo_opsets [NAME ...] [--targets 7-19,21-26,28] [--cache FOLDER]

A conversion is ``ok`` when it carries the opset asked for, passes onnx's full checker, keeps its inputs and outputs,
and computes what torch computed, at batch 1 and at a larger batch: in onnxruntime, whose kernels know each opset up to
26, and on our own runtime above. ``-`` is a refusal; the reasons are counted below the table. Exports are the slow
part: they stay in the cache folder for the next run, unless ``--fresh`` asks for new ones.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import onnx
import onnx_ir as ir

import entrepot as ep
from entrepot import models_zoo
from entrepot.exporters.sample import Sample
from entrepot.parity.compare import compare, scales_of
from entrepot.parity.sensitivity import sensitivity

Arrays: TypeAlias = dict[str, Any]
Case: TypeAlias = tuple[Arrays, Arrays]
"""What is fed, and what torch answered."""

TARGETS = "7-19,21-26,28"
ONNXRUNTIME_KNOWS = 26
BAR = range(9, 18)
SMALL: dict[str, dict[str, Any]] = {
    "resnet18": {"width": 16},
    "resnet50": {"width": 8, "classes": 10},
    "lenet_digits": {"epochs": 1},
}


def exported(name: str, cache: Path, *, fresh: bool) -> tuple[ep.Model, list[Case]]:
    """The model at the default opset with free axes, and torch's answers to its first and its last sample."""
    target, arrays = cache / f"{name}.onnx", cache / f"{name}.npz"
    if fresh or not arrays.exists():
        zoo = models_zoo.build(name, **SMALL.get(name, {}))
        model = ep.export(zoo.module, zoo.sample, verify=False, progress=False)
        model.save(target)
        cases = [_answer(zoo.module, model, sample) for sample in (zoo.samples[0], zoo.samples[-1])]
        np.savez(
            arrays,
            **{f"{at}/{side}/{key}": a for at, c in enumerate(cases) for side in (0, 1) for key, a in c[side].items()},
        )
    with np.load(arrays) as stored:
        return ep.load(target), [_stored(stored, 0), _stored(stored, 1)]


def _answer(module: Any, model: ep.Model, sample: Any) -> Case:
    import torch

    from entrepot.exporters.torch.eager import Eager
    from entrepot.exporters.torch.flatten import flatten_call
    from entrepot.exporters.torch.guard import untouched
    from entrepot.exporters.torch.source import ModuleSource, to_numpy

    call = flatten_call(Sample.of(sample), module.forward)
    inputs = [spec.name for spec in model.inputs]
    with torch.no_grad(), untouched(module) as state:
        source = ModuleSource(Eager(module, call.tree, state), inputs, [spec.name for spec in model.outputs], "torch")
        feeds = dict(zip(inputs, map(to_numpy, call.tensors), strict=True))
        return feeds, source.run(feeds)


def _stored(stored: Any, at: int) -> Case:
    keys = [key.split("/", 2) for key in stored.files]
    feeds, answers = (
        {name: stored[f"{at}/{side}/{name}"] for case, which, name in keys if (case, which) == (str(at), str(side))}
        for side in (0, 1)
    )
    return feeds, answers


def judge(model: ep.Model, target: int, cases: Sequence[Case]) -> tuple[str, str]:
    """The verdict on one conversion, and why."""
    try:
        converted = ep.convert_opset(model, target)
    except ep.ConversionError as error:
        return "-", "; ".join(sorted({_reason(blocker) for blocker in error.blockers})) or error.message
    proto = ir.serde.serialize_model(converted.ir)
    if problem := _invalid(model, proto, target):
        return "INVALID", problem
    scales = scales_of([answers for _, answers in cases])
    for feeds, answers in cases:
        try:
            results = _run(proto, converted, feeds)
        except Exception as error:  # noqa: BLE001 - onnxruntime raises its own family of Exceptions
            return "INVALID", str(error).splitlines()[0]
        if problem := _differs(model, feeds, answers, results, scales):
            return "WRONG", problem
    return "ok", ""


def _reason(blocker: ep.EntrepotError) -> str:
    """The reason without the way, led by the operator: nodes are called ``node 'name' (Gelu, opset 20)``."""
    operator = (blocker.node or "").rpartition(" (")[2].partition(",")[0]
    return f"{operator}: {blocker.message.split(' (on the way')[0]}"


def _invalid(model: ep.Model, proto: onnx.ModelProto, target: int) -> str:
    stamped = {item.domain: item.version for item in proto.opset_import}.get("")
    if stamped != target:
        return f"stamped {stamped}"
    if proto.ir_version > onnx.helper.OP_SET_ID_VERSION_MAP["ai.onnx", target]:
        return f"IR {proto.ir_version} is newer than opset {target}"
    try:
        onnx.checker.check_model(proto, full_check=True)
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError) as error:
        return f"checker: {str(error).strip().splitlines()[0]}"
    stored = {item.name for item in proto.graph.initializer}
    inputs = [value.name for value in proto.graph.input if value.name not in stored]
    if inputs != [spec.name for spec in model.inputs] or len(proto.graph.output) != len(model.outputs):
        return "inputs or outputs changed"
    return ""


def _run(proto: onnx.ModelProto, model: ep.Model, feeds: Arrays) -> Arrays:
    if model.opset > ONNXRUNTIME_KNOWS:
        return ep.Session(model).run(feeds)
    return _onnxruntime(proto, feeds)


def _onnxruntime(proto: onnx.ModelProto, feeds: Arrays) -> Arrays:
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = ort.InferenceSession(proto.SerializeToString(), options, providers=["CPUExecutionProvider"])
    names = [value.name for value in session.get_outputs()]
    return dict(zip(names, session.run(None, feeds), strict=True))


def _differs(model: ep.Model, feeds: Arrays, answers: Arrays, results: Arrays, scales: dict[str, float]) -> str:
    comparison = compare(answers, results, scales=scales)
    if not comparison.ok:  # some networks amplify rounding: how much, the model as it was exported tells
        source = ir.serde.serialize_model(model.ir)
        own = _onnxruntime(source, feeds)
        noise = sensitivity(lambda nudged: _onnxruntime(source, nudged), feeds, own)
        comparison = compare(answers, results, scales=scales, noise=noise)
    return "; ".join(comparison.problems)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table and the totals; the exit code is 1 when a result is wrong or invalid."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", default=models_zoo.names())
    parser.add_argument("--targets", default=TARGETS, help="opsets, as in 7,9,11-13")
    parser.add_argument("--cache", type=Path, default=Path(tempfile.gettempdir()) / "entrepot-zoo-opsets")
    parser.add_argument("--fresh", action="store_true", help="export again")
    options = parser.parse_args(arguments)
    options.cache.mkdir(parents=True, exist_ok=True)
    targets = list(_numbers(options.targets))
    started = time.perf_counter()
    totals: dict[int, Counter[str]] = {target: Counter() for target in targets}
    reasons: Counter[str] = Counter()
    print(f"{'model':22}" + "".join(f"{target:>4}" for target in targets))
    for name in options.names:
        model, cases = exported(name, options.cache, fresh=options.fresh)
        found = {target: judge(model, target, cases) for target in targets}
        print(f"{name:22}" + "".join(f"{verdict[:3]:>4}" for verdict, _ in found.values()), flush=True)
        for target, (verdict, why) in found.items():
            totals[target][verdict] += 1
            if verdict in ("WRONG", "INVALID"):
                print(f"    {target}: {verdict}: {why}", flush=True)
            elif verdict == "-":
                reasons[why] += 1
    _print_totals(totals, reasons, time.perf_counter() - started)
    return int(any(counts["WRONG"] + counts["INVALID"] for counts in totals.values()))


def _print_totals(totals: dict[int, Counter[str]], reasons: Counter[str], seconds: float) -> None:
    for verdict in ("ok", "-", "WRONG", "INVALID"):
        print(f"{verdict:22}" + "".join(f"{counts[verdict]:>4}" for counts in totals.values()))
    bar = sum((totals[target] for target in totals if target in BAR), Counter())
    if bar:
        print(f"\nto {BAR[0]}..{BAR[-1]}: {bar['ok']} of {bar.total()} ok ({bar['ok'] / bar.total():.1%}), ", end="")
        print(f"{bar['WRONG']} wrong, {bar['INVALID']} invalid")
    everything = sum(totals.values(), Counter())
    print(f"all: {everything['ok']} of {everything.total()} ok, in {seconds:.0f} s; refusals by reason:")
    for reason, count in reasons.most_common():
        print(f"{count:>5}  {reason}")


def _numbers(text: str) -> Iterator[int]:
    for part in text.split(","):
        low, _, high = part.partition("-")
        yield from range(int(low), int(high or low) + 1)


if __name__ == "__main__":
    sys.exit(main())
