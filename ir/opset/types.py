"""One lazy type and shape query: what the file says, else what its producers imply; nothing is written to the model."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, TypeAlias

import onnx
import onnx_ir as ir

from entrepot.ir.opset.schemas import histories, schema, since
from entrepot.ir.opset.values import Known

_INFERENCE_GIVES_UP = (
    onnx.shape_inference.InferenceError,
    onnx.checker.ValidationError,
    KeyError,
    ValueError,
    RuntimeError,
)
"""What onnx's inference raises for nodes it cannot follow, types it does not know among them."""

_SHAPED_BY = {"Reshape": 1, "Expand": 1, "ConstantOfShape": 0}
"""Operators whose output has the shape that an input lists; onnx infers nothing where that is not constant."""

SMALL = 64
"""Elements of a known input that is shown to shape inference: shapes, axes, sizes."""


class Spec(NamedTuple):
    """Type and shape of a value as far as they are known."""

    type: ir.TypeProtocol | None
    shape: ir.Shape | None


UNKNOWN = Spec(None, None)

Functions: TypeAlias = Mapping[tuple[str, str, str], ir.Function]


class Types:
    """Element types and shapes of values, inferred per node and only where asked.

    Args:
        known: Answers whether a value is constant, since shapes may depend on it.
        opsets: The versions in force where a node does not carry its own.
        functions: The model-local functions that nodes may call.
    """

    def __init__(self, known: Known, opsets: Mapping[str, int], functions: Functions | None = None) -> None:
        self.opsets = opsets
        self._functions = functions or {}
        self.known = known
        self._memo: dict[ir.Value, Spec] = {}
        self._types: dict[ir.Value, ir.TypeProtocol] = {}
        self._carried: dict[ir.Value, ir.Value] = {}
        self._scanned: dict[ir.Value, int | None] = {}
        known.types = self

    def dtype(self, value: ir.Value | None) -> ir.DataType | None:
        """Element type of a tensor, sequence or optional, or ``None`` when unknown."""
        kind = self.type(value)
        return None if kind is None else kind.dtype

    def type(self, value: ir.Value | None) -> ir.TypeProtocol | None:
        """The whole type, or ``None`` when unknown.

        Most outputs have the type of an input, as the schema's type variables say: those are followed without
        inferring shapes, which is what keeps a long chain cheap.
        """
        trail: list[ir.Value] = []
        found: ir.TypeProtocol | None = None
        while value is not None:
            found = value.type or self._types.get(value)
            if found is not None:
                break
            trail.append(value)
            source = self._type_source(value)
            if not isinstance(source, ir.Value):
                found = source or self.spec(value, shape_needed=False).type
                break
            value = source
        if found is not None:
            self._types.update(dict.fromkeys(trail, found))
        return found

    def _type_source(self, value: ir.Value) -> ir.Value | ir.TypeProtocol | None:
        """The type of a value, or another value of the same type; ``None`` where it takes inference."""
        node = value.producer()
        if node is None:
            return None if value.const_value is None else ir.TensorType(value.const_value.dtype)
        if node.op_type == "Cast" and not node.domain:
            return _cast_target(node.attributes["to"])
        version = since(node.domain, node.op_type, node.version or self.opsets.get(node.domain, 0))
        source = _type_sources(node.domain, node.op_type, version).get(value.index() or 0) if version else None
        if isinstance(source, int):
            return node.inputs[source] if source < len(node.inputs) else None
        return source

    def shape(self, value: ir.Value | None) -> ir.Shape | None:
        """The shape, symbolic dims included, or ``None`` when not even the rank is known."""
        return self.spec(value).shape

    def remember(self, value: ir.Value, spec: Spec) -> None:
        """Take ``spec`` for a value that stands for one of which more is known."""
        if spec.type is not None and spec.shape is not None:
            self._memo[value] = spec
            self._types[value] = spec.type

    def proto(self, value: ir.Value | None) -> onnx.TypeProto:
        """Type and shape as onnx's own functions take them; empty when unknown."""
        return _proto(self.spec(value))

    def carry(self, node: ir.Node) -> None:
        """Note what the inputs of a Loop's, Scan's or SequenceMap's body are, from what the node is given.

        What a Loop carries keeps its element type; what a Scan carries keeps its shape too, and what it scans loses
        the axis it is scanned along. A SequenceMap hands on the members of its sequences.
        """
        given = node.inputs
        for body in bodies(node):
            if node.op_type == "Loop":
                self._assume(body.inputs[0], ir.DataType.INT64)
                self._assume(body.inputs[1], ir.DataType.BOOL)
                pairs = zip(body.inputs[2:], given[2:], strict=False)
            elif node.op_type == "Scan":
                pairs = zip(body.inputs, given[len(given) - len(body.inputs) :], strict=False)
                self._scanned.update(_scan_axes(node, body))
            elif node.op_type == "SequenceMap":
                for inner, outer in zip(body.inputs, given, strict=False):
                    self._memo.setdefault(inner, _member(inner, self.type(outer)))
                return
            else:
                return
            self._carried.update({inner: outer for inner, outer in pairs if inner.type is None and outer is not None})

    def assume_call(self, function: ir.Function, calls: Sequence[Sequence[Spec]]) -> None:
        """Take for a function's inputs what all its calls agree on."""
        for index, formal in enumerate(function.inputs):
            given = [call[index] if index < len(call) else UNKNOWN for call in calls]
            if given and formal.type is None and all(spec.type == given[0].type for spec in given):
                shape = given[0].shape if all(spec.shape == given[0].shape for spec in given) else None
                self._memo[formal] = Spec(given[0].type, shape)
                if given[0].type is not None:
                    self._types[formal] = given[0].type

    def _called(self, node: ir.Node, function: ir.Function) -> dict[str, Spec]:
        inner = Types(Known(self.known.ir_version), function.opset_imports, self._functions)
        inner.assume_call(function, [[self.spec(value) for value in node.inputs]])
        pairs = zip(node.outputs, function.outputs, strict=False)
        return {output.name or "": inner.spec(result) for output, result in pairs}

    def _assume(self, value: ir.Value, dtype: ir.DataType) -> None:
        if value.type is None:
            self._memo[value] = Spec(ir.TensorType(dtype), value.shape)

    def spec(self, value: ir.Value | None, *, shape_needed: bool = True) -> Spec:
        """Type and shape together."""
        if value is None:
            return UNKNOWN
        found = self._memo.get(value) or _written(value)
        if found.type is not None and (found.shape is not None or not shape_needed):
            return found
        self._infer(value)
        return self._memo.get(value, UNKNOWN)

    def _infer(self, value: ir.Value) -> None:
        """Walk the producers without recursion: a chain may be 40,000 nodes long."""
        stack = [value]
        while stack:
            top = stack[-1]
            missing = [item for item in self._sources(top) if item not in self._memo]
            if top in self._memo or not missing:
                stack.pop()
                if top not in self._memo:
                    self._settle(top)
            else:
                stack.extend(missing)

    def _sources(self, value: ir.Value) -> list[ir.Value]:
        """What the type of ``value`` follows from."""
        written = _written(value)
        node = value.producer()
        if written.type is not None and written.shape is not None:
            return []
        if node is None:
            return [self._carried[value]] if value in self._carried else []
        inner = [output for body in bodies(node) for output in body.outputs]
        return [item for item in (*node.inputs, *inner) if item is not None]

    def _settle(self, value: ir.Value) -> None:
        node = value.producer()
        if node is None:
            outer = self._memo.get(self._carried.get(value, value), UNKNOWN)
            shape = value.shape
            if shape is None:
                shape = _without_axis(outer.shape, self._scanned.get(value, _LOST))
            self._memo[value] = Spec(value.type or outer.type, shape) if outer.type else _written(value)
            return
        inferred = self._outputs(node)
        for output in node.outputs:
            written = self._memo.get(output) or _written(output)  # what was remembered stays
            derived = inferred.get(output.name or "", UNKNOWN)
            shape = derived.shape if written.shape is None else written.shape
            self._memo[output] = Spec(written.type or derived.type, shape)

    def _outputs(self, node: ir.Node) -> dict[str, Spec]:
        if node.op_type == "Constant" and "value" in node.attributes and not node.attributes["value"].is_ref():
            tensor = node.attributes["value"].as_tensor()
            return {node.outputs[0].name or "": Spec(ir.TensorType(tensor.dtype), ir.Shape(tensor.shape.numpy()))}
        if node.op_type == "If" and not node.domain:
            return self._branches(node)
        if any(True for _ in bodies(node)):
            return self._loop(node)
        function = self._functions.get((node.domain, node.op_type, node.overload))
        if function is not None:
            return self._called(node, function)
        return self._by_schema(node)

    def _branches(self, node: ir.Node) -> dict[str, Spec]:
        outputs: dict[str, Spec] = {}
        graphs = list(bodies(node))
        condition = self.known.array(node.inputs[0])
        if condition is not None:
            graphs = [node.attributes["then_branch" if condition.item() else "else_branch"].as_graph()] * 2
        for index, output in enumerate(node.outputs):
            a, b = (self.spec(body.outputs[index]) for body in graphs)
            outputs[output.name or ""] = Spec(a.type or b.type, a.shape if a.shape == b.shape else None)
        return outputs

    def _loop(self, node: ir.Node) -> dict[str, Spec]:
        if node.domain or node.op_type not in ("Loop", "Scan", "SequenceMap"):
            return {}
        body = next(bodies(node))
        if node.op_type == "SequenceMap":
            members = [self.spec(result).type for result in body.outputs]
            types = [None if member is None else ir.SequenceType(member) for member in members]
            return {output.name or "": Spec(kind, None) for output, kind in zip(node.outputs, types, strict=False)}
        results = body.outputs[1:] if node.op_type == "Loop" else body.outputs
        collected = [_collected(node, index, self.spec(result).shape) for index, result in enumerate(results)]
        return {
            output.name or "": Spec(self.spec(result).type, shape)
            for output, result, shape in zip(node.outputs, results, collected, strict=False)
        }

    def _by_schema(self, node: ir.Node) -> dict[str, Spec]:
        version = since(node.domain, node.op_type, node.version or self.opsets.get(node.domain, 0))
        if not version:
            return {}
        types: dict[str, onnx.TypeProto] = {}
        data: dict[str, onnx.TensorProto] = {}
        for index, value in enumerate(node.inputs):
            if value is None:
                continue
            types[value.name or ""] = _proto(self._memo.get(value, UNKNOWN))
            if index:
                array = self.known.array(value)
                if array is not None and array.size <= SMALL and array.dtype.kind in "iufb":
                    data[value.name or ""] = onnx.numpy_helper.from_array(array)
        proto = ir.serde.serialize_node(node)
        # a node on its way down may hold element types that only newer versions list
        for candidate in (version, histories()[node.domain, node.op_type][-1]):
            try:
                inferred = onnx.shape_inference.infer_node_outputs(
                    schema(node.domain, node.op_type, candidate), proto, types, data
                )
            except _INFERENCE_GIVES_UP:
                continue
            return {name: self._with_rank(node, _spec(item)) for name, item in inferred.items()}
        return {}

    def _with_rank(self, node: ir.Node, found: Spec) -> Spec:
        """What was inferred, with at least the rank where the node makes a shape out of a vector of known length."""
        if found.shape is not None and node.op_type == "DFT" and _is_half_spectrum(node):
            return Spec(found.type, ir.Shape([None] * len(found.shape)))
        perm = node.attributes.get("perm")
        if found.shape is None and node.op_type == "Transpose" and perm is not None and not perm.is_ref():
            return Spec(found.type, ir.Shape([None] * len(perm.as_ints())))
        if found.shape is not None or node.op_type not in _SHAPED_BY:
            return found
        shapes = [self._memo.get(value, UNKNOWN).shape for value in node.inputs if value is not None]
        index = _SHAPED_BY[node.op_type]  # Reshape 1 has an attribute there
        wanted = shapes[index] if index < len(shapes) == len(node.inputs) else None
        if wanted is None or len(wanted) != 1 or not isinstance(wanted[0], int):
            return found
        least = shapes[0] if node.op_type == "Expand" else ()
        return found if least is None else Spec(found.type, ir.Shape([None] * max(wanted[0], len(least))))


