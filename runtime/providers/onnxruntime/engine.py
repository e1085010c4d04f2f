"""One onnxruntime session: a model handed over, arrays of every element type in and out."""

from __future__ import annotations

import ctypes
import re
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import ml_dtypes  # noqa: F401 - registers the element types that NumPy lacks
import numpy as np
import onnx
import onnx_ir as ir

from entrepot.ir.errors import ExecutionError, UnsupportedOpError
from entrepot.ir.io.external import MappedTensor
from entrepot.ir.io.serialize import inline, serialize, write_header

if TYPE_CHECKING:
    from entrepot.ir.model import Model

INLINE_BYTES = 1 << 30
"""Larger models go to onnxruntime as files: a protobuf ends at 2 GB."""

FATAL_ONLY = 4
"""Log severity: errors are raised, and need not be printed too."""


_LACKING = re.compile(r"not (yet )?(support|implement)|NOT_IMPLEMENTED", re.IGNORECASE)
"""What kernels say that are found at load and turn out to lack an element type when they run: LSTM of doubles."""


class RefusedError(Exception):
    """onnxruntime cannot load a model."""


class Engine:
    """An ``InferenceSession`` that takes inputs by position.

    Args:
        model: At an opset that onnxruntime loads.
        inputs: Names in the order of ``run``'s arguments.
        outputs: Names in the order of its results.
        threads: Threads within one operator.
        frugal: Whether memory matters more than speed: nothing is kept between runs, and the weights of a large model
            are used in the files where they lie, as far as they do, without being folded or laid out anew.
    """

    def __init__(
        self,
        model: Model,
        inputs: Sequence[str],
        outputs: Sequence[str],
        threads: int | None,
        *,
        frugal: bool = False,
    ) -> None:
        self._inputs = list(inputs)
        self._outputs = list(outputs)
        self._session = _session(model, threads, frugal=frugal)
        self._plain = all(_is_plain(arg.type) for arg in [*self._session.get_inputs(), *self._session.get_outputs()])

    def fits(self, part: ir.GraphView) -> bool:
        """Whether a part has exactly this engine's inputs and outputs, in the same order."""
        inputs = [value.name for value in part.inputs]
        return inputs == self._inputs and [value.name for value in part.outputs] == self._outputs

    def run(self, *values: Any) -> tuple[Any, ...]:
        """The outputs in order.

        Raises:
            UnsupportedOpError: A kernel finds, as it runs, that it lacks something.
            ExecutionError: onnxruntime fails while it runs.
        """
        feeds = dict(zip(self._inputs, values, strict=True))
        try:
            if self._plain:
                return tuple(self._session.run(self._outputs, feeds))
            feeds = {name: _to_ort(value) for name, value in feeds.items()}
            return tuple(_from_ort(value) for value in self._session.run_with_ort_values(self._outputs, feeds))
        except _failures() as error:
            kind = UnsupportedOpError if _LACKING.search(str(error)) else ExecutionError
            raise kind(f"onnxruntime: {error}") from error


@cache
def _failures() -> tuple[type[Exception], ...]:
    """Everything onnxruntime raises; the classes share no base of their own."""
    from onnxruntime.capi import onnxruntime_pybind11_state as state

    kinds = [item for item in vars(state).values() if isinstance(item, type) and issubclass(item, Exception)]
    return (*kinds, RuntimeError, ValueError)


def _session(model: Model, threads: int | None, *, frugal: bool) -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = FATAL_ONLY
    if threads is not None:
        options.intra_op_num_threads = threads
    if frugal:  # its arena keeps what the largest of many sizes took, for each of them
        options.enable_cpu_mem_arena = options.enable_mem_pattern = False
    try:
        if _weight_bytes(model) < INLINE_BYTES:
            return _open(onnxruntime, model.to_proto().SerializeToString(), options)
        if frugal and (beside := _folder(model)) is not None:
            return _open(onnxruntime, _without_weights(model, beside), _frugal(onnxruntime, options, beside))
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.onnx"
            model.save(path, external_data="model.data")
            return _open(onnxruntime, str(path), options)
    except _failures() as error:
        raise RefusedError(str(error)) from error


