"""Every backend test of onnx at every opset: how many conversions are right, refused, wrong or invalid.

Each test is converted as it is and, as files in the wild are, with its parameter inputs turned into initializers
(``#const``). A conversion is right when it carries the opset asked for, passes onnx's full checker, keeps its inputs
and outputs, and computes the expected values in an evaluator that knows the opset: onnxruntime up to 26, onnx's
reference above.

    python -m benchmarks.opset_corpus [--via 28] [--targets 7-25] [--kind node] [--match resize] [--every 6]
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
from onnx.backend.test.loader import load_model_tests

from entrepot.ir.errors import ConversionError
from entrepot.ir.model import Model
from entrepot.ir.opset.convert import convert_opset

KINDS = ("node", "simple", "pytorch-converted", "pytorch-operator")
RANDOM = ("bernoulli", "training_dropout_default", "training_dropout_zero_ratio_", "multinomial", "random")
ONNXRUNTIME_KNOWS = 26
VERDICTS = ("right", "refused", "wrong", "invalid", "not judged", "crashed")


@dataclass(frozen=True)
class Sample:
    """A backend test: a model, what is fed and what is expected."""

    name: str
    model: onnx.ModelProto
    feeds: dict[str, Any]
    expected: list[Any]
    rtol: float
    atol: float


def samples(kinds: Sequence[str], match: str) -> Iterator[Sample]:
    """The tests of the given kinds, each followed by its twin with parameter inputs as initializers."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cases = [case for kind in kinds for case in load_model_tests(kind=kind)]
    for case in cases:
        if match not in case.name or any(word in case.name for word in RANDOM):
            continue
        for sample in _read(case):
            yield sample
            twin = with_constants(sample)
            if twin is not None:
                yield twin


def _read(case: Any) -> Iterator[Sample]:
    if case.data_sets:
        model, (inputs, outputs) = case.model, case.data_sets[0]
    elif case.model_dir:
        model = onnx.load(f"{case.model_dir}/model.onnx")
        read = _stored(case.model_dir, model)
        if read is None:
            return
        inputs, outputs = read
    else:
        return
    stored = {item.name for item in model.graph.initializer}
    names = [value.name for value in model.graph.input if value.name not in stored]
    arrays = [np.asarray(value) if isinstance(value, np.generic) else value for value in inputs]
    yield Sample(case.name, model, dict(zip(names, arrays, strict=False)), list(outputs), case.rtol, case.atol)


def _stored(folder: str, model: onnx.ModelProto) -> tuple[list[Any], list[Any]] | None:
    """The first data set of a folder; tests that hold anything but tensors are read by onnx's own helper."""
    from pathlib import Path

    data = Path(folder) / "test_data_set_0"
    if not data.exists():
        return None
    found: list[list[Any]] = []
    for kind, values in (("input", model.graph.input), ("output", model.graph.output)):
        arrays = []
        for index in range(len(sorted(data.glob(f"{kind}_*.pb")))):
            content = (data / f"{kind}_{index}.pb").read_bytes()
            if not values[index].type.HasField("tensor_type"):
                return None
            try:
                arrays.append(onnx.numpy_helper.to_array(onnx.TensorProto.FromString(content)))
            except ValueError:  # three files of onnx 1.23 hold fewer bytes than their shape says
                return None
        found.append(arrays)
    return found[0], found[1]


def with_constants(sample: Sample) -> Sample | None:
    """The same test with all inputs but the first stored in the model."""
    arrays = {name: value for name, value in list(sample.feeds.items())[1:] if isinstance(value, np.ndarray)}
    if not arrays:
        return None
    model = onnx.ModelProto()
    model.CopyFrom(sample.model)
    kept = [value for value in model.graph.input if value.name not in arrays or model.ir_version < 4]
    del model.graph.input[:]
    model.graph.input.extend(kept)
    model.graph.initializer.extend(onnx.numpy_helper.from_array(value, name) for name, value in arrays.items())
    feeds = {name: value for name, value in sample.feeds.items() if name not in arrays}
    return Sample(f"{sample.name}#const", model, feeds, sample.expected, sample.rtol, sample.atol)