@functools.cache
def _type_sources(domain: str, op_type: str, version: int) -> dict[int, int | ir.TypeProtocol]:
    """Output index to the index of an input of the same type, or to its only type."""
    known = schema(domain, op_type, version)
    inputs = {parameter.type_str: index for index, parameter in reversed(list(enumerate(known.inputs)))}
    single = {
        item.type_param_str: item.allowed_type_strs[0]
        for item in known.type_constraints
        if len(item.allowed_type_strs) == 1
    }
    sources: dict[int, int | ir.TypeProtocol] = {}
    for index, output in enumerate(known.outputs):
        if output.option == _Option.Variadic and not output.is_homogeneous:
            continue
        if output.type_str in inputs and known.inputs[inputs[output.type_str]].is_homogeneous:
            sources[index] = inputs[output.type_str]
        elif (only := single.get(output.type_str, output.type_str)) in _ONLY_TYPES:
            sources[index] = ir.TensorType(_ONLY_TYPES[only])
    return sources


def _cast_target(to: ir.Attr) -> ir.TypeProtocol | None:
    """What a Cast makes; before version 6 the type was named."""
    if isinstance(to.value, int):
        return ir.TensorType(ir.DataType(to.value))
    name = str(to.value).upper()
    return ir.TensorType(ir.DataType[name]) if name in ir.DataType.__members__ else None


