"""From ``onnx_ir.Model`` to ``ModelProto``: the inverse of ``build``, which changes nothing in the model."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import onnx
import onnx_ir
from onnx_ir import AttributeType as A

from entrepot.ir.collector import collector_paused
from entrepot.ir.errors import ModelFormatError, describe_node
from entrepot.ir.io.build import TRAINING
from entrepot.ir.io.graphs import QUANTIZATION, UNUSED_INFO, UNUSED_QUANTIZATION
from entrepot.ir.io.signatures import Signatures
from entrepot.ir.io.sparse import SparseTensor
from entrepot.ir.io.value_types import write_type
from entrepot.ir.nesting import check_nesting

FillTensor = Callable[[onnx.TensorProto, onnx_ir.TensorProtocol, bool], None]
"""Puts a tensor's data into a proto; the flag is true for the initializers of the main graph."""


def serialize(model: onnx_ir.Model, fill: FillTensor) -> onnx.ModelProto:
    """The model as a new proto.

    Trailing absent inputs and outputs of nodes are left out, as far as the operator allows: onnxruntime crashes on
    ``LayerNormalization(x, w, "")``.

    Args:
        model: Not changed.
        fill: Decides where each tensor's data goes.

    Raises:
        ConversionError: No file holds it; see ``check_nesting``.
    """
    check_nesting(model)
    with collector_paused():
        return _serialize(model, fill)


def _serialize(model: onnx_ir.Model, fill: FillTensor) -> onnx.ModelProto:
    proto = onnx.ModelProto()
    _set(proto, ir_version=model.ir_version, domain=model.domain, model_version=model.model_version)
    _set(proto, producer_name=model.producer_name, producer_version=model.producer_version, doc_string=model.doc_string)
    if model.ir_version not in (1, 2) or model.opset_imports != {"": 1}:  # those versions had no imports
        _write_opsets(proto, model.opset_imports)
    _write_texts(proto.metadata_props, model.metadata_props)
    for configuration in model.device_configurations:
        proto.configuration.append(onnx_ir.serde.serialize_model_configuration(configuration))
    writer = _GraphWriter(fill, model.opset_imports)
    writer.write_graph(proto.graph, model.graph, main=True)
    for function in model.functions.values():
        _write_function(proto, function, fill, in_main=model.ir_version < 10)
    proto.training_info.extend(model.meta.get(TRAINING, ()))
    return proto


def serialize_node(node: onnx_ir.Node, opsets: Mapping[str, int]) -> onnx.NodeProto:
    """One node as a new proto."""
    proto = onnx.NodeProto()
    _GraphWriter(inline, opsets).write_node(proto, node)
    return proto


def inline(proto: onnx.TensorProto, tensor: onnx_ir.TensorProtocol, _main: bool = False) -> None:
    """Put all data into the proto."""
    if isinstance(tensor, onnx_ir.serde.TensorProtoTensor):
        name = proto.name
        proto.CopyFrom(tensor.raw)
        _set(proto, name=name)
        return
    write_header(proto, tensor)
    if isinstance(tensor, onnx_ir.StringTensor):
        items: list[Any] = list(tensor.string_data())  # str, if somebody made it from an array of objects
        proto.string_data.extend(map(_bytes, items))
        return
    proto.raw_data = tensor.tobytes()
    if len(proto.raw_data) != tensor.nbytes:
        raise ModelFormatError(
            f"tensor provides {len(proto.raw_data)} bytes, but type and shape need {tensor.nbytes}", value=proto.name
        )


def write_header(proto: onnx.TensorProto, tensor: onnx_ir.TensorProtocol) -> None:
    """Everything about a tensor but its name and data."""
    proto.data_type = tensor.dtype.value
    proto.dims.extend(int(dim) for dim in tensor.shape.numpy())
    _set(proto, doc_string=tensor.doc_string)
    _write_texts(proto.metadata_props, tensor.metadata_props)


