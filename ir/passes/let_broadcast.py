from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

import onnx_ir as ir

from entrepot.ir.passes.dims import is_checked, same_dim
from entrepot.ir.passes.graphs import has_references, typed_graphs
from entrepot.ir.traits import traits_of
from entrepot.ir.typing.formula import Formula
from entrepot.ir.typing.query import Types
from entrepot.ir.typing.spec import Spec

_BROADCASTING = 8
"""The opset from which all of them broadcast as NumPy does."""


_OF_MATRIX = 2
"""How many axes a matrix has; those before them broadcast in a product."""


class LetBroadcast(ir.passes.InPlacePass):
    """Leave out an Expand before operators that broadcast as far without it, or whose readers do.

    Before: ``Where(c, Expand(1.0, Shape(x)), x)``. After: ``Where(c, 1.0, x)``. Products of matrices do, too. In
    ``x - Log(Expand(s, Shape(x)))`` the logarithm is then taken of fewer elements. What computed the shape is for
    ``DropUnused``. Subgraphs and functions are covered. Products of as many matrices as data say, which may be none,
    keep it: onnxruntime (1.31) refuses to broadcast one to none.
    """

    def call(self, model: ir.Model) -> ir.passes.PassResult:
        """Change the model in place."""
        named = frozenset[str]().union(*(_names(dim) for value in model.graph.inputs for dim in value.shape or ()))
        left_out = [
            _left_out(node, types, named)
            for graph, types in typed_graphs(model)
            if types.opsets.get("", 0) >= _BROADCASTING
            for node in list(graph)
            if node.op_type == "Expand" and not node.domain and not has_references(node)
        ]
        return ir.passes.PassResult(model, modified=any(left_out))


def _left_out(node: ir.Node, types: Types, named: frozenset[str]) -> bool:
    data, wide = node.inputs[0], node.outputs[0]
    if data is None or is_checked(node.inputs[1], types):
        return False
    shape = types.shape(data)
    if shape is None:
        return False
    narrow = _narrow(wide, shape, types)
    products = [types.shape(node.outputs[0]) or () for node in _readers(narrow) if _is_product(node)]
    if any(not _names(dim) <= named for shape in products for dim in shape[:-_OF_MATRIX]):
        return False
    readers = [use.node for use in wide.uses() if _may_be_narrow(use.node, narrow, shape, types)]
    for value in narrow:
        if value is not wide:
            value.shape = shape.copy()
            types.remember(value, Spec(types.type(value), value.shape))
    for reader in dict.fromkeys(readers):
        for at, given in enumerate(reader.inputs):
            if given is wide:
                reader.replace_input_with(at, data)
    return bool(readers)


def _readers(values: Collection[ir.Value]) -> Iterator[ir.Node]:
    return (use.node for value in values for use in value.uses())


def _is_product(node: ir.Node) -> bool:
    return node.op_type == "MatMul" and not node.domain


def _names(dim: int | ir.SymbolicDim) -> frozenset[str]:
    """The names that a size is computed from; one of its own if nothing says how."""
    if isinstance(dim, int):
        return frozenset()
    formula = Formula.of(dim.value) if dim.value else None
    return frozenset(formula.names if formula else [str(dim.value)])


def _narrow(wide: ir.Value, shape: ir.Shape, types: Types) -> Collection[ir.Value]:
    """A value, and those computed from it element by element that may have its smaller ``shape`` as well."""
    narrow, pending = {wide: None}, [wide]
    while pending:
        value = pending.pop()
        made = [use.node.outputs[0] for use in value.uses() if _keeps_shape(use.node, narrow, shape, types)]
        pending += [each for each in made if each not in narrow]
        narrow.update(dict.fromkeys(made))
    pending = list(narrow)
    while pending:
        value = pending.pop()
        if value is wide or value not in narrow or _stays(value, narrow, shape, types):
            continue
        del narrow[value]
        node = value.producer()
        around = [*(node.inputs if node else ()), *(use.node.outputs[0] for use in value.uses())]
        pending += [each for each in around if each in narrow]
    return narrow


def _stays(value: ir.Value, narrow: Collection[ir.Value], shape: ir.Shape, types: Types) -> bool:
    """Whether a value can be as narrow as others are."""
    node = value.producer()
    if node is None or value.is_graph_output() or not _keeps_shape(node, narrow, shape, types):
        return False
    return all(_may_be_narrow(use.node, narrow, shape, types) for use in value.uses())


def _may_be_narrow(reader: ir.Node, narrow: Collection[ir.Value], shape: ir.Shape, types: Types) -> bool:
    """Whether a reader's result is as narrow as its operand, or the same as before."""
    return reader.outputs[0] in narrow or _suffices(reader, narrow, shape, types)


def _keeps_shape(reader: ir.Node, narrow: Collection[ir.Value], shape: ir.Shape, types: Types) -> bool:
    """Whether a result has the shape of operands that are ``narrow``; the others are single elements."""
    known = traits_of(reader)
    if has_references(reader) or not known.elementwise or not (known.broadcasts or reader.inputs[0] in narrow):
        return False
    others = [types.shape(value) for value in reader.inputs if value is not None and value not in narrow]
    return all(other is not None and len(other) <= len(shape) and set(other) <= {1} for other in others)


def _suffices(reader: ir.Node, narrow: Collection[ir.Value], shape: ir.Shape, types: Types) -> bool:
    """Whether the result is the same with narrow operands: another one has each size that they lack."""
    is_product = _is_product(reader)
    if has_references(reader) or not (is_product or traits_of(reader).broadcasts):
        return False
    result = types.shape(reader.outputs[0])
    shapes = [shape if value in narrow else types.shape(value) for value in reader.inputs]
    if result is None or any(each is None for each in shapes):
        return False
    known = [each for each in shapes if each is not None]
    if not is_product:
        return all(_has(known, back, dim) for back, dim in enumerate(reversed(result), 1))
    leading = list(enumerate(reversed(result), 1))[_OF_MATRIX:]
    wide = [types.shape(value) for value in reader.inputs if value in narrow]
    return all(_are_matrices(known, shape, each) for each in wide) and all(_has(known, *each) for each in leading)


def _are_matrices(operands: Sequence[ir.Shape], data: ir.Shape | None, wide: ir.Shape | None) -> bool:
    """Whether all operands of a product are, and those of ``data`` are as large as those of ``wide``."""
    if data is None or wide is None or any(len(shape) < _OF_MATRIX for shape in operands):
        return False
    return all(map(same_dim, data[-_OF_MATRIX:], wide[-_OF_MATRIX:]))


def _has(shapes: Sequence[ir.Shape], back: int, dim: int | ir.SymbolicDim) -> bool:
    """Whether an operand certainly has a size of the result on the axis that is counted from the last one."""
    return any(len(shape) >= back and same_dim(shape[-back], dim) for shape in shapes)
