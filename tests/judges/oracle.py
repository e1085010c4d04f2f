"""What others compute for an operator case: ``onnx.reference`` at the hub's opset, and onnxruntime at its newest."""

from __future__ import annotations

import ctypes
import os
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
from onnx import helper
from onnx.reference import ReferenceEvaluator

from entrepot.exporters.proof.judge import undisturbed
from tests.op_cases.case import Case

os.environ.setdefault("OMP_NUM_THREADS", "1")

ORT_OPSET = 26
"""The newest opset that onnxruntime 1.31 registers kernels for; later operators are run on it at this one."""


def opinions(case: Case) -> dict[str, list[Any]]:
    """The outputs according to each oracle that the case trusts and that can run it."""
    if case.expected is not None:
        return {"the case itself": list(case.expected)}
    found = {name: _asked(name, case) for name in case.oracles}
    return {name: outputs for name, outputs in found.items() if isinstance(outputs, list)}


def silences(case: Case) -> dict[str, str]:
    """What stops each oracle that the case trusts but that cannot run it; a test counts them."""
    found = {name: _asked(name, case) for name in case.oracles}
    return {name: reason for name, reason in found.items() if isinstance(reason, str)}


def by_reference(case: Case) -> list[Any] | None:
    """What onnx.reference computes, or ``None`` when it cannot run the case."""
    found = _asked("reference", case)
    return found if isinstance(found, list) else None


def by_onnxruntime(case: Case) -> list[Any] | None:
    """What onnxruntime computes, or ``None`` when it cannot run the case."""
    found = _asked("onnxruntime", case)
    return found if isinstance(found, list) else None


def _asked(oracle: str, case: Case) -> list[Any] | str:
    """The outputs, or what stops the oracle."""
    with undisturbed():
        try:
            if oracle == "reference":
                return list(ReferenceEvaluator(case.model()).run(None, case.feeds()))
            return run_onnxruntime(case.model(min(case.opset, ORT_OPSET)), case.feeds())
        except Exception as error:  # noqa: BLE001  whatever stops an oracle; their exceptions have no common class
            return f"{type(error).__name__}: {error}"


def run_onnxruntime(model: onnx.ModelProto, feeds: dict[str, Any]) -> list[Any]:
    """The outputs of a model by onnxruntime's own kernels of its opset, none fused or folded."""
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    if not any(_is_extended(value.type) for value in [*model.graph.input, *model.graph.output]):
        return session.run(None, feeds)
    given = {name: _to_ort(value) for name, value in feeds.items()}
    return [_from_ort(value) for value in session.run_with_ort_values(None, given)]


def _is_extended(value: onnx.TypeProto) -> bool:
    """Whether the elements are of a type that NumPy itself lacks, which onnxruntime takes as bytes only."""
    code = value.tensor_type.elem_type
    return code not in (0, onnx.TensorProto.STRING) and helper.tensor_dtype_to_np_dtype(code).kind == "V"


def _to_ort(value: np.ndarray) -> Any:
    import onnxruntime as ort

    if value.dtype.kind != "V":
        return ort.OrtValue.ortvalue_from_numpy(value)
    code = helper.np_dtype_to_tensor_dtype(value.dtype)
    if _bits(code) == 8 * value.dtype.itemsize:
        return ort.OrtValue.ortvalue_from_numpy_with_onnx_type(value, code)
    packed = onnx.numpy_helper.from_array(value).raw_data
    made = ort.OrtValue.ortvalue_from_shape_and_type(list(value.shape), code)
    ctypes.memmove(made.data_ptr(), packed, len(packed))
    return made


def _from_ort(value: Any) -> np.ndarray:
    code = value.element_type()
    if helper.tensor_dtype_to_np_dtype(code).kind != "V":
        return value.numpy()
    size = (int(np.prod(value.shape())) * _bits(code) + 7) // 8
    data = ctypes.string_at(value.data_ptr(), size)
    return onnx.numpy_helper.to_array(helper.make_tensor("o", code, value.shape(), data, raw=True))


def _bits(code: int) -> int:
    return int(ir.DataType(code).bitwidth)
