"""Branches and loops of a rewritten module as ``If`` and ``Loop``, with bodies captured one by one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import onnx_ir
from onnx_ir.passes import common

from entrepot.exporters.torch.rewriting.flows import Body, Flow, Template

Capture = Callable[[Flow, Body], onnx_ir.Model]
DOMAIN, OPERATOR = "entrepot", "Flow"


def expand_flows(model: onnx_ir.Model, flows: dict[str, Flow], capture: Capture) -> None:
    """Put nodes in the place of every operator that stands for a branch or a loop, in place.

    Args:
        model: What was translated.
        flows: What each operator stands for.
        capture: Translates a body; its first inputs are tensors, the others stand for numbers by their size.
    """
    common.InlinePass()(model)
    for node in list(onnx_ir.traversal.RecursiveGraphIterator(model.graph)):
        if node.domain == DOMAIN and node.op_type == OPERATOR:
            key = str(node.attributes["key"].value)
            _Expansion(model, node, key, flows[key], capture).run(flows)
    model.opset_imports.pop(DOMAIN, None)


class _Expansion:
    def __init__(self, model: onnx_ir.Model, node: onnx_ir.Node, key: str, flow: Flow, capture: Capture) -> None:
        self.model, self.node, self.key, self.flow, self.capture = model, node, key, flow, capture
        count, numbers = (node.attributes[name].as_int() for name in ("tensors", "ints"))
        self.tensors, self.ints = list(node.inputs[:count]), list(node.inputs[count : count + numbers])
        self.sizes = list(node.inputs[count + numbers :])

    def run(self, flows: dict[str, Flow]) -> None:
        graphs = []
        for number, part in enumerate(self.flow.bodies):
            body = self.capture(self.flow, part)
            expand_flows(body, flows, self.capture)
            graphs.append(self._adopted(body, f"{self.key}_{number}"))
        new = self._branch(graphs) if len(graphs) == 2 else self._loop(graphs[0])
        new.name = self.node.name
        new.meta.update(self.node.meta)
        graph = self.node.graph
        assert graph is not None
        graph.insert_before(self.node, new)
        rows = len(new.outputs) - self.flow.stacked
        for place, (old, made) in enumerate(zip(self.node.outputs, new.outputs, strict=True)):
            fresh = made if place < rows else self._shaped(made, self.flow.outputs[place], f"{old.name}_rows")
            fresh.name, fresh.shape, fresh.type = old.name, old.shape, old.type
            old.replace_all_uses_with(fresh, replace_graph_outputs=True)
        graph.remove(self.node, safe=True)

    def _shaped(self, rows: onnx_ir.Value, template: Template, name: str) -> onnx_ir.Value:
        """Rows with the sizes that they have: of a loop that runs not even once, no runtime knows them."""
        sizes = [[-1] if size is None else size for size in template.shape]
        if sum(size == [-1] for size in sizes) > 1:
            return rows
        nodes, parts = [], []
        one = _constant([1])
        for size in sizes:
            part = (
                onnx_ir.node("Reshape", [self.sizes[size[0]], one.outputs[0]])
                if isinstance(size, tuple)
                else _constant(size if isinstance(size, list) else [size])
            )
            nodes.append(part)
            parts.append(part.outputs[0])
        shape = onnx_ir.node("Concat", parts, {"axis": 0})
        new = onnx_ir.node("Reshape", [rows, shape.outputs[0]], {"allowzero": 1})
        rows.name = name
        for number, node in enumerate((one, *nodes, shape)):
            node.outputs[0].name = f"{name}/{number}"
        assert self.node.graph is not None
        self.node.graph.insert_before(self.node, [one, *nodes, shape, new])
        return new.outputs[0]

    def _branch(self, graphs: list[onnx_ir.Graph]) -> onnx_ir.Node:
        condition, *tensors = self.tensors
        for graph, body in zip(graphs, self.flow.bodies, strict=True):
            _bind(graph, [*tensors, *self.ints], len(tensors), body.shifts)
        return onnx_ir.node(
            "If",
            [condition],
            {"then_branch": graphs[0], "else_branch": graphs[1]},
            num_outputs=len(self.node.outputs),
        )

    def _loop(self, graph: onnx_ir.Graph) -> onnx_ir.Node:
        flow = self.flow
        tensors, ints = list(self.tensors), self.ints
        starts = tensors.pop() if flow.going else None
        given: list[Any] = [*tensors, *ints]
        index = onnx_ir.Value(
            name=f"{self.key}_index", type=onnx_ir.TensorType(onnx_ir.DataType.INT64), shape=onnx_ir.Shape(())
        )
        again = onnx_ir.Value(
            name=f"{self.key}_again", type=onnx_ir.TensorType(onnx_ir.DataType.BOOL), shape=onnx_ir.Shape(())
        )
        formal = []
        inside = list(given)
        for place in flow.carried:
            like = graph.inputs[place] if place < len(tensors) else None
            value = onnx_ir.Value(
                name=f"{self.key}_carried_{place}",
                type=onnx_ir.TensorType(onnx_ir.DataType.INT64) if like is None else like.type,
                shape=onnx_ir.Shape(()) if like is None else like.shape,
            )
            formal.append(value)
            inside[place] = value
        _bind(graph, [*inside[: len(tensors)], index, *inside[len(tensors) :]], len(tensors), flow.bodies[0].shifts)
        graph.inputs.extend([index, again, *formal])
        if not flow.going:
            kept = onnx_ir.node("Identity", [again])
            kept.outputs[0].name = f"{self.key}_goes_on"
            kept.outputs[0].type, kept.outputs[0].shape = again.type, again.shape
            graph.append(kept)
            graph.outputs.insert(0, kept.outputs[0])
        trips = ints[0] if flow.trips else None
        if starts is None and not flow.carried:  # onnxruntime (1.31) wants two inputs
            true = onnx_ir.node("Constant", [], {"value": onnx_ir.tensor(np.array(True))})
            true.outputs[0].name = f"{self.key}_starts"
            assert self.node.graph is not None
            self.node.graph.insert_before(self.node, true)
            starts = true.outputs[0]
        return onnx_ir.node(
            "Loop",
            [trips, starts, *(given[place] for place in flow.carried)],
            {"body": graph},
            num_outputs=len(self.node.outputs),
        )

    def _adopted(self, made: onnx_ir.Model, prefix: str) -> onnx_ir.Graph:
        """The graph of a body, with names of its own and weights in the main graph."""
        graph = made.graph
        for value in list(graph.initializers.values()):
            del graph.initializers[str(value.name)]
            value.name = f"{prefix}/{value.name}"
            if value.const_value is not None:
                value.const_value.name = value.name
            self.model.graph.initializers.add(value)
        for node in onnx_ir.traversal.RecursiveGraphIterator(graph):
            node.name = f"{prefix}/{node.name}"
            for value in node.outputs:
                value.name = f"{prefix}/{value.name}"
        for value in _values(graph):
            value.shape = _renamed(value.shape, prefix)
        graph.name = prefix
        return graph


def _values(graph: onnx_ir.Graph) -> Iterator[onnx_ir.Value]:
    yield from graph.inputs
    for node in onnx_ir.traversal.RecursiveGraphIterator(graph):
        yield from node.outputs


def _renamed(shape: onnx_ir.Shape | None, prefix: str) -> onnx_ir.Shape | None:
    """Sizes under names of the body: its symbols are not those outside."""
    if shape is None:
        return None
    return onnx_ir.Shape([dim if isinstance(dim, int) else _renamed_dim(dim.value, prefix) for dim in shape])


def _renamed_dim(name: str | None, prefix: str) -> str | None:
    return f"{prefix}_{name}" if name is not None and name.isidentifier() else None


def _bind(graph: onnx_ir.Graph, values: Sequence[Any], tensors: int, shifts: Mapping[int, int]) -> None:
    """Let a body read values around it, in place of its inputs."""
    _separate_outputs(graph)
    inputs = list(graph.inputs)
    graph.inputs.clear()
    for place, (formal, value) in enumerate(zip(inputs, values, strict=False)):
        if place >= tensors:
            _bind_number(graph, formal, value, shifts.get(place, 0))
        else:
            formal.replace_all_uses_with(value)


def _bind_number(graph: onnx_ir.Graph, formal: onnx_ir.Value, value: onnx_ir.Value, shift: int) -> None:
    """Let what asks for the shape of an empty tensor read a number, to which something may be added."""
    if not formal.uses():
        return
    one = _constant([1])
    row = onnx_ir.node("Reshape", [value, one.outputs[0]])
    nodes = [one, row]
    if shift:
        added = _constant([shift])
        row = onnx_ir.node("Add", [row.outputs[0], added.outputs[0]])
        nodes += [added, row]
    full = False
    for user, _ in list(formal.uses()):
        attributes = user.attributes
        first = (
            user.op_type == "Shape"
            and "end" in attributes
            and attributes["end"].value == 1
            and getattr(attributes.get("start"), "value", 0) == 0
        )
        if first:
            _shift_back(graph, user.outputs[0], nodes[1].outputs[0], shift)
            user.outputs[0].replace_all_uses_with(row.outputs[0])
            full |= user.outputs[0].is_graph_output()
        else:
            full = True
    if full:  # a node that is made and not put into the graph would still read the row
        zero = _constant([0])
        shape = onnx_ir.node("Concat", [row.outputs[0], zero.outputs[0]], {"axis": 0})
        empty = onnx_ir.node("ConstantOfShape", [shape.outputs[0]])
        nodes += [zero, shape, empty]
        formal.replace_all_uses_with(empty.outputs[0])
    for number, node in enumerate(nodes):
        node.outputs[0].name = f"{formal.name}/{number}"
    start = next(iter(graph), None)
    graph.extend(nodes) if start is None else graph.insert_before(start, nodes)


def _shift_back(graph: onnx_ir.Graph, size: onnx_ir.Value, number: onnx_ir.Value, shift: int) -> None:
    """Let what takes away from a size what was added read the number itself."""
    for scalar in [user for user, _ in size.uses() if shift and user.op_type == "Squeeze"]:
        for user, _ in list(scalar.outputs[0].uses()):
            if user.op_type == "Sub" and user.inputs[0] is scalar.outputs[0] and _is_number(user.inputs[1], shift):
                plain = onnx_ir.node("Squeeze", [number, *scalar.inputs[1:]])
                plain.outputs[0].name = f"{user.outputs[0].name}/plain"
                plain.outputs[0].shape, plain.outputs[0].type = user.outputs[0].shape, user.outputs[0].type
                graph.insert_before(user, plain)
                user.outputs[0].replace_all_uses_with(plain.outputs[0])


def _is_number(value: onnx_ir.Value | None, number: int) -> bool:
    known = None if value is None else onnx_ir.convenience.get_const_tensor(value)
    return known is not None and known.size == 1 and known.numpy().item() == number


def _constant(values: list[int]) -> onnx_ir.Node:
    return onnx_ir.node("Constant", [], {"value": onnx_ir.tensor(np.array(values, np.int64))})


def _separate_outputs(graph: onnx_ir.Graph) -> None:
    """Let every output be the result of a node of the body, and no two be one value."""
    seen: set[int] = set()
    own = {id(value) for node in graph for value in node.outputs}
    for place, value in enumerate(list(graph.outputs)):
        if id(value) in seen or id(value) not in own:
            node = onnx_ir.node("Identity", [value])
            node.outputs[0].name = f"{graph.name}_output_{place}"
            node.outputs[0].shape, node.outputs[0].type = value.shape, value.type
            graph.append(node)
            graph.outputs[place] = node.outputs[0]
        seen.add(id(value))
