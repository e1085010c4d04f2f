"""Windows and recurrence, by onnxruntime's kernels of opset 7, one node at a time.

Most of these versions are the very ones in force at opset 7. The others are, too, but for what their functions here
say; each takes off what version 7 does not have, and nothing else.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from onnx import helper

from tests.judges.early.use import Array, CannotJudgeError, Use, meaning

NEWER = 7
SAME_AT_7 = (
    "Conv",
    "ConvTranspose",
    "GlobalAveragePool",
    "GlobalMaxPool",
    "MaxPool",
    "MaxRoiPool",
)
NARROWER = {np.dtype(np.float16): np.float32, np.dtype(np.float64): np.float32}
"""What to compute in where onnxruntime has no kernel for an element type; judging needs three digits."""


@meaning(*SAME_AT_7)
@meaning("LpPool", "GlobalLpPool", since=(2,))
def same(use: Use, *inputs: Array | None) -> list[Array]:
    """Literally the operator that opset 7 has."""
    if use.node.op_type == "MaxPool" and any(np.isnan(value).any() for value in inputs if value is not None):
        raise CannotJudgeError("whether NaN is larger than a number")
    return at_seven(use, inputs, use.attributes)


@meaning("AveragePool")
def average_pool(use: Use, x: Array) -> list[Array]:
    """Version 7 can count padding in, and does not by default: "the number of elements exclude pad"."""
    return at_seven(use, [x], use.attributes)


@meaning("LpPool", "GlobalLpPool")
def lp_pool(use: Use, x: Array) -> list[Array]:
    """``p`` was a float; only whole numbers can be had from version 7."""
    if use["p"] != int(use["p"]) or (use.node.op_type == "LpPool" and use["kernel_shape"] is None):
        raise CannotJudgeError(f"p={use['p']}, kernel_shape={use['kernel_shape']}")
    return at_seven(use, [x], use.attributes | {"p": int(use["p"])})


@meaning("RNN", "LSTM")
@meaning("GRU", since=(1, 3))
def recurrent(use: Use, *inputs: Array | None) -> list[Array | None]:
    """The sequence is there only if ``output_sequence`` says so."""
    attributes = {name: value for name, value in use.attributes.items() if name != "output_sequence"}
    if attributes["direction"] == "foward":  # GRU-1's default is misspelled
        attributes["direction"] = "forward"
    results: list[Array | None] = [*at_seven(use, inputs, attributes)]
    return results if use["output_sequence"] else [None, *results[1:]]


def at_seven(use: Use, inputs: Any, attributes: dict[str, Any]) -> list[Any]:
    """The node's results from onnxruntime at opset 7."""
    floats = [value.dtype for value in inputs if value is not None and value.dtype.kind == "f"]
    try:
        return _run(use, inputs, attributes)
    except _unsupported() as error:
        narrower = NARROWER.get(floats[0]) if floats else None
        if narrower is None:
            raise CannotJudgeError(str(error)) from error
    fed = [value.astype(narrower) if value is not None and value.dtype.kind == "f" else value for value in inputs]
    try:
        results = _run(use, fed, attributes)
    except _unsupported() as error:
        raise CannotJudgeError(str(error)) from error
    return [result.astype(floats[0]) if result.dtype.kind == "f" else result for result in results]


def _run(use: Use, inputs: Any, attributes: dict[str, Any]) -> list[Any]:
    import onnxruntime as ort

    names = [f"i{index}" if value is not None else "" for index, value in enumerate(inputs)]
    outputs = [f"o{index}" if name else "" for index, name in enumerate(use.node.output)]
    node = helper.make_node(use.node.op_type, names, outputs, **attributes)
    feeds = {name: value for name, value in zip(names, inputs, strict=True) if name}
    given = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)
        for name, value in feeds.items()
    ]
    made = [onnx.ValueInfoProto(name=name) for name in outputs if name]
    graph = helper.make_graph([node], "one", given, made)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", NEWER)], ir_version=3)
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    inferred = onnx.shape_inference.infer_shapes(model).SerializeToString()
    results = iter(ort.InferenceSession(inferred, options, providers=["CPUExecutionProvider"]).run(None, feeds))
    return [next(results) if name else None for name in outputs]


def _unsupported() -> tuple[type[Exception], ...]:
    from onnxruntime.capi import onnxruntime_pybind11_state as state

    return (state.NotImplemented, state.InvalidGraph, state.Fail, state.InvalidArgument, state.RuntimeException)
