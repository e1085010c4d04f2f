"""Running a model at its own opset: onnxruntime has true kernels per opset from 7 to 26."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import onnxruntime as ort

from entrepot.ir.model import Model
from entrepot.ir.opset.convert import convert_opset


def parse(
    body: str,
    opset: int,
    signature: str = "float[N,4] x) => (float[N,4] y",
    *,
    stored: str = "",
    functions: str = "",
    ir_version: int = 8,
    imports: str = "",
) -> Model:
    """A model from the textual form of its nodes."""
    header = f'<ir_version: {ir_version}, opset_import: ["": {opset}{imports}]>'
    weights = f"<{stored}>" if stored else ""
    return Model(ir.from_onnx_text(f"{header} g ({signature}) {weights} {{ {body} }} {functions}"))


def op_types(model: Model) -> list[str]:
    """The operators of the main graph, in order."""
    return [node.op_type for node in model.ir.graph]


def checked(model: Model) -> onnx.ModelProto:
    """The model as a proto that onnx's full checker accepts."""
    proto = ir.serde.serialize_model(model.ir)
    onnx.checker.check_model(proto, full_check=True)
    return proto


def run(model: Model, *arrays: np.ndarray[Any, Any]) -> list[Any]:
    """Outputs in onnxruntime without its graph optimisations."""
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    session = ort.InferenceSession(checked(model).SerializeToString(), options, providers=["CPUExecutionProvider"])
    names = [spec.name for spec in model.inputs]
    return list(session.run(None, dict(zip(names, arrays, strict=True))))


def assert_near(have: np.ndarray[Any, Any], want: np.ndarray[Any, Any], terms: int = 64) -> None:
    """Equal but for the rounding of sums of so many terms, each as large as the largest result."""
    if have.dtype.kind != "f":
        np.testing.assert_array_equal(have, want)
        return
    slack = terms * np.finfo(have.dtype).eps * np.abs(want[np.isfinite(want)]).max(initial=0.0)
    np.testing.assert_allclose(have, want, rtol=0, atol=slack)


def assert_same(before: Model, target: int, *arrays: np.ndarray[Any, Any], atol: float = 1e-5) -> Model:
    """Convert, check, run both and compare; gives the converted model."""
    after = convert_opset(before, target)
    assert after.opset == target
    for want, have in zip(run(before, *arrays), run(after, *arrays), strict=True):
        assert (have.dtype, have.shape) == (want.dtype, want.shape)
        if want.dtype.kind in "biuO":
            np.testing.assert_array_equal(have, want)
        else:
            np.testing.assert_allclose(have, want, rtol=1e-4, atol=atol)
    return after
