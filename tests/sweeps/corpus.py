"""Every backend test of onnx at every opset: how many conversions are right, refused, wrong or invalid.

Each test is converted as it is and, as files in the wild are, with its parameter inputs turned into initializers
(``#const``). A conversion is right when it carries the opset asked for, passes onnx's full checker, keeps its inputs
and outputs, and computes the expected values in an evaluator that knows the opset: below 7 the one in
``tests/judges/early``, which is written from the specification, onnxruntime up to 26, onnx's reference above.

``benchmarks.opset_corpus`` runs them all and prints the table; the tests run a sample.
"""

from __future__ import annotations

import argparse
import itertools
import json
import warnings
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
from onnx.backend.test.loader import load_model_tests

from entrepot.ir.model import Model
from entrepot.ir.opset.convert import convert_opset
from tests.judges.expressible import expressible
from tests.judges.verdict import Sample, judge, with_constants
from tests.sweeps.inside import inside

KINDS = ("node", "simple", "pytorch-converted", "pytorch-operator")
RANDOM = ("bernoulli", "training_dropout_default", "training_dropout_zero_ratio_", "multinomial", "random")
BAD = ("refused", "wrong", "invalid", "crashed")


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


def _chosen(options: argparse.Namespace) -> Iterator[Sample]:
    for sample in itertools.islice(samples(options.kind, options.match), 0, None, options.every):
        moved = inside(sample, options.inside) if options.inside else sample
        if moved is not None:
            yield moved


def sweep(options: argparse.Namespace) -> tuple[dict[int, Counter[str]], Counter[str]]:
    """Convert and judge everything that is asked for."""
    table: dict[int, Counter[str]] = defaultdict(Counter)
    reasons: Counter[str] = Counter()
    log = open(options.json, "w") if options.json else None  # noqa: SIM115 - optional, closed below
    for sample in _chosen(options):
        original = Model(ir.serde.deserialize_model(sample.model))
        model = convert_opset(original, options.via) if options.via else original
        for target in _numbers(options.targets):
            if options.via and target < original.opset:
                continue
            verdict, why = judge(sample, model, target)
            table[target][verdict] += 1
            if target < original.opset and not options.via:
                table[target][f"{expressible(sample.model, target)}, {verdict}"] += 1
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
