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


class Negation(NamedTuple):
    """A Neg, and the input that reads it."""

    node: ir.Node
    reader: ir.Node
    at: int


class Signed(NamedTuple):
    """Parts put together, some of which are negated, along an axis that is counted from the last."""

    signs: Signs
    axis: int
    negations: tuple[Negation, ...]


class Product(NamedTuple):
    """A product of such parts, which are one of its operands."""

    node: ir.Node
    at: int
    negations: tuple[Negation, ...]


class ShareSigns(ir.passes.InPlacePass):
    """Negate a factor once, instead of parts of everything that is multiplied with it.

    Before: ``Mul(Concat(Neg(a), b), s)`` and ``Mul(Concat(Neg(c), d), s)``, as rotary embeddings turn queries and keys.
    After: ``t = Mul(s, [-1, 1])``, ``Mul(Concat(a, b), t)`` and ``Mul(Concat(c, d), t)``, equal to the last bit. So are
    parts that are stacked and then flattened, so that their elements alternate. Sizes of the parts have to be known.
    Subgraphs and functions are covered.
    """

    def call(self, model: ir.Model) -> ir.passes.PassResult:
        """Change the model in place."""
        names, modified = Names(model), False
        for graph, types in typed_graphs(model):
            if types.opsets.get("", 0) >= _BROADCASTING and may_write_constants(types):
                for (factor, signs, axis), products in _products(graph, types).items():
                    if len(products) > 1:
                        _share(products, factor, _row(signs, axis), types, names)
                        modified = True
        return ir.passes.PassResult(model, modified)


def _products(graph: ir.Graph, types: Types) -> dict[tuple[ir.Value, Signs, int], list[Product]]:
    """Products by their factor, and by the signs of what it is multiplied with, and along which axis."""
    found: dict[tuple[ir.Value, Signs, int], list[Product]] = {}
    for node in graph:
        if node.op_type != "Mul" or node.domain or has_references(node):
            continue
        for at, factor in ((0, node.inputs[1]), (1, node.inputs[0])):
            signed = _signed(node.inputs[at], node, types)
            if signed is not None and signed.negations and factor is not None and types.dtype(factor) is not None:
                key = factor, signed.signs, signed.axis
                found.setdefault(key, []).append(Product(node, at, signed.negations))
                break
    return found


def _signed(value: ir.Value | None, reader: ir.Node, types: Types) -> Signed | None:
    node = alone_before(value, reader)
    if node is None or node.op_type not in ("Concat", "Reshape"):
        return None
    return _put_together(node, types) if node.op_type == "Concat" else _alternating(node, types)


def _put_together(parts: ir.Node, types: Types) -> Signed | None:
    """What a Concat puts together, if the sizes are known."""
    axis, signs, negations = parts.attributes.get_int("axis", 1), [], []
    rank = len(types.shape(parts.inputs[0]) or ())
    for at, value in enumerate(parts.inputs):
        shape = types.shape(value)
        size = None if shape is None else shape[axis]
        if not isinstance(size, int):
            return None
        negation = _negation(value, parts, at)
        signs.append((size, 1 if negation is None else -1))
        negations += [] if negation is None else [negation]
    return Signed(tuple(signs), axis if axis < 0 else axis - rank, tuple(negations))


def _alternating(flat: ir.Node, types: Types) -> Signed | None:
    """What is put together along the last axis, which is then joined with the axis before it."""
    stack = alone_before(flat.inputs[0], flat)
    stacked, flattened = (types.shape(value) for value in (flat.inputs[0], flat.outputs[0]))
    if stack is None or stack.op_type != "Concat" or not stacked or not flattened or len(stacked) < 2:
        return None
    times, every = stacked[-2:]
    if not isinstance(times, int) or not isinstance(every, int) or flattened[-1] != times * every:
        return None
    parts = _put_together(stack, types)
    return None if parts is None or parts.axis != -1 else parts._replace(signs=parts.signs * times)


def _negation(value: ir.Value | None, reader: ir.Node, at: int) -> Negation | None:
    """What negates an operand, perhaps before it gets another axis."""
    node = alone_before(value, reader)
    if node is not None and node.op_type == "Unsqueeze":
        return _negation(node.inputs[0], node, 0)
    return Negation(node, reader, at) if node is not None and node.op_type == "Neg" else None


def _row(signs: Signs, axis: int) -> np.ndarray:
    """The signs along an axis that is counted from the last."""
    return np.concatenate([np.full(size, sign) for size, sign in signs]).reshape(-1, *[1] * (-1 - axis))


def _share(products: list[Product], factor: ir.Value, row: np.ndarray, types: Types, names: Names) -> None:
    first, dtype = products[0].node, types.dtype(factor)
    assert first.graph is not None
    assert dtype is not None
    turned = ir.node("Mul", [factor, write_constant(first, row.astype(dtype.numpy()), "signs", names)])
    turned.name = turned.outputs[0].name = names.fresh(f"{factor.name}_turned")
    turned.outputs[0].type = ir.TensorType(dtype)
    first.graph.insert_before(first, turned)
    for product in products:
        product.node.replace_input_with(1 - product.at, turned.outputs[0])
        for negation in product.negations:
            negation.reader.replace_input_with(negation.at, negation.node.inputs[0])
