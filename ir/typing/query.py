"""One lazy query for types and shapes: what the file says, else what producers imply; the model is not changed."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import TypeAlias

import onnx
import onnx_ir as ir

from entrepot.ir.operators import in_force
from entrepot.ir.opset.schemas import since
from entrepot.ir.opset.values import Known
from entrepot.ir.subgraphs import subgraphs
from entrepot.ir.typing.bodies import LOST, lost_axes
from entrepot.ir.typing.control_flow import member, outputs_of, scanned, shape_without
from entrepot.ir.typing.schema import cast_target, inferred, type_sources
from entrepot.ir.typing.shown import likeness, show
from entrepot.ir.typing.spec import UNKNOWN, Spec, is_possible, possible, to_proto, written

Functions: TypeAlias = Mapping[tuple[str, str, str], ir.Function]


class Types:
    """Element types and shapes of values, inferred per node and only where asked.

    Args:
        known: Tells whether a value is constant, since shapes may depend on it.
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
        self._calls: dict[tuple[object, ...], list[Spec]] = {}
        self._inferences: dict[Hashable, list[Spec]] = {}
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
            return cast_target(node.attributes["to"])
        version = self._version(node)
        source = type_sources(node.domain, node.op_type, version).get(value.index() or 0) if version else None
        if isinstance(source, int):
            return node.inputs[source] if source < len(node.inputs) else None
        return source

    def shape(self, value: ir.Value | None) -> ir.Shape | None:
        """The shape, symbolic dims included, or ``None`` when not even the rank is known."""
        return self.spec(value).shape

    def remember(self, value: ir.Value, spec: Spec) -> None:
        """Use ``spec`` for a value that stands for one about which more is known."""
        if spec.type is not None and spec.shape is not None:
            self._memo[value] = spec
            self._types[value] = spec.type

    def proto(self, value: ir.Value | None) -> onnx.TypeProto:
        """Type and shape as onnx's own functions take them; empty when unknown."""
        return to_proto(self.spec(value))

    def carry(self, node: ir.Node) -> None:
        """Note what the inputs of a Loop's, Scan's or SequenceMap's body are, from the inputs of the node.

        What a Loop carries keeps its element type; what a Scan carries keeps its shape too, and what it scans loses
        the axis it is scanned along. A SequenceMap passes on the members of its sequences.
        """
        given = node.inputs
        for body in subgraphs(node):
            if node.op_type == "Loop":
                self._assume(body.inputs[0], ir.DataType.INT64)
                self._assume(body.inputs[1], ir.DataType.BOOL)
                pairs = zip(body.inputs[2:], given[2:], strict=False)
            elif node.op_type == "Scan":
                pairs = zip(body.inputs, given[len(given) - len(body.inputs) :], strict=False)
                axes = lost_axes("Scan", len(given), len(body.inputs), scanned(node))
                self._scanned.update(zip(body.inputs, axes, strict=False))
            elif node.op_type == "SequenceMap":
                for inner, outer in zip(body.inputs, given, strict=False):
                    self._memo.setdefault(inner, Spec(inner.type or member(self.type(outer)), inner.shape))
                return
            else:
                return
            self._carried.update({inner: outer for inner, outer in pairs if inner.type is None and outer is not None})

    def assume_call(self, function: ir.Function, calls: Sequence[Sequence[Spec]]) -> None:
        """Use for a function's inputs what all its calls agree on."""
        for index, formal in enumerate(function.inputs):
            given = [call[index] if index < len(call) else UNKNOWN for call in calls]
            if given and formal.type is None and all(spec.type == given[0].type for spec in given):
                shape = given[0].shape if all(spec.shape == given[0].shape for spec in given) else None
                self._memo[formal] = Spec(given[0].type, shape)
                if given[0].type is not None:
                    self._types[formal] = given[0].type

    def _called(self, node: ir.Node, function: ir.Function) -> dict[str, Spec]:
        given = [self.spec(value) for value in node.inputs]
        key = (function.identifier(), *(to_proto(spec).SerializeToString() for spec in given))
        if key not in self._calls:  # functions that call others twice each would take exponential time
            inner = Types(Known(self.known.ir_version), function.opset_imports, self._functions)
            inner._calls = self._calls
            inner.assume_call(function, [given])
            self._calls[key] = [inner.spec(result) for result in function.outputs]
        return {output.name or "": spec for output, spec in zip(node.outputs, self._calls[key], strict=False)}

    def _assume(self, value: ir.Value, dtype: ir.DataType) -> None:
        if value.type is None:
            self._memo[value] = Spec(ir.TensorType(dtype), value.shape)

    def spec(self, value: ir.Value | None, *, shape_needed: bool = True) -> Spec:
        """Type and shape together."""
        if value is None:
            return UNKNOWN
        found = self._memo.get(value) or written(value)
        if found.type is not None and (found.shape is not None or not shape_needed):
            return found
        self._infer(value)
        return self._settled(value)

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
        stated = written(value)
        node = value.producer()
        if stated.type is not None and stated.shape is not None:
            return []
        if node is None:
            return [self._carried[value]] if value in self._carried else []
        inner = [output for body in subgraphs(node) for output in body.outputs]
        return [item for item in (*node.inputs, *inner) if item is not None]

    def _settle(self, value: ir.Value) -> None:
        node = value.producer()
        if node is None:
            outer = self._memo.get(self._carried.get(value, value), UNKNOWN)
            shape = value.shape
            if shape is None:
                shape = shape_without(outer.shape, self._scanned.get(value, LOST))
            self._memo[value] = Spec(value.type or outer.type, shape) if outer.type else written(value)
            return
        outputs = self._outputs(node)
        for output in node.outputs:
            stated = self._memo.get(output) or written(output)  # what is remembered already stays
            derived = outputs.get(output.name or "", UNKNOWN)
            shape = derived.shape if stated.shape is None else stated.shape
            self._memo[output] = Spec(stated.type or derived.type, shape)

    def _outputs(self, node: ir.Node) -> dict[str, Spec]:
        stored = node.attributes.get("value") if node.op_type == "Constant" and not node.domain else None
        if stored is not None and stored.type == ir.AttributeType.TENSOR and not stored.is_ref():
            tensor = stored.value  # as_tensor() asks whether it fits a protocol, which is slow
            return {node.outputs[0].name or "": Spec(ir.TensorType(tensor.dtype), ir.Shape(tensor.shape.numpy()))}
        if any(True for _ in subgraphs(node)):
            condition = self.known.array(node.inputs[0]) if node.op_type == "If" else None
            made = outputs_of(node, None if condition is None else bool(condition.item()), self.spec)
            return {output.name or "": spec for output, spec in zip(node.outputs, made, strict=False)}
        function = self._functions.get((node.domain, node.op_type, node.overload))
        if function is not None:
            return self._called(node, function)
        version = self._version(node)
        return self._inferred(node, version) if version else self._spelled_out(node)

    def _spelled_out(self, node: ir.Node) -> dict[str, Spec]:
        """What an operator of another runtime implies, by how it is spelled out; nothing where it cannot be."""
        from entrepot.ir.contributed.spell import result_specs  # spells with the help of this room

        made = result_specs(node, self.known.array, self._settled)
        return {output.name or "": spec for output, spec in zip(node.outputs, made, strict=False)}

    def _inferred(self, node: ir.Node, version: int) -> dict[str, Spec]:
        shown = show(node, version, self.known, self._settled)
        like = likeness(node, version, shown)
        if like is None or like not in self._inferences:
            found = {name: possible(spec) for name, spec in inferred(node, version, shown).items()}
            if like is not None:
                self._inferences[like] = [found.get(output.name or "", UNKNOWN) for output in node.outputs]
            return found
        return {output.name or "": spec for output, spec in zip(node.outputs, self._inferences[like], strict=True)}

    def impossible(self, node: ir.Node) -> dict[str, Spec]:
        """Outputs of a node that would have a size below 0, whatever the file states of them."""
        version = self._version(node)
        shown = show(node, version, self.known, self.spec)
        found = inferred(node, version, shown) if version and not any(subgraphs(node)) else {}
        ordered = [(value.name or "", found.get(value.name or "", UNKNOWN)) for value in node.outputs]
        return {name: spec for name, spec in ordered if not is_possible(spec)}

    def _settled(self, value: ir.Value) -> Spec:
        """What is known of a value without another inference."""
        return self._memo.get(value, UNKNOWN)

    def _version(self, node: ir.Node) -> int:
        """The since-version that gives a node its meaning; 0 where no schema does."""
        opset = node.version or self.opsets.get(node.domain, 0)
        theirs = in_force(node.domain, node.op_type, opset or 1) if node.domain else None
        return since(node.domain, node.op_type, opset) if theirs is None else theirs.key.since
