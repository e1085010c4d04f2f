"""How types and shapes enter and leave the bodies that nodes carry."""

from __future__ import annotations

from collections.abc import Callable

import onnx_ir as ir

from entrepot.ir.opset.spec import Spec
from entrepot.ir.subgraphs import subgraphs

LOST = -1 << 31
"""Stands for "the shape may change" where an axis is asked for."""


def scan_axes(node: ir.Node, body: ir.Graph) -> dict[ir.Value, int | None]:
    """Input of a Scan's body to the axis it was scanned along; ``None`` for what is carried. Scan 8 is left out."""
    if "num_scan_inputs" not in node.attributes or len(node.inputs) != len(body.inputs):
        return {}
    count = node.attributes["num_scan_inputs"].as_int()
    axes = node.attributes["scan_input_axes"].as_ints() if "scan_input_axes" in node.attributes else [0] * count
    split = len(body.inputs) - count
    return {**dict.fromkeys(body.inputs[:split]), **dict(zip(body.inputs[split:], axes, strict=False))}


def without_axis(shape: ir.Shape | None, axis: int | None) -> ir.Shape | None:
    """The shape of a body's input, from that of the value given for it and the axis scanned along."""
    if shape is None or axis is None or axis == LOST or not len(shape):
        return shape if axis is None else None
    dims = list(shape)
    del dims[axis]
    return ir.Shape(dims)


def member(formal: ir.Value, given: ir.TypeProtocol | None) -> Spec:
    """What a SequenceMap's body is given: a member of a sequence, or a tensor as it is."""
    kind = given.elem_type if isinstance(given, ir.SequenceType) else given
    return Spec(formal.type or kind, formal.shape)


def branches(node: ir.Node, condition: bool | None, spec_of: Callable[[ir.Value], Spec]) -> dict[str, Spec]:
    """The outputs of an If, by name: what its branches agree on, or the branch that a known condition chooses."""
    outputs: dict[str, Spec] = {}
    graphs = list(subgraphs(node))
    if condition is not None:
        graphs = [node.attributes["then_branch" if condition else "else_branch"].as_graph()] * 2
    for index, output in enumerate(node.outputs):
        a, b = (spec_of(body.outputs[index]) for body in graphs)
        outputs[output.name or ""] = Spec(a.type or b.type, a.shape if a.shape == b.shape else None)
    return outputs


def repeated(node: ir.Node, spec_of: Callable[[ir.Value], Spec]) -> dict[str, Spec]:
    """The outputs of a Loop, Scan or SequenceMap, by name; nothing for operators of other domains."""
    if node.domain or node.op_type not in ("Loop", "Scan", "SequenceMap"):
        return {}
    body = next(subgraphs(node))
    if node.op_type == "SequenceMap":
        members = [spec_of(result).type for result in body.outputs]
        types = [None if kind is None else ir.SequenceType(kind) for kind in members]
        return {output.name or "": Spec(kind, None) for output, kind in zip(node.outputs, types, strict=False)}
    results = body.outputs[1:] if node.op_type == "Loop" else body.outputs
    skipped = 2 if node.op_type == "Loop" else 0
    carried = len(node.inputs) - (2 if node.op_type == "Loop" else node.attributes["num_scan_inputs"].as_int())
    aligned = len(node.inputs) == len(body.inputs)  # Scan 8 has an input that its body does not see
    shapes: list[ir.Shape | None] = []
    for index, result in enumerate(results):
        shape = spec_of(result).shape
        given = node.inputs[skipped + index] if aligned and index < carried else None
        shapes.append(
            _collected(node, index - carried, shape) if given is None else _either(spec_of(given).shape, shape)
        )
    return {
        output.name or "": Spec(spec_of(result).type, shape)
        for output, result, shape in zip(node.outputs, results, shapes, strict=False)
    }


def _either(before: ir.Shape | None, after: ir.Shape | None) -> ir.Shape | None:
    """The shape of what a Loop or Scan carries: as it was given if nothing is repeated, else as the body makes it."""
    if before is None or after is None or len(before) != len(after):
        return None
    return ir.Shape([a if a == b else None for a, b in zip(before, after, strict=True)])


def _collected(node: ir.Node, place: int, shape: ir.Shape | None) -> ir.Shape | None:
    """The shape of a Loop's or Scan's output that collects results of this shape."""
    if place < 0 or shape is None:
        return None
    axes = node.attributes["scan_output_axes"].as_ints() if "scan_output_axes" in node.attributes else ()
    axis = axes[place] if place < len(axes) else 0
    dims: list[int | ir.SymbolicDim | None] = list(shape)
    dims.insert(axis if axis >= 0 else axis + len(dims) + 1, None)
    return ir.Shape(dims)