_Option = onnx.defs.OpSchema.FormalParameterOption
_ONLY_TYPES = {"tensor(bool)": ir.DataType.BOOL, "tensor(int64)": ir.DataType.INT64}


def bodies(node: ir.Node) -> Iterator[ir.Graph]:
    """The graphs a node carries in its attributes."""
    for attr in node.attributes.values():
        if attr.is_ref():
            continue
        if attr.type == ir.AttributeType.GRAPH:
            yield attr.as_graph()
        elif attr.type == ir.AttributeType.GRAPHS:
            yield from attr.as_graphs()


_LOST = -1 << 31
"""Stands for "the shape may change" where an axis is asked for."""


def _scan_axes(node: ir.Node, body: ir.Graph) -> dict[ir.Value, int | None]:
    """Input of a Scan's body to the axis it was scanned along; ``None`` for what is carried. Scan 8 is left out."""
    if "num_scan_inputs" not in node.attributes or len(node.inputs) != len(body.inputs):
        return {}
    count = node.attributes["num_scan_inputs"].as_int()
    axes = node.attributes["scan_input_axes"].as_ints() if "scan_input_axes" in node.attributes else [0] * count
    split = len(body.inputs) - count
    return {**dict.fromkeys(body.inputs[:split]), **dict(zip(body.inputs[split:], axes, strict=False))}