def judge(sample: Sample, model: Model, target: int) -> tuple[str, str]:
    """The verdict on one conversion, and what to say about it."""
    try:
        converted = convert_opset(model, target)
    except ConversionError as error:
        reason = "; ".join(blocker.message for blocker in error.blockers) or error.message
        return ("crashed" if "not a valid node" in reason else "refused"), reason
    except Exception as error:  # noqa: BLE001 - the rest of the sweep goes on
        return "crashed", f"{type(error).__name__}: {error}".splitlines()[0]
    proto = ir.serde.serialize_model(converted.ir)
    verdict, why = _verdict(sample, proto, target, target)
    if verdict in ("wrong", "invalid") and _verdict(sample, sample.model, model.opset, target)[0] != "right":
        return "not judged", f"the test itself is {verdict} there: {why}"
    return verdict, why


def _verdict(sample: Sample, proto: onnx.ModelProto, stamp: int, target: int) -> tuple[str, str]:
    """The verdict on a model of opset ``stamp`` by the evaluator that knows ``target``."""
    problem = _invalid(sample, proto, stamp)
    if problem:
        return "invalid", problem
    ran, results = _evaluate(proto, sample.feeds, target)
    if not ran:
        return "not judged", str(results)
    problem = _differs(sample, results)
    return ("wrong", problem) if problem else ("right", "")


def _invalid(sample: Sample, proto: onnx.ModelProto, target: int) -> str:
    stamped = {item.domain: item.version for item in proto.opset_import}.get("", target)
    if stamped != target:
        return f"stamped {stamped}"
    try:
        onnx.checker.check_model(_with_ranks(sample, proto), full_check=True)
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError) as error:
        return f"checker: {str(error).strip().splitlines()[0]}"
    stored = {item.name for item in proto.graph.initializer}
    inputs = [value.name for value in proto.graph.input if value.name not in stored]
    outputs = [value.name for value in proto.graph.output]
    if inputs != list(sample.feeds) or outputs != [value.name for value in sample.model.graph.output]:
        return f"inputs or outputs changed: {inputs} {outputs}"
    return ""


def _with_ranks(sample: Sample, proto: onnx.ModelProto) -> onnx.ModelProto:
    """The model with ranks for the inputs and outputs that have none, which the checker demands of tensors."""
    arrays = {**sample.feeds, **{v.name: x for v, x in zip(sample.model.graph.output, sample.expected, strict=False)}}
    values = [value for value in [*proto.graph.input, *proto.graph.output] if value.type.HasField("tensor_type")]
    if all(value.type.tensor_type.HasField("shape") for value in values):
        return proto
    ranked = onnx.ModelProto()
    ranked.CopyFrom(proto)
    for value in [*ranked.graph.input, *ranked.graph.output]:
        tensor = value.type.tensor_type
        if value.type.HasField("tensor_type") and not tensor.HasField("shape"):
            tensor.shape.SetInParent()
            tensor.shape.dim.extend(onnx.TensorShapeProto.Dimension() for _ in np.shape(arrays.get(value.name, ())))
    return ranked


def _evaluate(proto: onnx.ModelProto, feeds: dict[str, Any], target: int) -> tuple[bool, Any]:
    import onnxruntime as ort

    if target <= ONNXRUNTIME_KNOWS:
        options = ort.SessionOptions()
        options.log_severity_level = 4
        options.intra_op_num_threads = 1
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
        try:
            session = ort.InferenceSession(proto.SerializeToString(), options, providers=["CPUExecutionProvider"])
            return True, session.run(None, feeds)
        except Exception as error:  # noqa: BLE001 - onnxruntime raises its own family of Exceptions
            first = str(error)
    else:
        first = ""
    try:
        from onnx.reference import ReferenceEvaluator

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return True, ReferenceEvaluator(proto).run(None, feeds)
    except Exception as error:  # noqa: BLE001 - whatever the reference cannot do is not judged
        return False, first or str(error)