class _GraphWriter:
    """Writes the graphs of one scope of opsets: the main graph, or one function."""

    def __init__(self, fill: FillTensor, opsets: Mapping[str, int]) -> None:
        self._fill = fill
        self._opsets = opsets
        self._signatures = Signatures()

    def write_graph(self, proto: onnx.GraphProto, graph: onnx_ir.Graph, *, main: bool = False) -> None:
        proto.SetInParent()
        _set(proto, name=graph.name, doc_string=graph.doc_string)
        _write_texts(proto.metadata_props, graph.metadata_props)
        for value in graph.inputs:
            write_value(proto.input.add(), value)
        for value in graph.initializers.values():
            self._write_initializer(proto, value, main=main)
        for node in graph:
            self.write_node(proto.node.add(), node)
            for output in node.outputs:
                if output.name and not output.is_graph_output() and says_anything(output):
                    write_value(proto.value_info.add(), output)
        for value in graph.outputs:
            write_value(proto.output.add(), value)
        _write_annotations(proto, graph)
        written = {info.name for info in proto.value_info}
        proto.value_info.extend(info for info in graph.meta.get(UNUSED_INFO, ()) if info.name not in written)

    def _write_initializer(self, proto: onnx.GraphProto, value: onnx_ir.Value, *, main: bool) -> None:
        tensor, name = value.const_value, _name(value)
        if tensor is None:
            raise ModelFormatError("initializer without data", graph=proto.name, value=name)
        if type(tensor) is SparseTensor:
            sparse = proto.sparse_initializer.add()
            sparse.CopyFrom(tensor.proto)
            sparse.values.name = name
        else:
            target = proto.initializer.add()
            target.name = name
            self._fill(target, tensor, main)
        if not (value.is_graph_input() or value.is_graph_output()) and _says_more(value, tensor):
            write_value(proto.value_info.add(), value)

    def write_node(self, proto: onnx.NodeProto, node: onnx_ir.Node) -> None:
        _set(proto, op_type=node.op_type, domain=node.domain, name=node.name, overload=node.overload,
             doc_string=node.doc_string)  # fmt: skip
        _write_texts(proto.metadata_props, node.metadata_props)
        least_inputs, least_outputs = self._least(node)
        inputs = ["" if value is None else _name(value, node) for value in node.inputs]
        proto.input.extend([*_trimmed(inputs, least_inputs), *[""] * (least_inputs - len(inputs))])
        proto.output.extend(_trimmed([value.name or "" for value in node.outputs], least_outputs))
        for attribute in node.attributes.data.values():
            self.write_attribute(proto.attribute.add(), attribute)
        for configuration in node.device_configurations:
            proto.device_configurations.append(onnx_ir.serde.serialize_node_device_configuration(configuration))

    def _least(self, node: onnx_ir.Node) -> tuple[int, int]:
        """How many inputs and outputs must be there even if absent: a Loop always has two inputs.

        onnx_ir's passes leave out absent ones at the end of any node.
        """
        signature = self._signatures.find(node.domain, node.op_type, self._opsets.get(node.domain, 0))
        if signature is None:
            return 0, 0
        given = range(len(node.inputs), signature.inputs[0])
        lacking = any(at in signature.required_inputs for at in given)  # nothing stands for what is not optional
        return len(node.inputs) if lacking else signature.inputs[0], signature.outputs[0]

    def write_attribute(self, proto: onnx.AttributeProto, attribute: onnx_ir.Attr) -> None:
        proto.name = attribute.name
        _set(proto, doc_string=attribute.doc_string)
        proto.type = attribute.type.value  # type: ignore[assignment]
        if attribute.is_ref():
            proto.ref_attr_name = attribute.ref_attr_name or ""
        else:
            _ATTRIBUTES[attribute.type](self, proto, attribute.value)

    def write_tensor(self, proto: onnx.TensorProto, tensor: onnx_ir.TensorProtocol) -> None:
        _set(proto, name=tensor.name)
        self._fill(proto, tensor, False)


def _write_function(proto: onnx.ModelProto, function: onnx_ir.Function, fill: FillTensor, *, in_main: bool) -> None:
    target = proto.functions.add()
    _set(target, domain=function.domain, name=function.name, overload=function.overload,
         doc_string=function.doc_string)  # fmt: skip
    _write_opsets(target, function.opset_imports)
    _write_texts(target.metadata_props, function.metadata_props)
    writer = _GraphWriter(fill, function.opset_imports)
    for attribute in function.attributes.values():
        if attribute.value is None:
            target.attribute.append(attribute.name)
        else:
            writer.write_attribute(target.attribute_proto.add(), attribute)
    target.input.extend(_name(value) for value in function.inputs)
    target.output.extend(_name(value) for value in function.outputs)
    values = list(function.inputs)
    for node in function:
        writer.write_node(target.node.add(), node)
        values += node.outputs
    _write_function_infos(proto, target, values, function, in_main=in_main)


def _write_function_infos(
    proto: onnx.ModelProto,
    target: onnx.FunctionProto,
    values: Iterable[onnx_ir.Value],
    function: onnx_ir.Function,
    *,
    in_main: bool,
) -> None:
    """Types of values in a function; before format version 10 they are kept in the main graph under long names."""
    infos = proto.graph.value_info if in_main else target.value_info
    known = {info.name for info in infos}
    prefix = f"{function.domain}::{function.name}/" if in_main else ""
    for value in values:
        if value.name and says_anything(value) and prefix + value.name not in known:
            info = infos.add()
            write_value(info, value)
            info.name = prefix + value.name
    for info in function.graph.meta.get(UNUSED_INFO, ()):
        target.value_info.append(info)


def write_value(proto: onnx.ValueInfoProto, value: onnx_ir.Value) -> None:
    """A value's name, type, shape and metadata."""
    proto.name = _name(value)
    _set(proto, doc_string=value.doc_string)
    _write_texts(proto.metadata_props, value.metadata_props)
    if value.type is not None:
        write_type(proto.type, value.type, value.shape)


