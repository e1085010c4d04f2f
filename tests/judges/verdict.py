"""The verdict on one conversion: its stamp, onnx's full checker, inputs and outputs, and what it computes.

An evaluator that knows the opset says what it computes (``tests.judges.evaluators``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import onnx

from entrepot.ir.errors import ConversionError
from entrepot.ir.model import Model
from entrepot.ir.opset.convert import convert_opset
from tests.judges.draws import draws_differ
from tests.judges.early.use import BreachError
from tests.judges.evaluators import Answers, before, evaluate, opsets
from tests.judges.oracle import opinions
from tests.op_cases.case import Case

VERDICTS = ("right", "refused", "wrong", "invalid", "not judged", "crashed")


@dataclass(frozen=True)
class Sample:
    """A backend test: a model, its feeds and the expected results."""

    name: str
    model: onnx.ModelProto
    feeds: dict[str, Any]
    expected: list[Any]
    rtol: float
    atol: float
    domain: str = ""
    origin: Sample | None = None
    """The test as it was before the conversion that this one starts from."""
    is_drawn: bool = False
    """The results are draws, of which only the distribution is expected."""


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
    return replace(sample, name=f"{sample.name}#const", model=model, feeds=feeds)


def judge(sample: Sample, model: Model, target: int) -> tuple[str, str]:
    """The verdict on one conversion, and what to say about it."""
    try:
        proto = convert_opset(model, {sample.domain: target}).to_proto()
    except ConversionError as error:
        reason = "; ".join(blocker.message for blocker in error.blockers) or error.message
        return ("crashed" if "not a valid node" in reason else "refused"), reason
    except Exception as error:  # noqa: BLE001 - the rest of the sweep goes on
        return "crashed", f"{type(error).__name__}: {error}".splitlines()[0]
    problem = invalid(sample, proto, target)
    if problem:
        return _invalid_too(sample.origin or sample, problem)
    try:
        answers = evaluate(proto, sample.feeds)
    except BreachError as error:
        return "invalid", str(error)
    if answers.by is None:
        return "not judged", answers.problem
    problem = differs(sample, sample.expected, answers.values)
    return _differs_too(sample.origin or sample, answers, problem) if problem else ("right", "")


def _invalid_too(sample: Sample, problem: str) -> tuple[str, str]:
    """A fault of a conversion does not count if the test itself has it."""
    if invalid(sample, sample.model, opsets(sample.model)[sample.domain]):
        return "not judged", f"the test itself is invalid: {problem}"
    return "invalid", problem


def _differs_too(sample: Sample, answers: Answers, problem: str) -> tuple[str, str]:
    """An evaluator that disagrees with the test before any conversion has to give the same result after it."""
    own = before(sample, answers.by)
    if own.by is None or not differs(sample, sample.expected, own.values):
        return "wrong", problem
    if not differs(sample, own.values, answers.values):
        return "right", f"as {own.by} computes the test"
    return "not judged", f"{own.by} disagrees with the test itself: {problem}"


def invalid(sample: Sample, proto: onnx.ModelProto, target: int) -> str:
    """What is not valid about a model of version ``target``, or nothing."""
    stamped = opsets(proto).get(sample.domain, target)
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


def tolerance(case: Case) -> tuple[float, float]:
    """Relative and absolute, wider than a kernel's: a rewritten formula rounds elsewhere, or as its stash type."""
    stash = {onnx.TensorProto.FLOAT16: 4e-3, onnx.TensorProto.BFLOAT16: 3e-2}.get(case.attributes.get("stash_type"), 0)
    return max(1e-3, stash), max(1e-5, stash)


def opinion(case: Case) -> Sample | None:
    """The case as a sample, expecting what a trusted oracle computes; ``None`` if the outcome is open."""
    expected = next(iter(opinions(case).values()), None)
    if expected is None or any(value is None for value in expected):
        return None
    return Sample(
        str(case), case.model(), case.feeds(), list(expected), *tolerance(case), case.domain, is_drawn=case.is_drawn
    )


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


def differs(sample: Sample, expected: Sequence[Any], results: Sequence[Any]) -> str:
    """Where results go beyond the sample's tolerance, or nothing."""
    for index, (want, have) in enumerate(zip(expected, results, strict=True)):
        problem = _value_differs(want, have, sample)
        if problem:
            return f"output {index}: {problem}"
    return ""


def _value_differs(want: Any, have: Any, sample: Sample) -> str:
    if isinstance(want, list | tuple):
        if have is None or len(want) != len(have):
            return "other length"
        return next((p for a, b in zip(want, have, strict=True) if (p := _value_differs(a, b, sample))), "")
    if isinstance(want, dict) and isinstance(have, dict) and list(want) == list(have):
        return _value_differs(list(want.values()), list(have.values()), sample)
    if want is None or have is None or isinstance(want, dict):
        return "" if want is have else "absent, or other keys"
    want, have = np.asarray(want), np.asarray(have)
    if want.shape != have.shape:
        return f"shape {have.shape} instead of {want.shape}"
    elementwise = _words_differ if want.dtype.kind in "OUS" else draws_differ if sample.is_drawn else _numbers_differ
    return elementwise(want, have, sample)


def _words_differ(want: np.ndarray, have: np.ndarray, _sample: Sample) -> str:
    return "" if (want.astype(str) == have.astype(str)).all() else "other strings"


def _numbers_differ(want: Any, have: Any, sample: Sample) -> str:
    if want.dtype.itemsize != have.dtype.itemsize:
        return f"{have.dtype} instead of {want.dtype}"
    if have.dtype != want.dtype:
        have = have.view(want.dtype)  # onnxruntime gives bfloat16 and float8 as plain integers
    coarse = 2e-2 if want.dtype.name == "bfloat16" else 4e-3 if want.dtype.itemsize <= 2 else 1e-3
    is_half = want.dtype.itemsize == 2 and want.dtype.kind in "fV"  # whose sums lose as much as their largest terms
    wide = np.complex128 if "c" in (have.dtype.kind, want.dtype.kind) else np.float64
    with np.errstate(invalid="ignore"):  # memory that a judge left as it was may hold a NaN that signals
        have, want = have.astype(wide), want.astype(wide)
    atol = max(sample.atol, 1e-6, coarse * _size(want) if is_half else 0)
    close = np.isclose(have, want, max(sample.rtol, coarse), atol, equal_nan=True)
    return "" if close.all() else f"{(~close).sum()} of {close.size} elements"


def _size(array: np.ndarray) -> float:
    finite = np.abs(array[np.isfinite(array)])
    return float(finite.mean()) if finite.size else 0.0
