"""Sparse tensors: kept as the file has them, and made dense when someone asks for the array."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import onnx
import onnx_ir

from entrepot.ir.io.context import Context


class SparseTensor(onnx_ir.TensorProtocol):
    """A ``SparseTensorProto`` that everything else can use like a dense tensor.

    Args:
        proto: The sparse tensor, checked; it is kept, not copied.
        values: Its non-zero values, as a tensor.
    """

    def __init__(self, proto: onnx.SparseTensorProto, values: onnx_ir.TensorProtocol) -> None:
        self.proto = proto
        self.name: str | None = proto.values.name
        self.doc_string: str | None = proto.values.doc_string or None
        self.raw = proto
        self.dtype = values.dtype
        self.shape = onnx_ir.Shape(proto.dims, frozen=True)
        self.metadata_props: dict[str, str] = {}
        self.meta: dict[str, Any] = {}
        self._values = values

    @property
    def size(self) -> int:
        """Number of elements, zeros included."""
        return math.prod(self.proto.dims)

    @property
    def nbytes(self) -> int:
        """Bytes of the dense form."""
        return math.ceil(self.size * self.dtype.itemsize)

    def numpy(self) -> np.ndarray[Any, Any]:
        """The dense array, made anew at each call."""
        dims = tuple(self.proto.dims)
        dense = np.zeros(dims, dtype=self.dtype.numpy())
        if self.proto.values.dims[0]:
            dense.reshape(-1)[flat_indices(self.proto)] = self._values.numpy()
        return dense

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        return self.numpy() if dtype is None else self.numpy().astype(dtype)

    def __dlpack__(self, *, stream: Any = None) -> Any:
        return self.numpy().__dlpack__(stream=stream)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.numpy().__dlpack_device__()

    def tobytes(self) -> bytes:
        """The dense form's bytes in ONNX's layout."""
        return onnx_ir.Tensor(self.numpy(), dtype=self.dtype).tobytes()

    def tofile(self, file: Any) -> None:
        """Write the dense form."""
        file.write(self.tobytes())

    def __repr__(self) -> str:
        return f"SparseTensor<{self.dtype},{self.shape}>({self.proto.values.dims[0]} values, name={self.name!r})"


def check_sparse(context: Context, proto: onnx.SparseTensorProto, name: str) -> None:
    """Check dims and indices against the number of values, which the tensor reader has checked already."""
    dims, found = list(proto.dims), list(proto.values.dims)
    if math.prod(dims) >= 2**62:
        raise context.error(f"sparse tensor of dims {tuple(dims)}: its positions do not fit 64 bits", value=name)
    if len(found) != 1:
        raise context.error(f"values of a sparse tensor have dims {tuple(found)}, but must have one", value=name)
    if proto.indices.data_type != onnx.TensorProto.INT64:
        raise context.error("indices of a sparse tensor are not INT64", value=name)
    shape = list(proto.indices.dims)
    if shape not in ([found[0]], [found[0], len(dims)]):
        raise context.error(
            f"indices of a sparse tensor have dims {tuple(shape)}, but there are {found[0]} values of rank {len(dims)}",
            value=name,
        )
    _check_indices(context, proto, name)


def _check_indices(context: Context, proto: onnx.SparseTensorProto, name: str) -> None:
    indices = _indices(proto)
    upper = np.array(proto.dims, dtype=np.int64) if indices.ndim == 2 else math.prod(proto.dims)
    if (indices < 0).any() or (indices >= upper).any():
        raise context.error(f"an index of a sparse tensor lies outside dims {tuple(proto.dims)}", value=name)
    flat = flat_indices(proto)
    if (flat[1:] <= flat[:-1]).any():
        raise context.error("indices of a sparse tensor are not in ascending order or not unique", value=name)


def _indices(proto: onnx.SparseTensorProto) -> np.ndarray[Any, Any]:
    return onnx_ir.serde.TensorProtoTensor(proto.indices).numpy()


def flat_indices(proto: onnx.SparseTensorProto) -> np.ndarray[Any, Any]:
    """Positions in the flattened dense tensor."""
    indices = _indices(proto)
    if indices.ndim == 1:
        return indices
    return np.ravel_multi_index(tuple(indices.T), tuple(proto.dims)) if len(indices) else indices.reshape(-1)
