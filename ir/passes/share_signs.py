from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np
import onnx_ir as ir

from entrepot.ir.opset.names import Names
from entrepot.ir.passes.graphs import alone_before, has_references, may_write_constants, typed_graphs, write_constant
from entrepot.ir.typing.query import Types

_BROADCASTING = 7
"""The opset from which products broadcast as NumPy does."""

Signs: TypeAlias = tuple[tuple[int, int], ...]
"""The size of each part, and 1 or -1."""


class Product(NamedTuple):
    """A product of parts, some of which are negated, with a factor."""

    node: ir.Node
    parts: ir.Node
    at: int


class ShareSigns(ir.passes.InPlacePass):
    """Negate a factor once, instead of parts of everything that is multiplied with it.

    Before: ``Mul(Concat(Neg(a), b), s)`` and ``Mul(Concat(Neg(c), d), s)``, as rotary embeddings turn queries and keys.
    After: ``t = Mul(s, [-1, 1])``, ``Mul(Concat(a, b), t)`` and ``Mul(Concat(c, d), t)``, equal to the last bit.
    Sizes of the parts have to be known. Subgraphs and functions are covered.
    """

    def call(self, model: ir.Model) -> ir.passes.PassResult:
        """Change the model in place."""
        names, modified = Names(model), False
        for graph, types in typed_graphs(model):
            if types.opsets.get("", 0) >= _BROADCASTING and may_write_constants(types):
                for key, products in _products(graph, types).items():
                    if len(products) > 1:
                        _share(products, key, types, names)
                        modified = True
        return ir.passes.PassResult(model, modified)


_Key: TypeAlias = tuple[ir.Value, Signs, int]
"""A factor, the signs of what it is multiplied with, and along which axis, counted from the last."""


def _products(graph: ir.Graph, types: Types) -> dict[_Key, list[Product]]:
    found: dict[_Key, list[Product]] = {}
    for node in graph:
        if node.op_type != "Mul" or node.domain or has_references(node):
            continue
        for at, factor in ((0, node.inputs[1]), (1, node.inputs[0])):
            parts = alone_before(node.inputs[at], node)
            signs = () if parts is None or parts.op_type != "Concat" else _signs(parts, types)
            if parts is None or factor is None or types.dtype(factor) is None or all(sign > 0 for _, sign in signs):
                continue
            found.setdefault((factor, signs, _axis_from_the_last(parts, types)), []).append(Product(node, parts, at))
            break
    return found


def _signs(parts: ir.Node, types: Types) -> Signs:
    """The sizes and signs of what a Concat puts together; nothing if a size is not known."""
    axis = parts.attributes.get_int("axis", 1)
    signs = []
    for value in parts.inputs:
        shape = types.shape(value)
        size = None if shape is None else shape[axis]
        if not isinstance(size, int):
            return ()
        signs.append((size, 1 if _negation(value, parts) is None else -1))
    return tuple(signs)


def _negation(value: ir.Value | None, parts: ir.Node) -> ir.Node | None:
    node = alone_before(value, parts)
    return node if node is not None and node.op_type == "Neg" else None


def _axis_from_the_last(parts: ir.Node, types: Types) -> int:
    axis, shape = parts.attributes.get_int("axis", 1), types.shape(parts.inputs[0])
    return axis if axis < 0 or shape is None else axis - len(shape)


def _share(products: list[Product], key: _Key, types: Types, names: Names) -> None:
    factor, signs, axis = key
    first, dtype = products[0].node, types.dtype(factor)
    assert first.graph is not None
    assert dtype is not None
    row = np.concatenate([np.full(size, sign, dtype.numpy()) for size, sign in signs])
    turned = ir.node("Mul", [factor, write_constant(first, row.reshape(-1, *[1] * (-1 - axis)), "signs", names)])
    turned.name = turned.outputs[0].name = names.fresh(f"{factor.name}_turned")
    turned.outputs[0].type = ir.TensorType(dtype)
    first.graph.insert_before(first, turned)
    for node, parts, at in products:
        node.replace_input_with(1 - at, turned.outputs[0])
        for index, value in enumerate(parts.inputs):
            negation = _negation(value, parts)
            if negation is not None:
                parts.replace_input_with(index, negation.inputs[0])
