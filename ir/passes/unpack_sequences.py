from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from entrepot.ir.opset.names import Names
from entrepot.ir.passes.graphs import has_references, typed_graphs, write_constant
from entrepot.ir.typing.query import Types

_SIZES_ARE_AN_INPUT = 13
"""Before this opset a Split has its sizes as an attribute."""


class UnpackSequences(ir.passes.InPlacePass):
    """Compute parts of a tensor as values of their own where a sequence is taken apart at known places.

    Before: ``SequenceAt(SplitToSequence(x, 2), 1)`` with four rows. After: the second of ``Split(x, [2, 2])``.
    Before: ``SequenceAt(SplitToSequence(x, sizes), 1)`` with two sizes. After: the second of ``Split(x, sizes)``.
    Before: ``SequenceAt(SequenceConstruct(x, y), 1)``. After: ``y``. Subgraphs and functions are covered.
    """

    def call(self, model: ir.Model) -> ir.passes.PassResult:
        """Change the model in place."""
        names = Names(model)
        unpacked = [
            _UNPACK[node.op_type](node, types, names)
            for graph, types in typed_graphs(model)
            if types.opsets.get("", 0) >= _SIZES_ARE_AN_INPUT
            for node in list(graph)
            if node.op_type in _UNPACK and not node.domain and not has_references(node)
        ]
        return ir.passes.PassResult(model, modified=any(unpacked))


def _unpack_split(node: ir.Node, types: Types, names: Names) -> bool:
    sizes = _sizes(node, types)
    length = _length_of_list(node, types) if sizes is None else len(sizes)
    places = _places(node, types, length)
    if not places:
        return False
    axis = node.attributes.get_int("axis", 0)
    given = node.inputs[1] if sizes is None else write_constant(node, np.array(sizes, np.int64), "sizes", names)
    split = ir.node("Split", [node.inputs[0], given], {"axis": axis}, num_outputs=length)
    _put_before(node, split, names)
    parts: Sequence[ir.Value] = split.outputs
    if len(node.inputs) < 2 and not node.attributes.get_int("keepdims", 1):
        parts = [_squeezed(node, part, axis, names) for part in parts]
    _bypass(places, parts)
    return True


def _unpack_construct(node: ir.Node, types: Types, _names: Names) -> bool:
    parts = [value for value in node.inputs if value is not None]
    places = _places(node, types, len(parts))
    if places:
        _bypass(places, parts)
    return bool(places)


_UNPACK = {"SplitToSequence": _unpack_split, "SequenceConstruct": _unpack_construct}


def _places(node: ir.Node, types: Types, length: int) -> dict[ir.Node, int]:
    """What reads the sequence, and which of its elements; nothing unless all of that is known."""
    places = {}
    for user in (use.node for use in node.outputs[0].uses()):
        known = types.known.array(user.inputs[1]) if user.op_type == "SequenceAt" and not user.domain else None
        if known is None or not -length <= known.item() < length or user.outputs[0].is_graph_output():
            return {}
        places[user] = int(known.item()) % length
    return {} if node.outputs[0].is_graph_output() else places


def _length_of_list(node: ir.Node, types: Types) -> int:
    """How many sizes are given, whatever they are; zero if that is not known."""
    listed = types.shape(node.inputs[1]) if len(node.inputs) > 1 else None
    return listed[0] if listed is not None and len(listed) == 1 and isinstance(listed[0], int) else 0


def _sizes(node: ir.Node, types: Types) -> list[int] | None:
    """How long the parts are; ``None`` if that depends on the run."""
    given = types.known.array(node.inputs[1]) if len(node.inputs) > 1 else np.array(1)
    if given is None or given.ndim:
        return None if given is None else [int(size) for size in given]
    shape, axis, step = types.shape(node.inputs[0]), node.attributes.get_int("axis", 0), int(given)
    whole = None if shape is None or not -len(shape) <= axis < len(shape) else shape[axis]
    if not isinstance(whole, int) or step < 1:
        return None
    return [min(step, whole - step * index) for index in range(math.ceil(whole / step))]


def _squeezed(node: ir.Node, part: ir.Value, axis: int, names: Names) -> ir.Value:
    squeeze = ir.node("Squeeze", [part, write_constant(node, np.array([axis], np.int64), "axis", names)])
    _put_before(node, squeeze, names)
    return squeeze.outputs[0]


def _put_before(node: ir.Node, new: ir.Node, names: Names) -> None:
    for value in new.outputs:
        value.name = names.fresh(f"{node.outputs[0].name}_part")
    new.name = names.fresh(node.name or new.op_type)
    new.metadata_props.update(node.metadata_props)
    assert node.graph is not None
    node.graph.insert_before(node, new)


def _bypass(places: dict[ir.Node, int], parts: Sequence[ir.Value]) -> None:
    for user, place in places.items():
        user.outputs[0].replace_all_uses_with(parts[place])
        assert user.graph is not None
        user.graph.remove(user, safe=True)
