"""Models as plain data: bytes for the graph, arrays for its weights, whatever class of tensor holds them.

Pickling the objects of onnx_ir themselves would recurse as deep as the graph is long, stumble over what a tracer left
in them, and tie the bytes to the classes of one version.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
import onnx_ir

from entrepot.ir.io.build import build_model
from entrepot.ir.io.context import Context
from entrepot.ir.io.external import array_of
from entrepot.ir.io.serialize import inline, serialize, write_header
from entrepot.ir.io.sparse import SparseTensor
from entrepot.ir.limits import Limits

HELD_FROM = 1024
"""Initializers of this many bytes or more travel as arrays, which take no space in the protobuf and need no copy."""


@dataclass
class Packed:
    """A model as plain data.

    Attributes:
        graph: A serialised ``ModelProto``; the weights held elsewhere are empty tensors in it.
        headers: Initializer name, to a ``TensorProto`` without data and the index of its bytes in ``weights``.
        weights: The bytes of each weight once, as arrays, so that protocol 5 can hand them over without a copy.
    """

    graph: bytes
    headers: dict[str, tuple[bytes, int]] = field(default_factory=dict)
    weights: list[np.ndarray[Any, Any]] = field(default_factory=list)


def pack(model: onnx_ir.Model) -> Packed:
    """The model as data; it is not changed."""
    packed = Packed(b"")
    places: dict[int, int] = {}

    def fill(proto: onnx.TensorProto, tensor: onnx_ir.TensorProtocol, main: bool) -> None:
        if not main or isinstance(tensor, SparseTensor | onnx_ir.StringTensor) or tensor.nbytes < HELD_FROM:
            inline(proto, tensor)
            return
        header = onnx.TensorProto(name=proto.name)
        write_header(header, tensor)
        if id(tensor) not in places:  # weights that are tied stay tied
            places[id(tensor)] = len(packed.weights)
            packed.weights.append(np.frombuffer(tensor.tobytes(), np.uint8))
        packed.headers[proto.name] = (header.SerializeToString(), places[id(tensor)])
        proto.data_type = header.data_type
        proto.dims.append(0)

    packed.graph = serialize(model, fill).SerializeToString()
    return packed


def unpack(packed: Packed) -> onnx_ir.Model:
    """The model, restored."""
    context = Context(None, Limits.unlimited())
    model = build_model(onnx.ModelProto.FromString(packed.graph), context, None)
    made: dict[int, onnx_ir.Tensor[Any]] = {}
    for name, (header, place) in packed.headers.items():
        if place not in made:
            made[place] = _tensor(onnx.TensorProto.FromString(header), packed.weights[place])
        value = model.graph.initializers[name]
        if value.shape == (0,):  # from the empty tensor; no weight kept here is empty
            value.shape = onnx_ir.Shape(made[place].shape.numpy())
        value.const_value = made[place]
    return model


def _tensor(header: onnx.TensorProto, content: np.ndarray[Any, Any]) -> onnx_ir.Tensor[Any]:
    dtype, dims = onnx_ir.DataType(header.data_type), tuple(header.dims)
    metadata = {entry.key: entry.value for entry in header.metadata_props}
    return onnx_ir.Tensor(
        array_of(content, dtype, dims), dtype, name=header.name, doc_string=header.doc_string or None,
        metadata_props=metadata or None,
    )  # fmt: skip
