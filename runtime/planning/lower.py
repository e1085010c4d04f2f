"""A graph at the hub's opset becomes a block of steps: functions inlined, constants known."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir

from entrepot.ir.contributed.table import find
from entrepot.ir.errors import ConversionError, EntrepotError, ResourceLimitError, UnsupportedOpError, describe_node
from entrepot.ir.limits import Limits
from entrepot.ir.operators import missing
from entrepot.ir.opset.values import constant_array
from entrepot.ir.table import OpKey
from entrepot.ir.typing import plain
from entrepot.ir.typing.plain import Type
from entrepot.runtime.arrays import array_of_tensor
from entrepot.runtime.planning.attribute_values import check_attributes
from entrepot.runtime.planning.bodies import body_of
from entrepot.runtime.planning.contributed import spelled_out
from entrepot.runtime.planning.fold import Growth, fold
from entrepot.runtime.planning.order import in_order
from entrepot.runtime.planning.plan import Block, Step, Value
from entrepot.runtime.planning.size_flow import SizeFlow
from entrepot.runtime.planning.type_flow import set_sizes, set_types, subgraph_input_types
from entrepot.runtime.planning.well_typed import check_types

MAX_CALLS = 100
"""Functions calling functions, this deep; a function may not call itself."""


@dataclass(frozen=True)
class Frame:
    """One graph or one call of a function being lowered.

    Attributes:
        opsets: Versions of the domains in force here.
        scope: What each value of the graph (and the graphs around it) became.
        attributes: What a reference to an attribute of the calling node stands for.
        prefix: Put before names of values, to tell those of an inlined function apart.
        calls: Functions being inlined around this place.
        within: The name of the node that this is the body of: its steps are where that node is, and not deeper.
        origin: The node of the main graph that this is a part of, described; empty in the main graph itself.
        node: That node; ``None`` in the main graph itself.
    """

    opsets: Mapping[str, int]
    scope: dict[ir.Value, Value | None] = field(default_factory=dict)
    attributes: Mapping[str, Any] = field(default_factory=dict)
    prefix: str = ""
    calls: tuple[str, ...] = ()
    within: str = ""
    origin: str = ""
    node: ir.Node | None = None

    def named(self, node: ir.Node) -> str:
        """What the step of a node is called."""
        name = node.name or ""
        return f"{self.within}.{name.replace('/', '.')}" if self.within else self.prefix + name


class Lowering:
    """Lowers the graphs of one model.

    Args:
        functions: The model-local functions.
        known: Whether a kernel runs an operator; what it declines is replaced by its schema's body.
        evaluate: Runs one step on constants, to fold it; ``None`` folds nothing and keeps every node.
        limits: Bounds on inlining.

    Attributes:
        settled: Nodes of the main graph, or parts of them, that became no step, with what became of them.
    """

    def __init__(
        self,
        functions: Mapping[ir.OperatorIdentifier, ir.Function],
        known: Callable[[OpKey], bool],
        *,
        evaluate: Callable[[Step], Any] | None = None,
        limits: Limits | None = None,
    ) -> None:
        self._functions = functions
        self._known = known
        self._evaluate = evaluate
        self._growth = Growth()
        self._limits = limits or Limits()
        self._unsupported: dict[str, EntrepotError] = {}
        self._count = 0
        self._sizes = SizeFlow()
        self.settled: dict[ir.Node, str] = {}

    def lower(
        self, graph: ir.Graph | ir.GraphView, opsets: Mapping[str, int], given: Sequence[Type | None] = ()
    ) -> Block:
        """The main graph as a block.

        Args:
            graph: The graph, or a part of it.
            opsets: The versions in force.
            given: What is known of its inputs where the file does not say.

        Raises:
            UnsupportedOpError: Nodes have no kernel and no function body; all of them are named.
            ResourceLimitError: Functions expand to more nodes than ``limits`` allows.
        """
        block = self._graph(graph, Frame(opsets), given)
        if self._unsupported:
            raise UnsupportedOpError(
                "no kernel and no function body for:\n  - " + "\n  - ".join(map(str, self._unsupported.values())),
                hint="run these parts with another provider, such as providers=['onnxruntime', 'cpu']",
            )
        return block

    def _graph(self, graph: ir.Graph | ir.GraphView, frame: Frame, given: Sequence[Type | None] = ()) -> Block:
        block = Block([], [], [], graph.name or "")
        for index, value in enumerate(graph.inputs):
            fallback = given[index] if index < len(given) else None
            entry = Value(frame.prefix + (value.name or ""), plain.of_value(value) or fallback)
            frame.scope[value] = entry
            block.inputs.append(entry)
        self._initializers(graph, frame)
        for node in in_order(graph):
            self._node(node, frame, block)
        block.outputs = [self._use(value, frame) for value in graph.outputs]
        return block

    def _initializers(self, graph: ir.Graph | ir.GraphView, frame: Frame) -> None:
        for name, value in graph.initializers.items():
            array = None if value.const_value is None else array_of_tensor(value.const_value)
            frame.scope[value] = constant(frame.prefix + name, array)

    def _use(self, value: ir.Value, frame: Frame) -> Value | None:
        if value not in frame.scope:
            raise UnsupportedOpError(f"value '{value.name}' is read but never produced", value=value.name)
        return frame.scope[value]

    def _node(self, node: ir.Node, frame: Frame, block: Block) -> None:
        self._count += 1
        if self._count > self._limits.expanded_nodes:
            raise ResourceLimitError(
                f"the model expands to more than {self._limits.expanded_nodes} nodes",
                hint="raise Limits(expanded_nodes=...) if you trust the file",
            )
        function = self._functions.get(node.op_identifier())
        if function is not None:
            self._call(node, function, frame, block)
        elif node.op_type == "Constant" and node.domain == "":
            output = node.outputs[0]
            (form, value), *_ = self._attributes(node, frame).items()
            frame.scope[output] = constant(frame.prefix + (output.name or ""), constant_array(form, value))
            self._settle(node, frame, "constant")
        elif self._evaluate is not None and node.op_type == "Identity" and node.domain == "":
            frame.scope[node.outputs[0]] = None if node.inputs[0] is None else self._use(node.inputs[0], frame)
            self._settle(node, frame, "passed through")
        elif (branch := self._decided(node, frame)) is not None:
            self._branch(node, branch, frame, block)
        else:
            self._operator(node, frame, block)

    def _operator(self, node: ir.Node, frame: Frame, block: Block) -> None:
        step = self._step(node, frame)
        if step is None:
            return
        check_attributes(step)
        set_types(step)
        self._sizes.follow(step)
        check_types(step)
        if not step.traits.control_flow and not self._known(step.key):
            self._body(node, step, frame, block)
            return
        if self._evaluate is None or not fold(step, self._evaluate, self._growth):
            block.steps.append(step)
        else:
            self._settle(node, frame, "folded")

    def _settle(self, node: ir.Node, frame: Frame, how: str) -> None:
        self.settled.setdefault(frame.node or node, how)

    def _step(self, node: ir.Node, frame: Frame) -> Step | None:
        opset = frame.opsets.get(node.domain) or 1
        where = describe_node(node, opset)
        if frame.calls:
            where = f"{where} in the body of {frame.origin}"
        known = onnx.defs.has(node.op_type, opset, node.domain)
        if not known and find(node.domain, node.op_type) is None:
            for output in node.outputs:
                frame.scope[output] = Value(output.name or "")
            self._unsupported[where] = UnsupportedOpError(missing(node), node=where)
            return None
        since = onnx.defs.get_schema(node.op_type, opset, node.domain).since_version if known else 1
        step = Step(
            OpKey(node.domain, node.op_type, since),
            [None if value is None else self._use(value, frame) for value in node.inputs],
            [],
            self._attributes(node, frame),
            where=where,
            origin=frame.origin or describe_node(node, frame.opsets.get(node.domain)),
            name=frame.named(node),
            opset=opset,
            computes={frame.node or node: ""},
            metadata=node.metadata_props or (frame.node or node).metadata_props,
        )
        while step.inputs and step.inputs[-1] is None:
            step.inputs.pop()
        self._lower_subgraphs(node, step, frame)
        for output in node.outputs:
            frame.scope[output] = value = Value(frame.prefix + (output.name or ""), plain.of_value(output))
            step.outputs.append(value if output.name else None)
        while step.outputs and step.outputs[-1] is None:
            step.outputs.pop()
        return step

    def _lower_subgraphs(self, node: ir.Node, step: Step, frame: Frame) -> None:
        for name, attribute in node.attributes.items():
            if attribute.is_ref() or attribute.type != ir.AttributeType.GRAPH:
                continue
            graph = attribute.as_graph()
            if not step.traits.control_flow:  # a body built from this node will contain it
                step.graphs[name] = ir.serde.serialize_graph(graph)
            else:
                step.blocks[name] = self._graph(
                    graph,
                    replace(frame, origin=frame.origin or step.origin, node=frame.node or node),
                    subgraph_input_types(step, len(graph.inputs)),
                )
                set_sizes(step.blocks[name])

    def _attributes(self, node: ir.Node, frame: Frame) -> dict[str, Any]:
        values: dict[str, Any] = {}
        for name, attribute in node.attributes.items():
            if attribute.is_ref():
                if (referred := attribute.ref_attr_name or "") in frame.attributes:
                    values[name] = frame.attributes[referred]
            elif attribute.type not in (ir.AttributeType.GRAPH, ir.AttributeType.GRAPHS):
                values[name] = _plain(attribute)
        return values

    def _call(self, node: ir.Node, function: ir.Function, frame: Frame, block: Block) -> None:
        name = f"{function.domain}::{function.name}:{function.overload}"
        if name in frame.calls or len(frame.calls) >= MAX_CALLS:
            raise ResourceLimitError(f"function {name} calls itself", node=describe_node(node))
        declared = {key: _plain(attr) for key, attr in function.attributes.items() if attr.value is not None}
        inner = Frame(
            function.opset_imports or frame.opsets,
            attributes=declared | self._attributes(node, frame),
            prefix=f"{frame.prefix}{node.name or function.name}/",
            calls=(*frame.calls, name),
            origin=frame.origin or describe_node(node, frame.opsets.get(node.domain)),
            node=frame.node or node,
        )
        inputs = [None if value is None else self._use(value, frame) for value in node.inputs]
        self._inline(node, function, inputs, inner, frame, block)

    def _body(self, node: ir.Node, step: Step, frame: Frame, block: Block) -> None:
        name = f"{step.domain}::{step.op_type}"
        try:
            body = None if name in frame.calls else self._spelled_out(step)
        except ConversionError as error:
            self._refuse(step, error.message, hint=error.hint)
            return
        if body is None:
            self._refuse(step, "no kernel at this version, and its schema has no function body for this use")
            return
        inner = Frame(
            {**frame.opsets, **(body.opset_imports or {}), "": frame.opsets.get("", 1)},
            prefix=f"{frame.prefix}{node.name or step.op_type}/",
            calls=(*frame.calls, name),
            within=step.name or step.op_type,
            origin=frame.origin or describe_node(node, frame.opsets.get(node.domain)),
            node=frame.node or node,
        )
        self._inline(node, body, step.inputs, inner, frame, block)

    def _inline(
        self,
        node: ir.Node,
        body: ir.Function | ir.Graph,
        inputs: list[Value | None],
        inner: Frame,
        frame: Frame,
        block: Block,
    ) -> None:
        for index, value in enumerate(body.inputs):
            inner.scope[value] = inputs[index] if index < len(inputs) else None
        if isinstance(body, ir.Graph):
            self._initializers(body, inner)
        for inside in in_order(body if isinstance(body, ir.Graph) else body.graph):
            self._node(inside, inner, block)
        for output, value in zip(node.outputs, body.outputs, strict=False):
            made = frame.scope[output] = self._use(value, inner)
            if made is not None and made.type is None:
                made.type = plain.of_value(output)

    def _decided(self, node: ir.Node, frame: Frame) -> str | None:
        """The name of the branch that an If with a constant condition takes."""
        if self._evaluate is None or node.op_type != "If" or node.domain != "" or node.inputs[0] is None:
            return None
        condition = self._use(node.inputs[0], frame)
        if condition is None or condition.constant is None or condition.constant.size != 1:
            return None
        return "then_branch" if condition.constant.item() else "else_branch"

    def _branch(self, node: ir.Node, branch: str, frame: Frame, block: Block) -> None:
        self._settle(node, frame, f"{branch} taken")
        origin = frame.origin or describe_node(node, frame.opsets.get(node.domain))
        inner = replace(frame, origin=origin, node=frame.node or node)
        inside = self._graph(node.attributes[branch].as_graph(), inner)
        block.steps.extend(inside.steps)
        for output, value in zip(node.outputs, inside.outputs, strict=False):
            frame.scope[output] = value

    def _spelled_out(self, step: Step) -> ir.Function | ir.Graph | None:
        """A step in other operators: by its schema, or by the table of those that have none."""
        if step.schema is None:
            return spelled_out(step)
        try:
            return body_of(step)
        except ConversionError as error:
            raise ConversionError(f"its function body cannot be brought to the hub: {error}") from error

    def _refuse(self, step: Step, reason: str, hint: str | None = None) -> None:
        self._unsupported[step.where] = UnsupportedOpError(reason, node=step.where, hint=hint)


def inferred_types(model: ir.Model) -> dict[ir.Value, Type]:
    """What is known of the main graph's values: as declared, or by the schemas' inference."""
    frame = Frame(model.graph.opset_imports)
    Lowering(model.functions, lambda key: True)._graph(model.graph, frame)  # noqa: SLF001 - of the same room
    known = {value: made.type for value, made in frame.scope.items() if made is not None}
    return {value: kind for value, kind in known.items() if kind is not None}


def constant(name: str, array: Any) -> Value:
    """A value known now; its array is made read-only, so that nothing in a run can change it."""
    if isinstance(array, np.ndarray):
        array = array.view()
        array.flags.writeable = False
    return Value(name, plain.of_array(array), array)


def _plain(attribute: ir.Attr) -> Any:
    """An attribute as a Python value, a tuple of them, or an array."""
    value = attribute.value
    if attribute.type == ir.AttributeType.TENSOR:
        return array_of_tensor(attribute.as_tensor())
    if attribute.type == ir.AttributeType.TENSORS:
        return tuple(array_of_tensor(tensor) for tensor in attribute.as_tensors())
    if attribute.type == ir.AttributeType.TYPE_PROTO:
        return plain.of_attribute(value)
    if attribute.type == ir.AttributeType.FLOAT:  # which a file will hold, whatever was given
        return float(np.float32(value))
    if attribute.type == ir.AttributeType.FLOATS:
        return tuple(float(np.float32(each)) for each in value)
    return tuple(value) if isinstance(value, list | tuple) else value