def _write_annotations(proto: onnx.GraphProto, graph: onnx_ir.Graph) -> None:
    values = dict.fromkeys([*graph.inputs, *graph.initializers.values()])
    values.update(dict.fromkeys(output for node in graph for output in node.outputs))
    for value in values:
        names = value.meta.get(QUANTIZATION)
        if names:
            annotation = proto.quantization_annotation.add(tensor_name=value.name)
            _write_texts(annotation.quant_parameter_tensor_names, names)
    proto.quantization_annotation.extend(graph.meta.get(UNUSED_QUANTIZATION, ()))


def _write_opsets(proto: onnx.ModelProto | onnx.FunctionProto, opsets: Mapping[str, int]) -> None:
    for domain, version in opsets.items():
        proto.opset_import.add(domain=domain, version=version)


def _write_texts(entries: Any, texts: Mapping[str, str]) -> None:
    for key in sorted(texts):
        entries.add(key=key, value=texts[key])


def _set(proto: Any, **fields: Any) -> None:
    for name, value in fields.items():
        if value:
            setattr(proto, name, value)


def says_anything(value: onnx_ir.Value) -> bool:
    """Whether there is more to say about a value than its name."""
    return value.type is not None or bool(value.doc_string) or bool(value.metadata_props)


def _says_more(value: onnx_ir.Value, tensor: onnx_ir.TensorProtocol) -> bool:
    """Whether there is more to say about an initializer than its tensor says."""
    same_type = value.type is None or value.type == onnx_ir.TensorType(tensor.dtype)
    same_shape = value.shape is None or value.shape == tensor.shape
    return not (same_type and same_shape) or bool(value.doc_string) or bool(value.metadata_props)


def _name(value: onnx_ir.Value, node: onnx_ir.Node | None = None) -> str:
    if not value.name:
        raise ModelFormatError("a value in use has no name", node=None if node is None else describe_node(node))
    return value.name


def _trimmed(names: Sequence[str], least: int) -> Sequence[str]:
    count = len(names)
    while count > least and not names[count - 1]:
        count -= 1
    return names[:count]


def _scalar(field: str) -> Callable[[_GraphWriter, Any, Any], None]:
    return lambda _writer, proto, value: setattr(proto, field, value)


def _repeated(field: str) -> Callable[[_GraphWriter, Any, Any], None]:
    return lambda _writer, proto, value: getattr(proto, field).extend(value)


def _each(field: str, write: Callable[[_GraphWriter, Any, Any], None]) -> Callable[[_GraphWriter, Any, Any], None]:
    def write_all(writer: _GraphWriter, proto: Any, values: Iterable[Any]) -> None:
        for value in values:
            write(writer, getattr(proto, field).add(), value)

    return write_all


def _write_graph(writer: _GraphWriter, proto: onnx.GraphProto, graph: onnx_ir.Graph) -> None:
    writer.write_graph(proto, graph)


def _write_tensor(writer: _GraphWriter, proto: onnx.TensorProto, tensor: onnx_ir.TensorProtocol) -> None:
    writer.write_tensor(proto, tensor)


def _write_sparse(_writer: _GraphWriter, proto: onnx.SparseTensorProto, tensor: SparseTensor) -> None:
    proto.CopyFrom(tensor.proto)


def _write_type_and_shape(_writer: _GraphWriter, proto: onnx.TypeProto, value: onnx_ir.TypeAndShape) -> None:
    write_type(proto, value.type, value.shape)


def _bytes(text: str | bytes) -> bytes:
    return text.encode() if isinstance(text, str) else text


_ATTRIBUTES: dict[A, Callable[[_GraphWriter, Any, Any], None]] = {
    A.INT: _scalar("i"),
    A.FLOAT: _scalar("f"),
    A.STRING: lambda _writer, proto, value: setattr(proto, "s", _bytes(value)),
    A.INTS: _repeated("ints"),
    A.FLOATS: _repeated("floats"),
    A.STRINGS: lambda _writer, proto, value: proto.strings.extend(map(_bytes, value)),
    A.TENSOR: lambda writer, proto, value: _write_tensor(writer, proto.t, value),
    A.TENSORS: _each("tensors", _write_tensor),
    A.GRAPH: lambda writer, proto, value: _write_graph(writer, proto.g, value),
    A.GRAPHS: _each("graphs", _write_graph),
    A.SPARSE_TENSOR: lambda writer, proto, value: _write_sparse(writer, proto.sparse_tensor, value),
    A.SPARSE_TENSORS: _each("sparse_tensors", _write_sparse),
    A.TYPE_PROTO: lambda writer, proto, value: _write_type_and_shape(writer, proto.tp, value),
    A.TYPE_PROTOS: _each("type_protos", _write_type_and_shape),
}
