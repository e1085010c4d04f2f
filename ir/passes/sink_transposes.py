from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx_ir as ir

from entrepot.ir.opset.names import Names
from entrepot.ir.passes.channels_first import normalized, projected
from entrepot.ir.passes.graphs import bypass, has_references, replace, typed_graphs, write_constant
from entrepot.ir.passes.sinking import Perm, Sinking, keeps_order, perm_of, ranked, source_of
from entrepot.ir.traits import traits_of

Rule = Callable[[Sinking, Perm], bool]


class SinkTransposes(ir.passes.InPlacePass):
    """Let nodes work on what was transposed, and transpose what they return, until transpositions meet and cancel.

    Before: ``x -> Conv -> Transpose -> Relu -> Transpose -> Conv``. After: ``x -> Conv -> Relu -> Conv``.
    Elementwise operators, Concat, Reduce, Softmax, Pad and Slice change places with a transposition, their axes and
    constants in the other order; a product with a matrix takes a flattened image by a matrix whose rows are in the
    other order. For graphs whose channels come last, where each convolution has a transposition before and after it;
    ``channels_first`` has what else works on channels there.
    What remains and moves axes of size 1 alone becomes a Reshape, which takes the place of one before it.
    Subgraphs and functions are covered. Constants are copied, so it is for graphs that have just been captured.
    """

    def call(self, model: ir.Model) -> ir.passes.PassResult:
        """Change the model in place."""
        names = Names(model)
        sunk = [_sink(Sinking(node, types, names)) for graph, types in typed_graphs(model) for node in list(graph)]
        flat = [_settle(Sinking(node, types, names)) for graph, types in typed_graphs(model) for node in list(graph)]
        return ir.passes.PassResult(model, modified=any(sunk) or any(flat))


def _sink(sinking: Sinking) -> bool:
    """Whether a node changed places with a transposition."""
    node = sinking.node
    if node.domain or has_references(node) or len(node.outputs) != 1 or node.graph is None:
        return False
    perms = [perm for value in node.inputs if (perm := perm_of(value)) is not None]
    if not perms:
        return False
    rule = _RULES.get(node.op_type) or (_elementwise if traits_of(node).elementwise else None)
    return rule is not None and rule(sinking, perms[0])


def _settle(sinking: Sinking) -> bool:
    """Whether it was a transposition that leaves elements in their order, and is a Reshape now."""
    node = sinking.node
    perm, value = perm_of(node.outputs[0]) if node.outputs else None, node.inputs[:1]
    shape = sinking.shape(value[0]) if perm is not None and value else None
    if perm is None or shape is None or not keeps_order(shape, perm):
        return False
    source, before = value[0], value[0].producer() if value[0] is not None else None
    if before is not None and before.op_type == "Reshape" and not before.domain:
        source = before.inputs[0]
    sizes = [shape[axis] if isinstance(shape[axis], int) else -1 for axis in perm]
    replace(node, ir.node("Reshape", [source, sinking.constant(sizes, "shape")]))
    return True


def _compose(sinking: Sinking, inner: Perm) -> bool:
    outer = sinking.node.attributes.get_ints("perm")
    source = source_of(sinking.node.inputs[0])
    if outer is None:
        return False
    perm = tuple(inner[axis] for axis in outer)
    if perm != tuple(range(len(perm))) or not bypass(sinking.node, source):
        replace(sinking.node, ir.node("Transpose", [source], {"perm": list(perm)}))
    return True


def _elementwise(sinking: Sinking, perm: Perm) -> bool:
    values = [value for value in sinking.node.inputs if value is not None]
    turned = [value for value in values if perm_of(value) == perm]
    plain = [value for value in values if perm_of(value) != perm]
    moving = [value for value in plain if not sinking.is_constant(value) and not sinking.is_thin(value, perm)]
    if len(moving) > len(turned) or any(len(sinking.shape(value) or ()) != len(perm) for value in moving):
        return False
    if any(sinking.shape(value) is None or len(sinking.shape(value) or ()) > len(perm) for value in plain):
        return False
    if sinking.types.dtype(sinking.node.outputs[0]) is None:
        return False
    sinking.redo([None if value is None else sinking.untransposed(value, perm) for value in sinking.node.inputs], perm)
    return True


def _concat(sinking: Sinking, perm: Perm) -> bool:
    if any(perm_of(value) != perm for value in sinking.node.inputs):
        return False
    axis = sinking.node.attributes.get_int("axis", 0)
    sinking.redo([source_of(value) for value in sinking.node.inputs], perm, axis=perm[axis])
    return True


def _gather(sinking: Sinking, perm: Perm) -> bool:
    indices = sinking.node.inputs[1]
    if len(sinking.shape(indices) or ()) != 1 or perm_of(sinking.node.inputs[0]) is None:
        return False
    axis = sinking.node.attributes.get_int("axis", 0)
    sinking.redo([source_of(sinking.node.inputs[0]), indices], perm, axis=perm[axis])
    return True