def _open(onnxruntime: Any, source: bytes | str, options: Any) -> Any:
    return onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])


def _folder(model: Model) -> Path | None:
    """Where the weights of a model lie in files, if most of them do."""
    tensors = [value.const_value for value in model.ir.graph.initializers.values()]
    mapped = [tensor for tensor in tensors if type(tensor) is MappedTensor and tensor.file.is_still(tensor.file.path)]
    folder = mapped[0].file.path.parent if mapped else None
    inside = sum(tensor.nbytes for tensor in mapped if tensor.file.path.parent == folder)
    return folder if _weight_bytes(model) - inside < INLINE_BYTES else None


def _without_weights(model: Model, folder: Path) -> bytes:
    """The model as a proto, with references to the weights that lie in files of a folder."""

    def fill(proto: onnx.TensorProto, tensor: ir.TensorProtocol, main: bool) -> None:
        if not main or type(tensor) is not MappedTensor or tensor.file.path.parent != folder:
            inline(proto, tensor, main)
            return
        write_header(proto, tensor)
        proto.data_location = onnx.TensorProto.EXTERNAL
        place = {"location": tensor.file.path.name, "offset": tensor.offset or 0, "length": tensor.nbytes}
        for key, value in place.items():
            proto.external_data.add(key=key, value=str(value))

    return serialize(model.ir, fill).SerializeToString()


def _frugal(onnxruntime: Any, options: Any, folder: Path) -> Any:
    options.add_session_config_entry("session.model_external_initializers_file_folder_path", str(folder))
    options.add_session_config_entry("session.disable_prepacking", "1")
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return options


def is_large(model: Model) -> bool:
    """Whether a model's weights are better not copied."""
    return _weight_bytes(model) >= INLINE_BYTES


def _weight_bytes(model: Model) -> int:
    tensors = [value.const_value for value in model.ir.graph.initializers.values()]
    return sum(tensor.nbytes for tensor in tensors if tensor is not None and tensor.dtype != ir.DataType.STRING)


_EXOTIC = ("bfloat16", "float8", "float4", "int4", "int2")


def _is_plain(kind: str) -> bool:
    """Whether onnxruntime's own conversion to and from NumPy knows a type such as ``tensor(float)``."""
    return kind.startswith(("tensor(", "seq(", "optional(")) and not any(name in kind for name in _EXOTIC)


def _to_ort(value: Any) -> Any:
    import onnxruntime

    if value is None or isinstance(value, list) or value.dtype.kind == "O":
        return value
    value = np.ascontiguousarray(value).reshape(value.shape)
    if value.dtype.kind in "fiubc" and value.dtype.isbuiltin == 1:
        return onnxruntime.OrtValue.ortvalue_from_numpy(value)
    code = int(ir.DataType.from_numpy(value.dtype))
    packed = onnx.numpy_helper.from_array(value).raw_data if value.dtype.itemsize == 1 else value.tobytes()
    made = onnxruntime.OrtValue.ortvalue_from_shape_and_type(list(value.shape), code)
    if packed:
        ctypes.memmove(made.data_ptr(), packed, len(packed))
    return made


def _from_ort(value: Any) -> Any:
    if not value.is_tensor():
        return value.numpy() if value.has_value() else None
    code = value.element_type()
    dtype = np.dtype(ir.DataType(code).numpy()) if code != onnx.TensorProto.STRING else np.dtype(object)
    if dtype.kind == "O" or dtype.isbuiltin == 1:
        return value.numpy()
    raw = ctypes.string_at(value.data_ptr(), value.tensor_size_in_bytes())
    tensor = onnx.TensorProto(data_type=code, dims=value.shape(), raw_data=raw)
    return onnx.numpy_helper.to_array(tensor)
