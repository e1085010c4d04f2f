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
from entrepot.runtime.providers.onnxruntime.weights import Handed, hand_over

if TYPE_CHECKING:
    from entrepot.ir.model import Model

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
        frugal: Whether memory and the processor's time matter more than latency: nothing is kept between runs, no
            thread waits busily, and the weights of a large model are used where they lie, without being copied, folded
            or laid out anew.
        literal: Whether each node is run as it stands, and none is fused with others.
    """

    def __init__(
        self,
        model: Model,
        inputs: Sequence[str],
        outputs: Sequence[str],
        threads: int | None,
        *,
        frugal: bool = False,
        literal: bool = False,
    ) -> None:
        self._inputs = list(inputs)
        self._outputs = list(outputs)
        self._session, handed = _session(model, threads, frugal=frugal, literal=literal)
        self._kept, self._fed = handed.kept, handed.fed
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
        feeds = {**dict(zip(self._inputs, values, strict=True)), **self._fed}
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


def _session(model: Model, threads: int | None, *, frugal: bool, literal: bool) -> tuple[Any, Handed]:
    """A session, and what it was handed."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = FATAL_ONLY
    if threads is not None:
        options.intra_op_num_threads = threads
    if literal:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    if frugal:  # its arena keeps what the largest of many sizes took, for each of them
        options.enable_cpu_mem_arena = options.enable_mem_pattern = False
        # threads that wait for work take a third as much of the processor again as those that have some (1.31)
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    try:
        handed = hand_over(model, options, frugal=frugal)
        if handed is not None:
            return _open(onnxruntime, handed.proto, options), handed
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.onnx"
            model.save(path, external_data="model.data")
            return _open(onnxruntime, str(path), options), Handed(b"")
    except _failures() as error:
        raise RefusedError(str(error)) from error


def _open(onnxruntime: Any, source: bytes | str, options: Any) -> Any:
    return onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])


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
