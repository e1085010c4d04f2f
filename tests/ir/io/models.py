"""Models for the tests of reading and writing."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

OPSETS = [helper.make_opsetid("", 20)]


def sum_model(*weights: np.ndarray, names: tuple[str, ...] = ()) -> onnx.ModelProto:
    """``y = x + w0 + w1 + …``."""
    tensors = [
        numpy_helper.from_array(np.asarray(weight), names[index] if names else f"w{index}")
        for index, weight in enumerate(weights)
    ]
    elem, shape = tensors[0].data_type, list(weights[0].shape)
    graph = helper.make_graph(
        [helper.make_node("Sum", ["x", *(tensor.name for tensor in tensors)], ["y"])],
        "sum",
        [helper.make_tensor_value_info("x", elem, shape)],
        [helper.make_tensor_value_info("y", elem, shape)],
        tensors,
    )
    return helper.make_model(graph, opset_imports=OPSETS, ir_version=10)


def external_tensor(name: str, shape: list[int], **entries: str) -> onnx.TensorProto:
    tensor = onnx.TensorProto(name=name, data_type=TensorProto.FLOAT, dims=shape, data_location=TensorProto.EXTERNAL)
    for key, value in entries.items():
        tensor.external_data.add(key=key, value=value)
    return tensor


def external_model(*tensors: onnx.TensorProto) -> onnx.ModelProto:
    model = sum_model(np.zeros(4, np.float32))
    del model.graph.initializer[:]
    model.graph.initializer.extend(tensors)
    node = model.graph.node[0]
    node.ClearField("input")
    node.input.extend(["x", *(tensor.name for tensor in tensors)])
    return model


def write(folder: Path, model: onnx.ModelProto, name: str = "net.onnx") -> Path:
    path = folder / name
    path.write_bytes(model.SerializeToString())
    return path
