from __future__ import annotations

import onnx_ir as ir

from entrepot.ir.passes.graphs import has_references, typed_graphs
from entrepot.ir.typing.query import Types


class AbsorbPadding(ir.passes.InPlacePass):
    """Let a convolution pad its input itself.

    Before: ``Conv(Pad(x, [0, 0, 1, 0, 0, 0]), w)``. After: ``Conv<pads = [1, 0]>(x, w)``.
    Only zeros, in known numbers, on the axes that the kernel moves along, and where nothing else reads the padded
    value. Subgraphs and functions are covered.
    """

    def call(self, model: ir.Model) -> ir.passes.PassResult:
        """Change the model in place."""
        absorbed = [
            _absorb(node, types)
            for graph, types in typed_graphs(model)
            for node in list(graph)
            if node.op_type == "Conv" and not node.domain
        ]
        return ir.passes.PassResult(model, modified=any(absorbed))


def _absorb(conv: ir.Node, types: Types) -> bool:
    padded = conv.inputs[0]
    pad = None if padded is None else padded.producer()
    if padded is None or pad is None or pad.op_type != "Pad" or pad.domain or pad.graph is not conv.graph:
        return False
    if len(padded.uses()) > 1 or padded.is_graph_output() or has_references(pad) or has_references(conv):
        return False
    if conv.attributes.get_string("auto_pad", "NOTSET") != "NOTSET" or not _pads_zeros(pad, types):
        return False
    added = _added(pad, types)
    if added is None:
        return False
    pads = conv.attributes.get_ints("pads", (0,) * len(added))
    conv.attributes["pads"] = ir.AttrInt64s("pads", [a + b for a, b in zip(pads, added, strict=True)])
    conv.replace_input_with(0, pad.inputs[0])
    return True


def _pads_zeros(pad: ir.Node, types: Types) -> bool:
    if pad.attributes.get_string("mode", "constant") != "constant":
        return False
    if len(pad.inputs) < 3 or pad.inputs[2] is None:
        return pad.attributes.get_float("value", 0.0) == 0
    known = types.known.array(pad.inputs[2])
    return known is not None and known.dtype.kind == "f" and not known.any()


def _added(pad: ir.Node, types: Types) -> list[int] | None:
    """What is added before and after each axis of the kernel; ``None`` if unknown, negative, or on other axes."""
    known = types.known.array(pad.inputs[1]) if len(pad.inputs) > 1 else pad.attributes.get_ints("pads")
    shape = types.shape(pad.inputs[0])
    if known is None or shape is None:
        return None
    rank, numbers = len(shape), [int(number) for number in known]
    axes = list(range(rank))
    if len(pad.inputs) > 3 and pad.inputs[3] is not None:
        chosen = types.known.array(pad.inputs[3])
        if chosen is None:
            return None
        axes = [int(axis) % rank for axis in chosen]
    before, after = [0] * rank, [0] * rank
    for axis, first, last in zip(axes, numbers[: len(axes)], numbers[len(axes) :], strict=True):
        before[axis], after[axis] = first, last
    found = [*before[2:], *after[2:]]
    return None if min(numbers, default=0) < 0 or any(before[:2] + after[:2]) else found