def _differs(sample: Sample, results: Sequence[Any]) -> str:
    for index, (want, have) in enumerate(zip(sample.expected, results, strict=True)):
        problem = _value_differs(want, have, sample)
        if problem:
            return f"output {index}: {problem}"
    return ""


def _value_differs(want: Any, have: Any, sample: Sample) -> str:
    if isinstance(want, list | tuple):
        if have is None or len(want) != len(have):
            return "other length"
        return next((p for a, b in zip(want, have, strict=True) if (p := _value_differs(a, b, sample))), "")
    if want is None or have is None:
        return "" if want is have else "absent"
    want, have = np.asarray(want), np.asarray(have)
    if want.shape != have.shape:
        return f"shape {have.shape} instead of {want.shape}"
    if want.dtype.kind in "OUS":
        return "" if (want.astype(str) == have.astype(str)).all() else "other strings"
    return _numbers_differ(want, have, sample)


def _numbers_differ(want: Any, have: Any, sample: Sample) -> str:
    if want.dtype.itemsize != have.dtype.itemsize:
        return f"{have.dtype} instead of {want.dtype}"
    if have.dtype != want.dtype:
        have = have.view(want.dtype)  # onnxruntime gives bfloat16 and float8 as plain integers
    coarse = 1e-3 if want.dtype.itemsize > 2 else 4e-3  # a few units in the last place of float16
    close = np.isclose(
        have.astype(np.float64),
        want.astype(np.float64),
        max(sample.rtol, coarse),
        max(sample.atol, 1e-6),
        equal_nan=True,
    )
    return "" if close.all() else f"{(~close).sum()} of {close.size} elements"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--targets", default="7-25,28", help="opsets, as in 7,9,11-13")
    parser.add_argument("--via", type=int, help="convert to this opset first, and only to targets the test can say")
    parser.add_argument("--kind", nargs="*", default=KINDS, choices=KINDS)
    parser.add_argument("--match", default="", help="only tests whose name holds this")
    parser.add_argument("--every", type=int, default=1, help="only every n-th test")
    parser.add_argument("--list", nargs="*", default=["wrong", "invalid", "crashed"], choices=VERDICTS)
    parser.add_argument("--json", help="write one line per conversion to this file")
    options = parser.parse_args(arguments)
    started = time.time()
    table, reasons = sweep(options)
    print(f"{'opset':>6}" + "".join(f"{verdict:>12}" for verdict in VERDICTS))
    for target, counts in sorted(table.items()):
        print(f"{target:>6}" + "".join(f"{counts[verdict]:>12}" for verdict in VERDICTS))
    print(f"\nrefusals by reason ({time.time() - started:.0f} s)")
    for reason, count in reasons.most_common(40):
        print(f"{count:>6}  {reason}")
    return int(any(counts["wrong"] + counts["invalid"] + counts["crashed"] for counts in table.values()))


def sweep(options: argparse.Namespace) -> tuple[dict[int, Counter[str]], Counter[str]]:
    """Convert and judge everything that is asked for."""
    table: dict[int, Counter[str]] = defaultdict(Counter)
    reasons: Counter[str] = Counter()
    log = open(options.json, "w") if options.json else None  # noqa: SIM115 - optional, closed below
    for index, sample in enumerate(samples(options.kind, options.match)):
        if index % options.every:
            continue
        original = Model(ir.serde.deserialize_model(sample.model))
        model = convert_opset(original, options.via) if options.via else original
        for target in _numbers(options.targets):
            if options.via and target < original.opset:
                continue
            verdict, why = judge(sample, model, target)
            table[target][verdict] += 1
            if verdict == "refused":
                reasons[why.split(" (on the way")[0]] += 1
            if verdict in options.list:
                print(f"{verdict}: {sample.name} {model.opset} -> {target}: {why}", flush=True)
            if log is not None:
                log.write(json.dumps([sample.name, model.opset, target, verdict, why]) + "\n")
    if log is not None:
        log.close()
    return table, reasons


def _numbers(text: str) -> list[int]:
    ranges = [part.partition("-") for part in text.split(",")]
    return [n for low, _, high in ranges for n in range(int(low), int(high or low) + 1)]


if __name__ == "__main__":
    sys.exit(main())