def _is_half_spectrum(node: ir.Node) -> bool:
    """Whether a DFT goes back from half a spectrum: onnx 1.23 takes the result to be no longer than the half."""
    return all(node.attributes.get_int(name, 0) for name in ("inverse", "onesided"))


def _collected(node: ir.Node, index: int, shape: ir.Shape | None) -> ir.Shape | None:
    """The shape of a Loop's or Scan's output that collects results of this shape; what is carried may change its."""
    apart = node.attributes["num_scan_inputs"].as_int() if node.op_type == "Scan" else 2
    place = index - (len(node.inputs) - apart)
    if place < 0 or shape is None:
        return None
    axes = node.attributes["scan_output_axes"].as_ints() if "scan_output_axes" in node.attributes else ()
    axis = axes[place] if place < len(axes) else 0
    dims: list[int | ir.SymbolicDim | None] = list(shape)
    dims.insert(axis if axis >= 0 else axis + len(dims) + 1, None)
    return ir.Shape(dims)


def _without_axis(shape: ir.Shape | None, axis: int | None) -> ir.Shape | None:
    if shape is None or axis is None or axis == _LOST or not len(shape):
        return shape if axis is None else None
    dims = list(shape)
    del dims[axis]
    return ir.Shape(dims)


def _member(formal: ir.Value, given: ir.TypeProtocol | None) -> Spec:
    """What a SequenceMap's body is given: a member of a sequence, or a tensor as it is."""
    kind = given.elem_type if isinstance(given, ir.SequenceType) else given
    return Spec(formal.type or kind, formal.shape)


def _written(value: ir.Value) -> Spec:
    if value.const_value is not None and value.is_initializer():
        return Spec(ir.TensorType(value.const_value.dtype), ir.Shape(value.const_value.shape.numpy()))
    return Spec(value.type, value.shape)


def _proto(spec: Spec) -> onnx.TypeProto:
    proto = onnx.TypeProto()
    if spec.type is not None:
        ir.serde.serialize_type_into(proto, spec.type)
        if spec.shape is not None:
            ir.serde.serialize_shape_into(proto, spec.shape)
    return proto


def _spec(proto: onnx.TypeProto) -> Spec:
    if proto.WhichOneof("value") is None:
        return UNKNOWN
    kind = ir.serde.deserialize_type_proto_for_type(proto)
    return Spec(kind, ir.serde.deserialize_type_proto_for_shape(proto))


def _fixed(tensor: ir.TensorProtocol) -> ir.Shape:
    return ir.Shape([dim for dim in tensor.shape if isinstance(dim, int)])
