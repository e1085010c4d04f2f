"""Graphs of a file: names are resolved to values, and whatever is missing, duplicated or circular is refused."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import onnx
import onnx_ir

from entrepot.ir.io.attributes import AttributeReader
from entrepot.ir.io.bodies import body_problem
from entrepot.ir.io.context import Context
from entrepot.ir.io.meaning import value_problem
from entrepot.ir.io.order import find_cycle
from entrepot.ir.io.signatures import Signatures
from entrepot.ir.io.tensors import TensorReader
from entrepot.ir.io.value_types import read_type

FunctionId = tuple[str, str, str]

Kind = tuple[object, ...]
"""All about a node but what it is connected to."""

UNUSED_INFO = "entrepot.value_info"
"""Key in ``graph.meta``: protos of ``value_info`` that name no value of the graph, kept for writing."""

QUANTIZATION = "quant_parameter_tensor_names"
"""Key in ``value.meta`` that onnx_ir uses for quantization annotations."""

UNUSED_QUANTIZATION = "entrepot.quantization_annotation"
"""Key in ``graph.meta``: quantization annotations that name no value of the graph."""


_NUMBERED = 6
"""The opset from which on a Cast's type is a number."""


class Scope:
    """The values of one graph by name; ``pending`` are the outputs of nodes that come later in the file."""

    def __init__(self) -> None:
        self.values: dict[str, onnx_ir.Value] = {}
        self.pending: set[str] = set()
        self.unsorted = False


