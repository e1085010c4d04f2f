from __future__ import annotations

import math

import numpy as np
import onnx_ir as ir

from entrepot.ir.opset.names import Names
from entrepot.ir.passes.dims import same_shape
from entrepot.ir.passes.graphs import has_references, may_write_constants, typed_graphs, write_constant
from entrepot.ir.typing.query import Types


class InferSizes(ir.passes.InPlacePass):
    """Leave to a Reshape the one size that is what the others leave of the number of elements.

    Before: ``Reshape(x, Concat(b, Size(x) / (b * 8), [8]))``. After: ``Reshape(x, Concat(b, [-1], [8]))``. Where the
    others are empty the division fails, and so does the Reshape. Subgraphs and functions are covered.
    """

    def call(self, model: ir.Model) -> ir.passes.PassResult:
        """Change the model in place."""
        names = Names(model)
        inferred = [
            _infer(node, types, names)
            for graph, types in typed_graphs(model)
            if may_write_constants(types)
            for node in list(graph)
            if node.op_type == "Reshape" and not node.domain and len(node.inputs) == 2
        ]
        return ir.passes.PassResult(model, modified=any(inferred))


def _infer(node: ir.Node, types: Types, names: Names) -> bool:
    data, vector = node.inputs
    made = _made(vector, "Concat")
    if data is None or made is None or has_references(node) or made.graph is not node.graph:
        return False
    parts = list(made.inputs)
    at = next((place for place, part in enumerate(parts) if _is_rest(part, data, types)), None)
    if at is None or not _are(_factors(parts[at], types), parts[:at] + parts[at + 1 :], types):
        return False
    parts[at] = write_constant(node, np.array([-1], np.int64), "rest", names)
    new = ir.node("Concat", parts, {"axis": 0})
    new.outputs[0].name = new.name = names.fresh(f"{node.outputs[0].name}_shape")
    assert node.graph is not None
    node.graph.insert_before(node, new)
    node.replace_input_with(1, new.outputs[0])
    return True


def _made(value: ir.Value | None, op_type: str) -> ir.Node | None:
    node = None if value is None else value.producer()
    return node if node is not None and node.op_type == op_type and not node.domain else None


def _is_rest(part: ir.Value | None, data: ir.Value, types: Types) -> bool:
    """Whether a size is the number of elements, divided by something."""
    division = _made(part, "Div")
    size = None if division is None else _made(division.inputs[0], "Size")
    if size is None:
        return False
    return size.inputs[0] is data or same_shape(types.shape(size.inputs[0]), types.shape(data))


_Factors = tuple[int, list[ir.Value]]
"""A number and sizes, of which something is the product."""


def _factors(part: ir.Value | None, types: Types) -> _Factors:
    """What the number of elements is divided by."""
    division = _made(part, "Div")
    assert division is not None
    number, sizes, pending = 1, [], [division.inputs[1]]
    while pending:
        value = pending.pop()
        product, known = _made(value, "Mul"), types.known.array(value)
        if known is not None and known.size == 1:
            number *= int(known.item())
        elif product is not None:
            pending += product.inputs
        elif value is not None:
            sizes.append(value)
    return number, sizes


def _are(factors: _Factors, parts: list[ir.Value | None], types: Types) -> bool:
    """Whether these sizes, and no others, are the factors."""
    known = [types.known.array(part) for part in parts]
    number = math.prod(int(size) for array in known if array is not None for size in array.flat)
    sizes = [part for part, array in zip(parts, known, strict=True) if array is None]
    wanted = sorted(map(id, factors[1]))
    return number > 0 and (number, wanted) == (factors[0], sorted(map(id, sizes)))
