from __future__ import annotations

import numpy as np
import onnx_ir as ir

from entrepot.ir.opset.builder import EXACTLY_WIDER
from entrepot.ir.opset.names import Names
from entrepot.ir.passes.dims import as_constant, extents_of, is_checked, same_shape
from entrepot.ir.passes.graphs import bypass, has_references, may_write_constants, replace, typed_graphs, write_constant
from entrepot.ir.typing.query import Types
from entrepot.ir.typing.schema import cast_target

_REGROUPING = frozenset({"Reshape", "Squeeze", "Unsqueeze", "Flatten"})


class JoinMoves(ir.passes.InPlacePass):
    """Make one node of two that only move, regroup or convert elements, where the first is read by the second alone.

    Before: ``x -> Unsqueeze -> Reshape -> y``. After: ``x -> Reshape -> y``, or ``x`` where the shape is that of ``x``.
    To take the only element along an axis is to remove the axis.
    Transposes are composed. A Cast is bypassed only where the type it converts to holds every value of the type it
    converts from, and nothing is written as text. Subgraphs and functions are covered.
    """

    def call(self, model: ir.Model) -> ir.passes.PassResult:
        """Change the model in place."""
        names = Names(model)
        joined = [_join(node, types, names) for graph, types in typed_graphs(model) for node in list(graph)]
        return ir.passes.PassResult(model, modified=any(joined))


def _join(node: ir.Node, types: Types, names: Names) -> bool:
    first = node.inputs[0].producer() if node.inputs and node.inputs[0] is not None else None
    if first is None or node.domain or first.domain or not first.inputs or first.inputs[0] is None:
        return False
    if has_references(node) or has_references(first) or not node.outputs[0].name:
        return False
    if _regroups(node, types) and _regroups(first, types):
        return _regroup(node, first, types, names)
    if not _is_read_once(first.outputs[0]):
        return False
    if node.op_type == first.op_type == "Transpose":
        return _compose(node, first, types)
    return node.op_type == first.op_type == "Cast" and _cast_once(node, first, types)


def _regroups(node: ir.Node, types: Types) -> bool:
    """Whether all elements stay, in order; also where one is taken from an axis that has no other."""
    if node.op_type != "Gather":
        return node.op_type in _REGROUPING
    index, shape = types.known.array(node.inputs[1]), types.shape(node.inputs[0])
    if index is None or index.shape or int(index) not in (0, -1) or shape is None:
        return False  # another place is an error when the model runs, and stays one
    return shape[node.attributes.get_int("axis", 0)] == 1


def _is_read_once(value: ir.Value) -> bool:
    return len(value.uses()) == 1 and not value.is_graph_output()


def _regroup(node: ir.Node, first: ir.Node, types: Types, names: Names) -> bool:
    data, output = first.inputs[0], node.outputs[0]
    if data is None or any(is_checked(value, types) for value in (*node.inputs[1:], *first.inputs[1:])):
        return False
    if same_shape(types.shape(data), types.shape(output)):
        return bypass(node, data)
    sizes = extents_of(output, node.inputs[1] if node.op_type == "Reshape" and len(node.inputs) > 1 else None, types)
    constant = None if sizes is None else as_constant(data, sizes, types)
    if constant is None or not _is_read_once(first.outputs[0]) or not may_write_constants(types):
        return False
    shape = write_constant(node, np.array(constant, np.int64), "shape", names)
    replace(node, ir.node("Reshape", [data, shape]))
    return True


def _compose(node: ir.Node, first: ir.Node, types: Types) -> bool:
    inner, outer = (_perm(each, types) for each in (first, node))
    if inner is None or outer is None or len(inner) != len(outer):
        return False
    node.attributes["perm"] = ir.AttrInt64s("perm", [inner[axis] for axis in outer])
    node.replace_input_with(0, first.inputs[0])
    return True


def _perm(node: ir.Node, types: Types) -> list[int] | None:
    """Where each axis comes from; by default they are reversed."""
    perm = node.attributes.get_ints("perm")
    if perm is not None:
        return list(perm)
    shape = types.shape(node.inputs[0])
    return None if shape is None else list(reversed(range(len(shape))))


def _cast_once(node: ir.Node, first: ir.Node, types: Types) -> bool:
    given = types.type(first.inputs[0])
    between, target = (cast_target(each.attributes["to"]) for each in (first, node))
    if not isinstance(given, ir.TensorType) or between is None or target is None:
        return False
    if not _holds(between.dtype.name, given.dtype.name) or not _is_plain(given.dtype, target.dtype):
        return False
    node.replace_input_with(0, first.inputs[0])
    return True


def _is_plain(given: ir.DataType, target: ir.DataType) -> bool:
    """Whether every runtime casts from one to the other with a single rounding, from whatever is in between."""
    if target == ir.DataType.FLOAT16:
        return given == ir.DataType.FLOAT
    return target.name in ("BOOL", "FLOAT", "DOUBLE") or (target.is_integer() and target.bitwidth >= 8)


def _holds(wide: str, narrow: str) -> bool:
    """Whether a type has every value of another."""
    return wide == narrow or any(_holds(wide, step) for step in EXACTLY_WIDER.get(narrow, ()))
