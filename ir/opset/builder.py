"""``op``: how an adapter writes nodes, on top of all it may ask about the one under conversion."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import onnx
import onnx_ir as ir

from entrepot.ir.opset import DEFAULT
from entrepot.ir.opset.place import Place
from entrepot.ir.opset.rules import Replacement
from entrepot.ir.opset.schemas import schema, since

Array: TypeAlias = np.ndarray[Any, Any]

EXACTLY_WIDER = {
    "BOOL": ("INT32", "INT64", "FLOAT"),
    "INT8": ("INT32", "INT64", "FLOAT"),
    "INT16": ("INT32", "INT64", "FLOAT"),
    "UINT8": ("INT32", "INT64", "FLOAT"),
    "UINT16": ("INT32", "INT64", "FLOAT"),
    "INT32": ("INT64", "DOUBLE"),
    "UINT32": ("INT64", "DOUBLE"),
    "FLOAT16": ("FLOAT", "DOUBLE"),
    "BFLOAT16": ("FLOAT", "DOUBLE"),
    "FLOAT": ("DOUBLE",),
}
"""Element types that hold every value of another, nearest first."""

EXACT_IN_DOUBLE = 2**53
"""The largest integer up to which a double holds them all."""

MOST_NODES = 1 << 14
"""Written in the place of one node."""

SHARED = 256
"""Bytes of a constant up to which nodes share it: many write the same axes and bounds."""

_ARRAYS = (np.ndarray, np.generic)

LARGEST_CONSTANT = 1 << 22
"""Elements of a constant that an adapter may compute and write."""


@dataclass
class OpBuilder(Place):
    """``op.Softmax(x, axis=-1)`` writes a node beside the one being replaced, at the version the adapter speaks.

    Attributes:
        emitted: Nodes written so far, in order.
    """

    emitted: list[ir.Node] = field(default_factory=list)

    def __getattr__(self, op_type: str) -> Callable[..., Any]:
        if not op_type[:1].isupper():
            raise AttributeError(op_type)

        def emit(*inputs: ir.Value | Array | None, n_outputs: int = 1, **attributes: Any) -> Any:
            return self.emit(op_type, inputs, attributes, n_outputs)

        return emit

    @property
    def standard(self) -> OpBuilder:
        """The same place, writing ai.onnx operators; for a node of another domain, at the target version."""
        if not self.domain:
            return self
        version = self.around.targets.setdefault("", DEFAULT)
        other = OpBuilder(self.node, version, self.around, since=self.since)
        other.emitted = self.emitted
        return other

    # writing

    def emit(
        self, op_type: str, inputs: Sequence[ir.Value | Array | None], attributes: dict[str, Any], n_outputs: int = 1
    ) -> Any:
        """Write a node; arrays among the inputs become constants and ``None`` attributes are left out."""
        if len(self.emitted) > MOST_NODES:
            self.refuse(f"it would take more than {MOST_NODES} nodes", hint="a newer opset has it in one node")
        values = [self.const(item) if isinstance(item, _ARRAYS) else item for item in inputs]
        while values and values[-1] is None:
            values.pop()
        node = ir.Node(
            self.domain,
            op_type,
            values,
            [self._attribute(op_type, name, value) for name, value in attributes.items() if value is not None],
            num_outputs=n_outputs,
            version=self.version,
            metadata_props=dict(self.node.metadata_props),
        )
        node.name = self.fresh_name(op_type)
        for output in node.outputs:
            output.name = self.around.names.fresh(f"{node.name}_{output.index()}")
        if op_type == "Cast" and self.version < 6:  # onnx infers nothing from a named type
            node.outputs[0].type = ir.TensorType(ir.DataType(attributes["to"]))
        self.emitted.append(node)
        self.around.touched.append(node)
        return node.outputs[0] if n_outputs == 1 else tuple(node.outputs)

    def fresh_name(self, what: str) -> str:
        """A name that is new to the model and shows which node it comes from."""
        stem = self.node.name or next((output.name for output in self.node.outputs if output.name), "node")
        return self.around.names.fresh(f"{stem}/{what}")

    def again(self, *inputs: ir.Value | Array | None, drop: Sequence[str] = (), **changes: Any) -> Any:
        """The node under conversion once more, on other inputs and with changed attributes."""
        kept = {name: attr for name, attr in self.node.attributes.items() if name not in drop}
        return self.emit(self.node.op_type, inputs, {**kept, **changes}, len(self.node.outputs))

    def const(self, value: Any, *, like: ir.Value | None = None, dtype: ir.DataType | None = None) -> ir.Value:
        """A Constant node; ``like`` or ``dtype`` gives the element type, else the array's own."""
        kind = self.need_dtype(like) if like is not None else dtype
        if kind == ir.DataType.STRING:
            tensor: ir.TensorProtocol = _words(np.asarray(value))
        else:
            array = np.asarray(value) if kind is None else np.asarray(value).astype(kind.numpy())
            if array.nbytes <= SHARED and self.version >= 9 and not array.dtype.hasobject:
                return self._shared_const(array, kind)
            tensor = ir.Tensor(array, dtype=kind)
        if self.version < 9 and not tensor.dtype.is_floating_point():  # Constant held floats only
            return self.initializer(tensor)
        constant: ir.Value = self.standard.emit("Constant", (), {"value": ir.AttrTensor("value", tensor)})
        return constant

    def _shared_const(self, array: Array, kind: ir.DataType | None) -> ir.Value:
        key = (kind, array.dtype, array.shape, array.tobytes())
        value = self.around.constants.get(key)
        if value is None:
            value = self.around.constants[key] = ir.AttrTensor("value", ir.Tensor(array, dtype=kind))
        constant: ir.Value = self.standard.emit("Constant", (), {"value": value})
        return constant

    def initializer(self, tensor: ir.TensorProtocol) -> ir.Value:
        """A weight of the main graph; inside a function, which cannot hold one, numbers cast from a double."""
        graph = self.around.main
        if graph is not None:
            return add_initializer(graph, self.fresh_name("value"), tensor)
        numbers = None if tensor.dtype == ir.DataType.STRING else tensor.numpy().astype(np.float64)
        if numbers is None or (abs(numbers) > EXACT_IN_DOUBLE).any():
            self.refuse("a function cannot hold a constant of this type at this opset")
        double = self.standard.emit("Constant", (), {"value": ir.tensor(numbers)})
        cast: ir.Value = self.standard.emit("Cast", (double,), {"to": int(tensor.dtype)})
        return cast

    def need_small(self, elements: int) -> None:
        """Refuse to write a constant that would dwarf the model it goes into."""
        if elements > LARGEST_CONSTANT:
            self.refuse(f"it would take a constant of {elements} elements", hint="a newer opset has it in one node")

    def ints(self, *values: int) -> ir.Value:
        """A 1-D int64 constant."""
        return self.const(np.array(values, np.int64))

    def attribute_as_input(self, name: str) -> ir.Value | None:
        """An integer-list attribute as a 1-D constant, even when it refers to the enclosing function's attribute."""
        attr = self.node.attributes.get(name)
        if attr is None:
            return None
        if not attr.is_ref():
            return self.ints(*attr.as_ints())
        value: ir.Value = self.emit(
            "Constant", (), {"value_ints": ir.RefAttr("value_ints", attr.ref_attr_name or "", attr.type)}
        )
        return value

    def input_as_attribute(self, index: int, name: str) -> ir.Attr:
        """A known input as an integer-list attribute, even where it came from the enclosing function's attribute."""
        value = self.x(index)
        array = self.known(value)
        if array is not None:
            return ir.AttrInt64s(name, array.ravel().tolist())
        producer = value.producer()
        source = None if producer is None else producer.attributes.get("value_ints")
        if source is None or not source.is_ref():
            self.refuse(f"{name} is computed at run time", hint=f"possible if {name} is a constant")
        return ir.RefAttr(name, source.ref_attr_name or "", source.type)

    def _attribute(self, op_type: str, name: str, value: Any) -> ir.Attr:
        if isinstance(value, ir.Attr):
            return value
        if op_type == "Cast" and self.version < 6:  # the type was named, not numbered
            value = ir.DataType(value).name
        if isinstance(value, ir.Graph):
            return ir.AttrGraph(name, value)
        return _typed(name, value, self._schema(op_type).attributes[name].type)

    def _schema(self, op_type: str) -> onnx.defs.OpSchema:
        return schema(self.domain, op_type, since(self.domain, op_type, self.version))

    # editing in place

    def drop(self, *names: str) -> Replacement:
        """Take attributes off the node, which stays."""
        for name in names:
            self.node.attributes.pop(name, None)
        return None

    def set(self, **attributes: Any) -> Replacement:
        """Put attributes on the node, which stays."""
        for name, value in attributes.items():
            self.node.attributes[name] = self._attribute(self.node.op_type, name, value)
        return None

    def inputs(self, *values: ir.Value | None) -> Replacement:
        """Give the node, which stays, other inputs."""
        trimmed = list(values)
        while trimmed and trimmed[-1] is None:
            trimmed.pop()
        self.node.resize_inputs(len(trimmed))
        for index, value in enumerate(trimmed):
            if self.node.inputs[index] is not value:
                self.node.replace_input_with(index, value)
        return None


def add_initializer(graph: ir.Graph, name: str, tensor: ir.TensorProtocol) -> ir.Value:
    """A new weight; naming it does not rename the tensor, which other models may share."""
    shape = ir.Shape(tensor.shape.numpy())
    own = ir.LazyTensor(lambda: tensor, tensor.dtype, shape, name=name)
    value = ir.Value(name=name, const_value=own, type=ir.TensorType(tensor.dtype), shape=shape)
    graph.initializers.add(value)
    return value


def _words(array: Array) -> ir.StringTensor:
    """Strings; the empty one counts as zero, as everywhere in onnx."""
    words = [
        item.encode() if isinstance(item, str) else item if isinstance(item, bytes) else b"" for item in array.flat
    ]
    return ir.StringTensor(words, shape=ir.Shape(array.shape))


def _typed(name: str, value: Any, kind: onnx.defs.OpSchema.AttrType) -> ir.Attr:
    number: Any = kind.value  # type: ignore[attr-defined]  # the stub lacks what pybind's enumerations have
    return ir.convenience.convert_attribute(name, value, ir.AttributeType(int(number)))
