"""The verdict on one conversion: its stamp, onnx's full checker, inputs and outputs, and what it computes.

It is computed by an evaluator that knows the opset: onnxruntime has kernels of every version up to 26; onnx's reference
steps in where onnxruntime has no kernel and the reference knows what the version meant.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir

from entrepot.ir.errors import ConversionError
from entrepot.ir.model import Model
from entrepot.ir.opset.convert import convert_opset

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
