from __future__ import annotations

from typing import TypeAlias

import onnx_ir as ir

from entrepot.ir.inference import scope_types
from entrepot.ir.opset.extents import is_named
from entrepot.ir.opset.names import Names
from entrepot.ir.passes.dims import is_checked
from entrepot.ir.passes.graphs import has_references
from entrepot.ir.typing.query import Types

_ONE_AXIS = 15
"""The opset from which a Shape may return some of the sizes."""

_ARITHMETIC = frozenset({"Add", "Sub", "Mul", "Div", "Mod", "Neg", "Min", "Max"})

_SHAPE_OF = {"Reshape": 1, "Expand": 1, "Col2Im": 1, "ConstantOfShape": 0}
"""Which input has the last sizes of the result."""

_FEWEST = 2
"""Nodes: a size that one node computes is as well computed."""


class ReadSizes(ir.passes.InPlacePass):
    """Read a size that is computed from others where a value has it.

    Before: ``h = Conv<strides = [2]>(x)``, ``Expand(m, Concat([1], (Shape(x)[2:3] - 1) / 2 + 1))``, where the last
    size of both results has one name. After: ``Expand(m, Concat([1], Shape<start = 2, end = 3>(h)))``. Only of values
    that are computed before. What users call the sizes of outputs says nothing about them. Bodies of loops are left
    alone, since names of sizes there hold for one turn.
    """

    def call(self, model: ir.Model) -> ir.passes.PassResult:
        """Change the model in place."""
        graph = model.graph
        if graph.opset_imports.get("", 0) < _ONE_AXIS:
            return ir.passes.PassResult(model, modified=False)
        reading = _Reading(scope_types(model)[graph], Names(model))
        for value in graph.inputs:
            reading.note(value)
        modified = False
        for node in list(graph):
            modified |= reading.settle(node)
            for value in node.outputs:
                reading.note(value)
        return ir.passes.PassResult(model, modified=modified)


_Place: TypeAlias = tuple[ir.Value, int]
"""A value, and one of its axes."""


class _Reading:
    def __init__(self, types: Types, names: Names) -> None:
        self._types, self._names = types, names
        self._places: dict[str, _Place] = {}

    def note(self, value: ir.Value) -> None:
        """Sizes of this value may be read from here on."""
        if value.is_graph_output():
            return
        for axis, dim in enumerate(value.shape or ()):
            if isinstance(dim, ir.SymbolicDim) and is_named(dim):
                self._places.setdefault(str(dim.value), (value, axis))

    def settle(self, node: ir.Node) -> bool:
        """Let a node whose result has a computed shape read sizes that are somewhere; whether there were any."""
        at = _SHAPE_OF.get(node.op_type)
        vector = None if at is None or node.domain or has_references(node) else node.inputs[at]
        parts = _parts(vector, self._types)
        shape = node.outputs[0].shape
        if at is None or parts is None or shape is None or len(parts) > len(shape):
            return False
        if node.outputs[0].is_graph_output():
            return False
        dims = list(shape)[len(shape) - len(parts) :]
        places = [self._place(part, dim, vector) for part, dim in zip(parts, dims, strict=True)]
        if not any(places):
            return False
        read = [part if place is None else self._read(node, *place) for part, place in zip(parts, places, strict=True)]
        node.replace_input_with(at, read[0] if len(read) == 1 else self._joined(node, read))
        return True

    def _place(self, part: ir.Value, dim: int | ir.SymbolicDim, reader: ir.Value | None) -> _Place | None:
        if isinstance(dim, int) or not is_named(dim) or _spared(part) < _FEWEST or is_checked(part, self._types):
            return None
        return None if reader is None or len(reader.uses()) > 1 else self._places.get(str(dim.value))

    def _read(self, node: ir.Node, value: ir.Value, axis: int) -> ir.Value:
        return self._before(node, ir.node("Shape", [value], {"start": axis, "end": axis + 1}), 1)

    def _joined(self, node: ir.Node, parts: list[ir.Value]) -> ir.Value:
        return self._before(node, ir.node("Concat", parts, {"axis": 0}), len(parts))

    def _before(self, node: ir.Node, new: ir.Node, size: int) -> ir.Value:
        assert node.graph is not None
        value = new.outputs[0]
        value.name = new.name = self._names.fresh(f"{node.outputs[0].name}_{new.op_type.lower()}")
        value.type, value.shape = ir.TensorType(ir.DataType.INT64), ir.Shape([size])
        node.graph.insert_before(node, new)
        return value


def _parts(vector: ir.Value | None, types: Types) -> list[ir.Value] | None:
    """The sizes of a vector, each a vector of one element; ``None`` if it is not made of such."""
    if vector is None:
        return None
    node = vector.producer()
    made = node is not None and node.op_type == "Concat" and not node.domain
    parts = [each for each in node.inputs if each is not None] if node is not None and made else [vector]
    shapes = [types.shape(part) for part in parts]
    return parts if all(shape is not None and list(shape) == [1] for shape in shapes) else None


def _spared(part: ir.Value) -> int:
    """How many nodes of arithmetic compute a size and nothing else, with the Shapes that only they read."""
    node = part.producer()
    if node is None or node.op_type not in _ARITHMETIC | {"Shape"} or node.domain or part.is_graph_output():
        return 0
    if len({use.node for use in part.uses()}) > 1:
        return 0
    return 1 + sum(_spared(value) for value in node.inputs if value is not None and node.op_type != "Shape")
