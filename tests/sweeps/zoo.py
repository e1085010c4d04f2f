"""Every torch model of the zoo, exported once and converted to every opset: what works, and is it still correct?

A conversion is ``ok`` when it carries the opset asked for, passes onnx's full checker, keeps its inputs and outputs,
and computes what torch computed, at batch 1 and at a larger batch: in onnxruntime, whose kernels know each opset up to
26, and on our own runtime above. ``-`` is a refusal.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import onnx
import onnx_ir as ir

import entrepot as ep
from entrepot import models_zoo
from entrepot.parity.compare import compare, scales_of
from entrepot.parity.sensitivity import sensitivity

Arrays: TypeAlias = dict[str, Any]
Case: TypeAlias = tuple[Arrays, Arrays]
"""The feeds, and what torch computed."""

ONNXRUNTIME_KNOWS = 26
SMALL: dict[str, dict[str, Any]] = {
    "resnet18": {"width": 16},
    "resnet50": {"width": 8, "classes": 10},
    "lenet_digits": {"epochs": 1},
}


def exported(name: str, cache: Path, *, fresh: bool) -> tuple[ep.Model, list[Case]]:
    """The model at the default opset with dynamic axes, and torch's results for its first and its last sample."""
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

    from entrepot.exporters.called import Called
    from entrepot.exporters.torch.sources.module import ModuleSource

    source = ModuleSource(module, sample)
    inputs = [spec.name for spec in model.inputs]
    with torch.no_grad(), source.guard():
        feeds = dict(zip(inputs, map(source.arrays.to_numpy, source.call.tensors), strict=True))
        return feeds, Called(source, inputs, [spec.name for spec in model.outputs]).run(feeds)


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
    if not comparison.ok:  # some networks amplify rounding: the model as it was exported shows how much
        source = ir.serde.serialize_model(model.ir)
        own = _onnxruntime(source, feeds)
        noise = sensitivity(lambda nudged: _onnxruntime(source, nudged), feeds, own)
        comparison = compare(answers, results, scales=scales, noise=noise)
    return "; ".join(comparison.problems)