class GraphReader:
    """Makes onnx_ir graphs.

    Args:
        context: Place and budget.
        tensors: Reads tensors.
        functions: Inputs and outputs of every model-local function, by identifier.
        initializers: Those of the main graph, if they were read before.
        kinds: Nodes that were read and checked before, by their kind; only for files without functions and subgraphs.
    """

    def __init__(
        self,
        context: Context,
        tensors: TensorReader,
        functions: Mapping[FunctionId, tuple[int, int]],
        initializers: Sequence[onnx_ir.TensorProtocol] | None = None,
        kinds: Mapping[Kind, onnx_ir.Node] | None = None,
    ) -> None:
        self._read_before = initializers
        self._kinds = kinds or {}
        self._context = context
        self._tensors = tensors
        self._functions = functions
        self._attributes = AttributeReader(context, tensors, self.read_nested)
        self._signatures = Signatures()
        self._scopes: list[Scope] = []
        self._opsets: Mapping[str, int] = {}
        self._in_function = False
        self.calls: dict[FunctionId, int] = {}
        """Calls of functions in the body read last, subgraphs included."""
        self.nodes = 0
        """Nodes of the body read last, subgraphs included."""

    def read_main(self, proto: onnx.GraphProto, opsets: dict[str, int]) -> onnx_ir.Graph:
        """The model's graph."""
        self._begin(opsets, in_function=False)
        for info in proto.input:
            if not info.type.WhichOneof("value"):
                raise self._context.error("graph input without a type", value=info.name)
        if not proto.output:
            raise self._context.error("the graph has no outputs", hint="it computes nothing: name its results")
        graph = self._graph(proto)
        graph.opset_imports.update(opsets)
        return graph

    def read_body(
        self, proto: onnx.FunctionProto, opsets: dict[str, int], infos: Iterable[onnx.ValueInfoProto]
    ) -> onnx_ir.Graph:
        """The body of a model-local function; it sees nothing from outside."""
        self._begin(opsets, in_function=True)
        context, scope = self._context, Scope()
        known = {info.name: info for info in infos}
        for name in proto.input:
            self._define(scope, name, known.pop(name, None))
        inputs = list(scope.values.values())
        nodes = self._nodes(proto.node, scope, known)
        outputs = [self._output(name, scope) for name in proto.output]
        graph = onnx_ir.Graph(
            inputs, outputs, nodes=nodes, opset_imports=opsets, name=context.text(proto.name),
            doc_string=context.text(proto.doc_string) or None,
            metadata_props=context.texts(proto.metadata_props) or None,
        )  # fmt: skip
        self._finish(graph, scope, known, {})
        return graph

    def read_alone(self, proto: onnx.NodeProto, opsets: dict[str, int]) -> onnx_ir.Node:
        """A node of the main graph by itself, checked as far as it goes; it is connected to nothing."""
        self._begin(opsets, in_function=False)
        scope = Scope()
        scope.values = {name: onnx_ir.Value(name=name) for name in proto.input}
        self._scopes, self._context.node = [scope], proto
        return self._node(proto, [onnx_ir.Value(name=name) for name in proto.output])

    def _begin(self, opsets: Mapping[str, int], *, in_function: bool) -> None:
        self._opsets, self._in_function = opsets, in_function
        self.calls, self.nodes = {}, 0

    def read_nested(self, proto: onnx.GraphProto) -> onnx_ir.Graph:
        """A graph inside an attribute; it sees the values of the graphs around it."""
        with self._context.inside(self._context.text(proto.name)):
            return self._graph(proto)

    def _graph(self, proto: onnx.GraphProto) -> onnx_ir.Graph:
        context, scope = self._context, Scope()
        infos = {info.name: info for info in proto.value_info}
        for info in proto.input:
            self._define(scope, info.name, info)
        inputs = list(scope.values.values())
        initializers = [self._initializer(tensor, scope, infos) for tensor in self._initial_tensors(proto)]
        if len({id(value) for value in initializers}) != len(initializers):
            raise context.error(f"two initializers named '{_repeated(value.name or '' for value in initializers)}'")
        nodes = self._nodes(proto.node, scope, infos)
        outputs = [self._output(info.name, scope) for info in proto.output]
        for value, info in zip(outputs, proto.output, strict=True):
            self._describe(value, info)
        annotations = self._annotate(proto, scope)
        graph = self._assemble(proto, inputs, outputs, nodes, initializers)
        self._finish(graph, scope, infos, annotations)
        return graph

    def _assemble(
        self,
        proto: onnx.GraphProto,
        inputs: Sequence[onnx_ir.Value],
        outputs: Sequence[onnx_ir.Value],
        nodes: Sequence[onnx_ir.Node],
        initializers: Sequence[onnx_ir.Value],
    ) -> onnx_ir.Graph:
        context = self._context
        return onnx_ir.Graph(
            inputs, outputs, nodes=nodes, initializers=initializers, name=context.text(proto.name) or None,
            doc_string=context.text(proto.doc_string) or None,
            metadata_props=context.texts(proto.metadata_props) or None,
        )  # fmt: skip

    def _finish(
        self, graph: onnx_ir.Graph, scope: Scope, infos: Mapping[str, Any], annotations: Mapping[int, Any]
    ) -> None:
        if scope.unsorted:
            node = find_cycle(graph)
            if node is not None:
                names = [output.name for output in node.outputs]
                raise self._context.error(f"{node.op_type} that produces {names} depends on its own result: a cycle")
        for key, left in ((UNUSED_INFO, infos.values()), (UNUSED_QUANTIZATION, annotations.values())):
            if left:
                graph.meta[key] = [_copy(self._context, message) for message in left]

    def _initial_tensors(self, proto: onnx.GraphProto) -> Iterable[onnx_ir.TensorProtocol]:
        read, self._read_before = self._read_before, None
        yield from map(self._tensors.read, proto.initializer) if read is None else read
        yield from map(self._tensors.read_sparse, proto.sparse_initializer)

    def _initializer(
        self, tensor: onnx_ir.TensorProtocol, scope: Scope, infos: dict[str, onnx.ValueInfoProto]
    ) -> onnx_ir.Value:
        name = tensor.name
        if not name:
            raise self._context.error("initializer without a name")
        value = scope.values.get(name)
        if value is None:
            value = self._define(scope, name, infos.pop(name, None))
            value.type = value.type or onnx_ir.TensorType(tensor.dtype)
            value.shape = value.shape or tensor.shape  # type: ignore[assignment]
        value.const_value = tensor
        return value

    def _define(self, scope: Scope, name: str, info: onnx.ValueInfoProto | None) -> onnx_ir.Value:
        if not self._context.text(name):
            raise self._context.error("graph input without a name")
        if name in scope.values:
            raise self._context.error("defined twice", value=name, hint="names are unique within a graph")
        value = scope.values[name] = onnx_ir.Value(name=name)
        if info is not None:
            self._describe(value, info)
        return value

    def _describe(self, value: onnx_ir.Value, info: onnx.ValueInfoProto) -> None:
        context = self._context
        if info.HasField("type"):
            type_, shape = read_type(context, info.type)
            if type_ is not None:
                value.type, value.shape = type_, shape
        if info.doc_string:
            value.doc_string = context.text(info.doc_string)
        if info.metadata_props:
            value.metadata_props.update(context.texts(info.metadata_props))

    def _annotate(self, proto: onnx.GraphProto, scope: Scope) -> dict[int, onnx.TensorAnnotation]:
        """Attach quantization annotations to their values; those left over name no value."""
        left = {}
        for index, annotation in enumerate(proto.quantization_annotation):
            value = scope.values.get(annotation.tensor_name)
            if value is None:
                left[index] = annotation
            else:
                value.meta[QUANTIZATION] = self._context.texts(annotation.quant_parameter_tensor_names)
        return left

    def _output(self, name: str, scope: Scope) -> onnx_ir.Value:
        value = scope.values.get(self._context.text(name))
        if value is not None:
            return value
        if any(name in outer.values for outer in self._scopes):
            hint = "give it a name of its own with an Identity node"
            raise self._context.error("a subgraph returns a value of an enclosing graph", value=name, hint=hint)
        raise self._context.error("graph output that nothing produces", value=name)

    def _nodes(
        self, protos: Iterable[onnx.NodeProto], scope: Scope, infos: dict[str, onnx.ValueInfoProto]
    ) -> list[onnx_ir.Node]:
        protos = list(protos)
        self._context.count_nodes(len(protos))
        self.nodes += len(protos)
        outputs = [self._declare(proto, scope, infos) for proto in protos]
        self._scopes.append(scope)
        nodes = []
        for proto, made in zip(protos, outputs, strict=True):
            self._context.node = proto
            nodes.append(self._node(proto, made))
            for value in made:
                scope.pending.discard(value.name or "")
        self._scopes.pop()
        self._context.node = None
        return nodes

    def _declare(
        self, proto: onnx.NodeProto, scope: Scope, infos: dict[str, onnx.ValueInfoProto]
    ) -> list[onnx_ir.Value]:
        """Make the outputs of a node before any node is read: files need not be in order."""
        self._context.node = proto
        outputs = []
        for name in proto.output:
            if not name:
                outputs.append(onnx_ir.Value(name=""))
                continue
            if name in scope.values or any(name in outer.values for outer in self._scopes):
                raise self._context.error("defined twice", value=name, hint="names are unique, outer graphs included")
            value = scope.values[self._context.text(name)] = onnx_ir.Value(name=name)
            info = infos.pop(name, None)
            if info is not None:
                self._describe(value, info)
            scope.pending.add(name)
            outputs.append(value)
        return outputs

    def _resolve(self, name: str) -> onnx_ir.Value | None:
        if not name:
            return None
        for scope in reversed(self._scopes):
            value = scope.values.get(name)
            if value is not None:
                if name in scope.pending:
                    scope.unsorted = True
                return value
        raise self._context.error("input that nothing produces", value=str(name))

    def _node(self, proto: onnx.NodeProto, outputs: list[onnx_ir.Value]) -> onnx_ir.Node:
        context = self._context
        domain, op_type, overload, name, doc_string = context.all_text(
            proto.domain, proto.op_type, proto.overload, proto.name, proto.doc_string
        )
        names = list(proto.input)
        seen = self._kinds.get(kind_of(proto)) if self._kinds else None
        if seen is not None:
            attributes: Mapping[str, onnx_ir.Attr] = seen.attributes.data
        else:
            attributes = self._read_attributes(proto)
            self._check((_domain(domain), op_type, overload), names, len(outputs), attributes)
        node = onnx_ir.Node(
            domain, op_type, [self._resolve(input_name) for input_name in names], tuple(attributes.values()),
            overload=overload, outputs=outputs, name=name, doc_string=doc_string or None,
            metadata_props=context.texts(proto.metadata_props) or None,
        )  # fmt: skip
        if proto.device_configurations:
            node.device_configurations = self._devices(proto)
        return node

    def _read_attributes(self, proto: onnx.NodeProto) -> dict[str, onnx_ir.Attr]:
        attributes: dict[str, onnx_ir.Attr] = {}
        for attribute_proto in proto.attribute:
            attribute = self._attributes.read(attribute_proto)
            if attribute.name in attributes:
                raise self._context.error(f"attribute '{attribute.name}' occurs twice")
            attributes[attribute.name] = attribute
        if proto.op_type == "Cast" and "to" in attributes:
            attributes["to"] = self._target(attributes["to"], _domain(proto.domain))
        return attributes

    def _target(self, to: onnx_ir.Attr, domain: str) -> onnx_ir.Attr:
        """What a Cast casts to: some early files name the type as version 1 did, although they say opset 6 or later."""
        if domain or to.is_ref() or to.type is not onnx_ir.AttributeType.STRING or self._opsets.get("", 0) < _NUMBERED:
            return to
        name = to.as_string().upper()
        return onnx_ir.AttrInt64("to", onnx_ir.DataType[name].value) if name in onnx_ir.DataType.__members__ else to

    def _devices(self, proto: onnx.NodeProto) -> tuple[Any, ...]:
        context = self._context
        values = {name: value for scope in self._scopes for name, value in scope.values.items()}
        for configuration in proto.device_configurations:
            context.check_texts(configuration)
            unknown = [spec.tensor_name for spec in configuration.sharding_spec if spec.tensor_name not in values]
            if unknown or not configuration.configuration_id:
                raise context.error(f"device configuration of unknown tensors {unknown} or without a name")
        read = onnx_ir.serde.deserialize_node_device_configuration
        return tuple(read(configuration, values=values) for configuration in proto.device_configurations)

    def _check(
        self, identifier: FunctionId, inputs: list[str], outputs: int, attributes: Mapping[str, onnx_ir.Attr]
    ) -> None:
        domain, op_type, _ = identifier
        if not op_type:
            raise self._context.error("node without an operator")
        if not self._in_function:
            for name, attribute in attributes.items():
                if attribute.is_ref():
                    raise self._context.error(f"attribute '{name}' refers to a function's attribute outside of any")
        if identifier in self._functions:
            self._check_call(identifier, len(inputs), outputs)
            return
        version = self._opsets.get(domain)
        if version is None:
            raise self._context.error(f"no opset import for domain '{domain or 'ai.onnx'}'")
        signature = self._signatures.find(domain, op_type, version)
        problem = signature.problem(inputs, outputs, attributes) if signature is not None else None
        if not problem and not domain and (attributes or op_type == "Constant"):
            problem = body_problem(op_type, version, len(inputs), outputs, attributes) or value_problem(
                op_type, outputs, attributes, self._context.limits.dims
            )
        if problem:
            raise self._context.error(f"{problem} (opset {version})")

    def _check_call(self, identifier: FunctionId, inputs: int, outputs: int) -> None:
        self.calls[identifier] = self.calls.get(identifier, 0) + 1
        most_inputs, most_outputs = self._functions[identifier]
        if inputs > most_inputs or outputs > most_outputs:
            raise self._context.error(
                f"{inputs} inputs and {outputs} outputs, but the function has {most_inputs} and {most_outputs}"
            )


def kind_of(proto: onnx.NodeProto) -> Kind:
    """Equal for nodes of the same operator with the same attributes, and with inputs and outputs in the same places."""
    return (
        proto.op_type, proto.domain, proto.overload, _present(proto.input), _present(proto.output),
        *[attribute.SerializeToString() for attribute in proto.attribute],
    )  # fmt: skip


def _present(names: Sequence[str]) -> int | tuple[bool, ...]:
    return tuple(map(bool, names)) if "" in names else len(names)


def _domain(domain: str) -> str:
    return "" if domain == "ai.onnx" else domain


def _copy(context: Context, message: Any) -> Any:
    context.check_texts(message)
    own = type(message)()
    own.CopyFrom(message)
    return own


def _repeated(names: Iterable[str]) -> str:
    seen: set[str] = set()
    return next((name for name in names if name in seen or seen.add(name)), "")  # type: ignore[func-returns-value]
