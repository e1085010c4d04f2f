"""Which variants of operator cases make sense, and what they compute: those on which both oracles agree."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx

from tests.judges.evaluators import APART
from tests.judges.oracle import ORT_OPSET, by_reference
from tests.judges.verdict import Sample, differs, invalid, tolerance
from tests.op_cases.case import Case

RECURRENT = ("RNN", "GRU", "LSTM")
"""Operators whose kernels in onnxruntime (1.31) return uninitialised memory, or never end, without elements."""

NO_KERNEL = ("NOT_IMPLEMENTED", "not a registered function/op")


def settle(case: Case) -> Case | None:
    """The case with what its oracles compute; ``None`` when it is not valid or they do not agree.

    onnx's reference accepts values that no specification allows: it is trusted alone only if onnxruntime has no kernel
    for the operator or the element type. Where an oracle is known to be wrong, the other one is asked.
    """
    if case.op_type in RECURRENT and _is_empty(case):
        return None
    found = []
    if "onnxruntime" in case.oracles:
        values, refusal = _onnxruntime(case)
        if refusal and not any(sign in refusal for sign in NO_KERNEL):
            return None
        found += [] if values is None else [values]
    if "reference" in case.oracles:
        values = by_reference(case)
        found += [] if values is None else [values]
    if not found or len(found) < _needed(case) or any(value is None for values in found for value in values):
        return None
    sample = Sample(str(case), case.model(), case.feeds(), found[0], *tolerance(case), domain=case.domain)
    if any(len(values) != len(found[0]) or differs(sample, found[0], values) for values in found[1:]):
        return None
    if invalid(sample, sample.model, case.opset) or not all(map(_is_of, sample.model.graph.output, found[0])):
        return None
    return case.giving(*found[0])


def _needed(case: Case) -> int:
    """How many oracles have to agree: all of them if there are no elements."""
    return max(case.needs, len(case.oracles) if _is_empty(case) else 0)


def _is_empty(case: Case) -> bool:
    return any(isinstance(value, np.ndarray) and not value.size for value in case.inputs)


def _is_of(declared: onnx.ValueInfoProto, value: Any) -> bool:
    """Whether a result is what onnx infers: its reference sums 32 bits in 64, onnxruntime leaves windows out."""
    tensor = declared.type.tensor_type
    if not isinstance(value, np.ndarray | np.generic) or not tensor.elem_type:
        return True
    sizes = [dim.dim_value if dim.HasField("dim_value") else None for dim in tensor.shape.dim]
    if tensor.HasField("shape") and not _fits(sizes, value.shape):
        return False
    width = onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type).itemsize
    return value.dtype.kind not in "biufV" or value.dtype.itemsize == width


def _fits(sizes: list[int | None], shape: tuple[int, ...]) -> bool:
    return len(sizes) == len(shape) and all(a in (None, b) for a, b in zip(sizes, shape, strict=True))


def _onnxruntime(case: Case) -> tuple[list[Any] | None, str]:
    try:
        model = case.model(min(case.opset, ORT_OPSET))
    except (TypeError, ValueError) as error:  # an attribute of a type that the schema does not have
        return None, str(error)
    try:
        return APART.run(model, case.feeds()), ""
    except RuntimeError as error:
        return None, str(error)
