from __future__ import annotations

from collections.abc import Callable, Collection

import numpy as np
import onnx_ir as ir

from entrepot.ir.passes.dims import keeps_shape, same_shape
from entrepot.ir.passes.graphs import bypass, has_references, typed_graphs
from entrepot.ir.passes.zeros import shows_sign
from entrepot.ir.typing.query import Types
from entrepot.ir.typing.schema import cast_target

_WHOLE = (1 << 31) - 1
"""The end of a slice that takes everything there is, however long the axis."""


class DropIdle(ir.passes.InPlacePass):
    """Bypass nodes that pass their input on unchanged.

    Before: ``x -> Identity -> y -> Relu``. After: ``x -> Relu``.
    Identity, Dropout outside training, a Cast to the type it has already, a Transpose that moves nothing, a Reshape,
    Squeeze, Unsqueeze, Flatten, Expand or Tile to the shape it has already, a Slice of everything, a Pad by nothing, a
    Split into one, a product with 1 and the like, and a Concat, Sum, Mean, Max or Min of one value. A graph output
    keeps its name: the node before computes it instead, or the node stays. Subgraphs and functions are covered.

    Args:
        weights: Names of initializers that are weights, even if they happen to be 1 or 0.
    """

    def __init__(self, weights: Collection[str] = ()) -> None:
        super().__init__()
        self._weights = weights

    def call(self, model: ir.Model) -> ir.passes.PassResult:
        """Change the model in place."""
        dropped = [
            _drop(node, types, self._weights, model.graph)
            for graph, types in typed_graphs(model)
            for node in list(graph)
        ]
        return ir.passes.PassResult(model, modified=any(dropped))


def _drop(node: ir.Node, types: Types, weights: Collection[str], top: ir.Graph) -> bool:
    if node.domain or has_references(node) or not node.outputs[0].name:
        return False
    if any(output.uses() or output.is_graph_output() for output in node.outputs[1:]):
        return False
    value = _passed_on(node, types, weights, top)
    return value is not None and bypass(node, value)


def _passed_on(node: ir.Node, types: Types, weights: Collection[str], top: ir.Graph) -> ir.Value | None:
    """The input that the first output is equal to."""
    if node.op_type in _NEUTRAL:
        number, places = _NEUTRAL[node.op_type]
        others = [_without(node, place, number, types, top) for place in places if not _is_weight(node, place, weights)]
        return next((other for other in others if other is not None), None)
    test = _IDLE.get(node.op_type)
    return node.inputs[0] if test is not None and node.inputs and test(node, types) else None


def _is_idle_dropout(node: ir.Node, types: Types) -> bool:
    if types.opsets.get("", 0) < 7:  # old versions trained unless told otherwise
        return node.attributes.get_int("is_test", 0) == 1
    mode = node.inputs[2] if len(node.inputs) > 2 else None
    known = types.known.array(mode)
    return mode is None or (known is not None and not known.any())


def _is_idle_cast(node: ir.Node, types: Types) -> bool:
    target = cast_target(node.attributes["to"])
    return target is not None and types.type(node.inputs[0]) == target


def _moves_nothing(node: ir.Node, types: Types) -> bool:
    perm = node.attributes.get_ints("perm")
    if perm is None:
        shape = types.shape(node.inputs[0])
        return shape is not None and len(shape) < 2
    return list(perm) == list(range(len(perm)))


def _takes_everything(node: ir.Node, types: Types) -> bool:
    if len(node.inputs) < 3:
        return False
    starts, ends = (types.known.array(value) for value in node.inputs[1:3])
    steps = types.known.array(node.inputs[4]) if len(node.inputs) > 4 else None
    if len(node.inputs) > 4 and (steps is None or (steps != 1).any()):
        return False
    if same_shape(types.shape(node.inputs[0]), types.shape(node.outputs[0])):
        return True  # wherever it starts: ``x[:, -n:]`` of n
    return starts is not None and not starts.any() and ends is not None and bool((ends >= _WHOLE).all())


def _pads_nothing(node: ir.Node, types: Types) -> bool:
    pads = types.known.array(node.inputs[1]) if len(node.inputs) > 1 else node.attributes.get_ints("pads")
    return pads is not None and not np.any(pads)


def _is_weight(node: ir.Node, place: int, weights: Collection[str]) -> bool:
    value = node.inputs[place]
    return value is not None and value.is_initializer() and value.name in weights


def _without(node: ir.Node, place: int, number: int, types: Types, top: ir.Graph) -> ir.Value | None:
    """The other input of a node of two, if the one at ``place`` changes nothing."""
    value, other = node.inputs[place], node.inputs[1 - place]
    known = types.known.array(value)
    if value is None or other is None or known is None or known.size != 1 or known.item() != number:
        return None
    if not same_shape(types.shape(other), types.shape(node.outputs[0])):
        return None
    if number or known.dtype.kind in "iu" or _sums_up(other) or not shows_sign(node.outputs[0], top):
        return other
    return None  # -0.0 + 0.0 is 0.0


def _sums_up(value: ir.Value) -> bool:
    """Whether a value is a sum of products: the sign of a zero there depends on their order, which nobody promises."""
    node = value.producer()
    return node is not None and not node.domain and node.op_type in ("Conv", "ConvTranspose", "Gemm", "MatMul")


_NEUTRAL: dict[str, tuple[int, tuple[int, ...]]] = {
    "Mul": (1, (1, 0)),
    "Div": (1, (1,)),
    "Add": (0, (1, 0)),
    "Sub": (0, (1,)),
}
"""The number that changes nothing, and the inputs that may be it."""

_IDLE: dict[str, Callable[[ir.Node, Types], bool]] = {
    "Identity": lambda _node, _types: True,
    "Dropout": _is_idle_dropout,
    "Cast": _is_idle_cast,
    "Transpose": _moves_nothing,
    "Slice": _takes_everything,
    "Pad": _pads_nothing,
    "Split": lambda node, _types: len(node.outputs) == 1,
    **dict.fromkeys(("Reshape", "Squeeze", "Unsqueeze", "Flatten", "Expand", "Tile"), keeps_shape),
    **dict.fromkeys(("Concat", "Sum", "Mean", "Max", "Min"), lambda node, _types: len(node.inputs) == 1),
}