def _softmax(sinking: Sinking, perm: Perm) -> bool:
    sinking.redo([source_of(sinking.node.inputs[0])], perm, axis=perm[sinking.node.attributes.get_int("axis", -1)])
    return True


def _reduce(sinking: Sinking, perm: Perm) -> bool:
    axes = sinking.integers(1)
    if axes is None or not axes:
        return False
    kept = sinking.node.attributes.get_int("keepdims", 1)
    gone = {axis % len(perm) for axis in axes}
    after = perm if kept else ranked([perm[axis] for axis in range(len(perm)) if axis not in gone])
    sinking.redo([source_of(sinking.node.inputs[0]), sinking.constant([perm[axis] for axis in axes], "axes")], after)
    return True


def _pad(sinking: Sinking, perm: Perm) -> bool:
    pads, rank = sinking.integers(1), len(perm)
    if pads is None or len(sinking.node.inputs) > 3 or len(pads) != 2 * rank:
        return False
    moved = [0] * (2 * rank)
    for axis in range(rank):
        moved[perm[axis]], moved[perm[axis] + rank] = pads[axis], pads[axis + rank]
    sinking.redo([source_of(sinking.node.inputs[0]), sinking.constant(moved, "pads"), *sinking.node.inputs[2:]], perm)
    return True


def _slice(sinking: Sinking, perm: Perm) -> bool:
    axes = sinking.integers(3)
    if axes is None or perm_of(sinking.node.inputs[0]) is None:
        return False
    moved = sinking.constant([perm[axis] for axis in axes], "axes")
    sinking.redo([source_of(sinking.node.inputs[0]), *sinking.node.inputs[1:3], moved, *sinking.node.inputs[4:]], perm)
    return True


def _reshape(sinking: Sinking, perm: Perm) -> bool:
    """Where only axes of size 1 moved, elements are in the same order; see ``_flatten`` for other images."""
    given, target = sinking.node.inputs[0], sinking.integers(1)
    if given is None or target is None or 0 in target or not sinking.is_thin(given, perm):
        return _flatten(sinking, perm)
    sinking.node.replace_input_with(0, source_of(given))
    return True


def _flatten(sinking: Sinking, perm: Perm) -> bool:
    """A flattened image that a matrix is multiplied with: the rows of the matrix change their order instead."""
    node, output = sinking.node, sinking.node.outputs[0]
    source = source_of(node.inputs[0])
    shape, flat, uses = sinking.shape(node.inputs[0]), sinking.shape(output), list(output.uses())
    if shape is None or flat is None or len(flat) != 2 or perm[0] != 0 or len(uses) != 1:
        return False
    sizes = [size for size in shape[1:] if isinstance(size, int)]
    product = uses[0].node
    matrix = product.inputs[1] if product.op_type == "MatMul" and uses[0].idx == 0 else None
    array = _matrix(sinking, matrix)
    known = len(sizes) == len(perm) - 1 and array is not None and array.ndim == 2
    if output.is_graph_output() or not known or array is None or len(array) != int(np.prod(sizes)):
        return False
    order = [axis - 1 for axis in perm[1:]]
    rows = array.reshape([*sizes, -1]).transpose([*np.argsort(order).tolist(), len(order)])
    _store(sinking, product, matrix, rows.reshape(array.shape))
    node.replace_input_with(0, source)
    return True


def _matrix(sinking: Sinking, value: ir.Value | None) -> np.ndarray | None:
    """The elements of a constant, however large."""
    if value is not None and value.is_initializer() and not value.is_graph_input():
        return None if value.const_value is None else value.const_value.numpy()
    return sinking.types.known.array(value)


def _store(sinking: Sinking, product: ir.Node, matrix: ir.Value | None, array: np.ndarray) -> None:
    """A matrix in place of another: under its name, where nothing else reads that."""
    assert matrix is not None
    if matrix.is_initializer() and len(matrix.uses()) == 1 and matrix.const_value is not None:
        matrix.const_value = ir.tensor(array, name=matrix.name)
        return
    product.replace_input_with(1, write_constant(product, array, "rows", sinking.names))


_REDUCTIONS = ("Max", "Min", "Mean", "Sum", "Prod", "L1", "L2", "LogSum", "LogSumExp", "SumSquare")
_RULES: dict[str, Rule] = {
    "Transpose": _compose,
    "Concat": _concat,
    "Gather": _gather,
    "Identity": _elementwise,
    "Softmax": _softmax,
    "LogSoftmax": _softmax,
    "Pad": _pad,
    "Slice": _slice,
    "Reshape": _reshape,
    "LayerNormalization": normalized,
    "MatMul": projected,
    **{f"Reduce{name}": _reduce for name in _REDUCTIONS},
}
