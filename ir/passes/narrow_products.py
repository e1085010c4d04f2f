from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np
import onnx_ir as ir

from entrepot.ir.opset.schemas import schema, since
from entrepot.ir.passes.graphs import typed_graphs, version_of
from entrepot.ir.traits import Cost, traits_of
from entrepot.ir.typing.query import Types

_WIDE = ir.DataType.FLOAT
_MATRIX = 2
"""Weights of fewer axes stay as they are: there is nothing to save."""


class NarrowProducts(ir.passes.InPlacePass):
    """Compute products of float32 in float16 or bfloat16, and keep the weights and results of them in it.

    Before: ``y = Softmax(MatMul(x, w))``. After: ``y = Softmax(Cast(MatMul(Cast(x), w)))``.
    What moves elements goes along; normalisations, softmax, sums and everything else stay in float32.

    Args:
        dtype: The narrower type.
        values: Names of inputs and outputs that have this type afterwards; all others keep theirs.
    """

    def __init__(self, dtype: ir.DataType, values: Collection[str] = ()) -> None:
        super().__init__()
        self._dtype, self._values = dtype, frozenset(values)

    def call(self, model: ir.Model) -> ir.passes.PassResult:
        """Change the model in place."""
        types = next(types for graph, types in typed_graphs(model) if graph is model.graph)
        wide = {value for value in _values(model.graph) if types.dtype(value) is _WIDE}
        change = _Change(model.graph, self._dtype, wide, self._values)
        for node in list(model.graph):
            change.take(node, types)
        change.settle()
        return ir.passes.PassResult(model, modified=bool(change.narrow))


def _values(graph: ir.Graph) -> list[ir.Value]:
    made = [value for node in graph for value in node.outputs]
    return [*graph.inputs, *graph.initializers.values(), *made]


class _Change:
    """What becomes narrow in one graph, in the order of its nodes."""

    def __init__(self, graph: ir.Graph, dtype: ir.DataType, wide: set[ir.Value], names: frozenset[str]) -> None:
        self._graph, self._dtype, self._wide, self._names = graph, dtype, wide, names
        self._chosen: set[ir.Node] = set()
        self._weights: dict[ir.Value, ir.TensorProtocol | None] = {}
        self.narrow: set[ir.Value] = {value for value in graph.inputs if value in wide and value.name in names}

    def take(self, node: ir.Node, types: Types) -> None:
        """Let a node compute in the narrower type, if it is a product or moves what is narrow."""
        given = [value for value in node.inputs if value is not None and value in self._wide]
        if not given or not self._can(node, types):
            return
        moved = traits_of(node).moves and all(value in self.narrow or self._weight(value) for value in given)
        if moved or (
            traits_of(node).cost is Cost.PRODUCT and all(self._weight(value) for value in given if _is_matrix(value))
        ):
            self._chosen.add(node)
            self.narrow |= {value for value in node.outputs if value in self._wide}

    def _can(self, node: ir.Node, types: Types) -> bool:
        if node.domain or any(attribute.type in _BODIES for attribute in node.attributes.values()):
            return False
        known = schema("", node.op_type, since("", node.op_type, version_of(node, types.opsets)))
        name = f"tensor({self._dtype.name.lower()})"
        allowed = {each.type_param_str: each.allowed_type_strs for each in known.type_constraints}
        last = len(known.inputs) - 1
        operands = (min(at, last) for at, value in enumerate(node.inputs) if value in self._wide)
        return all(name in allowed.get(known.inputs[at].type_str, ()) for at in operands)

    def _weight(self, value: ir.Value) -> ir.TensorProtocol | None:
        """A weight in the narrower type; ``None`` for what is none, or has numbers beyond its range."""
        if value not in self._weights:
            self._weights[value] = self._narrowed(value) if _is_matrix(value) else None
        return self._weights[value]

    def _narrowed(self, value: ir.Value) -> ir.TensorProtocol | None:
        assert value.const_value is not None
        array = value.const_value.numpy()
        with np.errstate(over="ignore"):
            made = array.astype(self._dtype.numpy())
        if not np.array_equal(np.isfinite(made.astype(np.float32)), np.isfinite(array)):
            return None
        return ir.tensor(made, dtype=self._dtype, name=value.name)

    def settle(self) -> None:
        """Write casts where types meet."""
        ends = {value: at for at, value in enumerate(self._graph.outputs)}
        for value in [each for each in _values(self._graph) if each in self._wide]:
            uses = list(value.uses())
            others = [use for use in uses if (use.node in self._chosen) is not (value in self.narrow)]
            weight = self._weights.get(value)
            if value in self.narrow:
                value.type = ir.TensorType(self._dtype)
                self._cast(value, others, _WIDE)
            elif others and weight is not None:
                self._store(value, weight, others, whole=len(others) == len(uses) and value not in ends)
            else:
                self._cast(value, others, self._dtype)
            asked = self._dtype if value.name in self._names else _WIDE
            if value in ends and value.dtype is not asked:
                self._end(value, ends[value], asked)

    def _cast(self, value: ir.Value, uses: Collection[Any], to: ir.DataType) -> None:
        if not uses:
            return
        node = self._written(value, to)
        node.outputs[0].name = f"{value.name}.{to.name.lower()}"
        for use in uses:
            use.node.replace_input_with(use.idx, node.outputs[0])

    def _written(self, value: ir.Value, to: ir.DataType) -> ir.Node:
        node = ir.node("Cast", [value], {"to": int(to)})
        node.outputs[0].shape, node.outputs[0].type = value.shape, ir.TensorType(to)
        maker = value.producer()
        if maker is not None:
            self._graph.insert_after(maker, node)
        else:
            self._graph.insert_before(self._graph[0], node)
        return node

    def _store(self, value: ir.Value, weight: ir.TensorProtocol, uses: Collection[Any], *, whole: bool) -> None:
        if whole:
            value.const_value, value.type = weight, ir.TensorType(self._dtype)
            return
        name = f"{value.name}.{self._dtype.name.lower()}"
        made = ir.Value(name=name, const_value=weight, type=ir.TensorType(self._dtype), shape=value.shape)
        self._graph.register_initializer(made)
        for use in uses:
            use.node.replace_input_with(use.idx, made)

    def _end(self, value: ir.Value, at: int, to: ir.DataType) -> None:
        """Give an output the type that is asked for, under its name."""
        node, name = self._written(value, to), value.name
        value.name, node.outputs[0].name = f"{name}.{(value.dtype or _WIDE).name.lower()}", name
        self._graph.outputs[at] = node.outputs[0]


_BODIES = (ir.AttributeType.GRAPH, ir.AttributeType.GRAPHS)


def _is_matrix(value: ir.Value) -> bool:
    return value.is_initializer() and value.const_value is not None and len(value.const_value.shape) >= _MATRIX
