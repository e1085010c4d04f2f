"""Attributes of nodes, checked to hold exactly the value their type announces."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import onnx
import onnx_ir
from onnx_ir import AttributeType as A

from entrepot.ir.io.context import Context
from entrepot.ir.io.tensors import TensorReader
from entrepot.ir.io.value_types import read_type

_FIELDS = {A.INT: "i", A.FLOAT: "f", A.STRING: "s", A.TENSOR: "t", A.GRAPH: "g", A.SPARSE_TENSOR: "sparse_tensor",
           A.TYPE_PROTO: "tp", A.INTS: "ints", A.FLOATS: "floats", A.STRINGS: "strings", A.TENSORS: "tensors",
           A.GRAPHS: "graphs", A.SPARSE_TENSORS: "sparse_tensors", A.TYPE_PROTOS: "type_protos"}  # fmt: skip
_TYPES = {field: type_ for type_, field in _FIELDS.items()}
_MEMBERS = {member.value: member for member in A}
_DEFAULTS: dict[A, Any] = {A.INT: 0, A.FLOAT: 0.0, A.STRING: b""}
"""proto3 writers leave out zeros, so an absent number means zero; a missing tensor or graph is an error."""
_NEEDED = {A.TENSOR, A.GRAPH, A.SPARSE_TENSOR, A.TYPE_PROTO}

ReadGraph = Callable[[onnx.GraphProto], onnx_ir.Graph]


class AttributeReader:
    """Makes onnx_ir attributes.

    Args:
        context: Place and budget.
        tensors: Reads the tensors inside.
        read_graph: Reads the graphs inside.
    """

    def __init__(self, context: Context, tensors: TensorReader, read_graph: ReadGraph) -> None:
        self._context = context
        self._convert: dict[A, Callable[[Any], Any]] = {
            A.STRING: _text_or_bytes,
            A.STRINGS: _texts_or_bytes,
            A.TENSOR: tensors.read,
            A.TENSORS: lambda protos: [tensors.read(proto) for proto in protos],
            A.SPARSE_TENSOR: tensors.read_sparse,
            A.SPARSE_TENSORS: lambda protos: [tensors.read_sparse(proto) for proto in protos],
            A.GRAPH: read_graph,
            A.GRAPHS: lambda protos: [read_graph(proto) for proto in protos],
            A.TYPE_PROTO: self._type,
            A.TYPE_PROTOS: lambda protos: [self._type(proto) for proto in protos],
        }

    def read(self, proto: onnx.AttributeProto) -> onnx_ir.Attr:
        """One attribute, or a reference to one of the function around it."""
        context = self._context
        present: dict[str, Any] = {field.name: value for field, value in proto.ListFields()}
        name = context.text(present.pop("name", ""))
        if not name:
            raise context.error("attribute without a name")
        doc_string = context.text(present.pop("doc_string", "")) or None
        type_ = _MEMBERS[present.pop("type", 0)]
        reference = context.text(present.pop("ref_attr_name", ""))
        if reference:
            return onnx_ir.RefAttr(name, reference, type_, doc_string=doc_string)
        if type_ is A.UNDEFINED:  # files of format version 1 have no types
            type_ = self._only_type(name, present)
        value = self._value(name, type_, present)
        convert = self._convert.get(type_)
        return onnx_ir.Attr(name, type_, value if convert is None else convert(value), doc_string=doc_string)

    def _value(self, name: str, type_: A, present: dict[str, Any]) -> Any:
        field = _FIELDS[type_]
        others = [other for other, value in present.items() if other != field and (value or field not in present)]
        if others:  # zeros beside the value are left by writers that set every field
            holds = ", ".join(sorted(_TYPES[other].name for other in others))
            raise self._context.error(f"attribute '{name}' is declared {type_.name}, but holds {holds}")
        if field not in present and type_ in _NEEDED:
            raise self._context.error(f"attribute '{name}' is declared {type_.name}, but holds nothing")
        return present.get(field, _DEFAULTS.get(type_, ()))

    def _only_type(self, name: str, present: dict[str, Any]) -> A:
        if len(present) != 1:
            raise self._context.error(f"attribute '{name}' has no known type and {len(present)} values")
        return _TYPES[next(iter(present))]

    def _type(self, proto: onnx.TypeProto) -> onnx_ir.TypeAndShape:
        return onnx_ir.TypeAndShape(*read_type(self._context, proto))


def _text_or_bytes(value: bytes) -> str | bytes:
    """Custom operators keep binary data in string attributes, whatever the standard says."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value


def _texts_or_bytes(values: list[bytes]) -> list[Any]:
    texts = [_text_or_bytes(value) for value in values]
    return texts if all(isinstance(text, str) for text in texts) else list(values)
