"""Sequences and optionals: before the opset that introduced them, only where they can be resolved when converting.

Optional{GetElement,HasElement} 18 also take what is not optional.
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from entrepot.ir.opset.adapters.parts.sequence_items import items_of, picked
from entrepot.ir.opset.bodies import expand
from entrepot.ir.opset.builder import OpBuilder
from entrepot.ir.opset.rules import Replacement, adapter, decomposition, extended, unchanged

unchanged("SplitToSequence", 11, 24)
unchanged("Optional", 15, 28)
unchanged("OptionalGetElement", 18, 28)
unchanged("OptionalHasElement", 18, 28)
extended("OptionalGetElement", 15, 18)
extended("OptionalHasElement", 15, 18)


@decomposition("SequenceMap", 17)
def sequence_map(op: OpBuilder, node: ir.Node) -> Replacement:
    """The loop of the schema's body, which takes the types of the results from the graph that makes them."""
    body: ir.Graph = op.attr("body")
    for result in body.outputs:
        result.type = result.type or op.around.types.type(result)
        if result.type is None:
            op.refuse("the element type of its result is unknown", hint="possible if its body states it")
    return expand(op, node)


@decomposition("SequenceAt", 11)
def sequence_at(op: OpBuilder, _node: ir.Node) -> Replacement:
    """Take the tensor itself; for a computed position, choose among all."""
    return picked(op, items_of(op, op.x()), op.x(1))


@decomposition("SequenceLength", 11)
def sequence_length(op: OpBuilder, _node: ir.Node) -> Replacement:
    """Write a constant."""
    return op.const(np.int64(len(items_of(op, op.x()))))


@decomposition("ConcatFromSequence", 11)
def concat_from_sequence(op: OpBuilder, _node: ir.Node) -> Replacement:
    """Concatenate the tensors, along a new axis where asked."""
    items, axis = [item() for item in items_of(op, op.x())], op.attr("axis")
    if op.attr("new_axis", 0):
        axis = axis if axis >= 0 else axis + op.need_rank(items[0]) + 1
        items = [op.Unsqueeze(item, axes=[axis]) for item in items]
    elif axis < 0:
        axis += op.need_rank(items[0])
    return op.Concat(*items, axis=axis)


@decomposition("SequenceConstruct", 11)
@decomposition("SequenceEmpty", 11)
@decomposition("SequenceErase", 11)
@decomposition("SequenceInsert", 11)
@decomposition("SplitToSequence", 11)
def sequence_dissolved(op: OpBuilder, _node: ir.Node) -> Replacement:
    """Drop it once nothing reads it."""
    if op.used(0):
        op.after_readers("no sequences existed before opset 11", hint="possible where its readers take single tensors")
    return ()


@adapter("Identity", 14, 13)
def identical_sequence(op: OpBuilder, node: ir.Node) -> Replacement:
    """Insert and remove a tensor; below opset 11, drop it once nothing reads it."""
    if not isinstance(op.around.types.type(op.x()), ir.SequenceType):
        return None
    if op.around.targets.get("", op.version) < 11:
        return sequence_dissolved(op, node)
    dtype = op.need_dtype(op.x())
    filler = np.array("", object) if dtype == ir.DataType.STRING else np.zeros((), dtype.numpy())
    return op.SequenceErase(op.SequenceInsert(op.x(), op.const(filler, dtype=dtype)))


@adapter("OptionalGetElement", 18, 15)
def get_element_of_what_is_there(op: OpBuilder, _node: ir.Node) -> Replacement:
    """Take what is not optional as its own element."""
    if isinstance(op.around.types.type(op.x()), ir.OptionalType):
        return None
    return op.Identity(op.x())


@adapter("OptionalHasElement", 18, 15)
def has_element_where_known(op: OpBuilder, _node: ir.Node) -> Replacement:
    """Write true for what is not optional, false for what is absent."""
    if op.input(0) is None:
        return op.const(np.array(False))
    kind = op.around.types.type(op.x())
    if kind is None:
        op.refuse("whether its input is optional is unknown")
    return None if isinstance(kind, ir.OptionalType) else op.const(np.array(True))


def _wrapped(op: OpBuilder, value: ir.Value) -> ir.Node:
    node = value.producer()
    if node is None or node.op_type != "Optional":
        raise op.refusal("no optionals existed before opset 15", hint="possible where it is built in the same graph")
    return node


@decomposition("OptionalGetElement", 15)
def optional_element(op: OpBuilder, _node: ir.Node) -> Replacement:
    """The value that was wrapped."""
    inner = _wrapped(op, op.x()).inputs
    if not inner or inner[0] is None:
        op.refuse("it takes the element of an empty optional")
    return inner[0]


@decomposition("OptionalHasElement", 15)
def optional_is_there(op: OpBuilder, _node: ir.Node) -> Replacement:
    """Write a constant."""
    inner = _wrapped(op, op.x()).inputs
    return op.const(np.array(bool(inner) and inner[0] is not None))


@decomposition("Optional", 15)
def optional_dissolved(op: OpBuilder, _node: ir.Node) -> Replacement:
    """Drop it once nothing reads it."""
    if op.used(0):
        op.after_readers("no optionals existed before opset 15")
    return ()
