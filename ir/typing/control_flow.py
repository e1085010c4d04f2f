"""The rules of control flow, asked for a node of a graph."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import onnx_ir as ir

from entrepot.ir.subgraphs import subgraphs
from entrepot.ir.typing.bodies import Dims, Scanned, agreed, repeated, without_axis
from entrepot.ir.typing.spec import Spec

_SCANNING = ("num_scan_inputs", "scan_input_axes", "scan_output_axes")


def scanned(node: ir.Node) -> Scanned:
    """What a Scan goes over."""
    return Scanned.of({name: attr.value for name, attr in node.attributes.items() if name in _SCANNING})


def member(given: ir.TypeProtocol | None) -> ir.TypeProtocol | None:
    """What a SequenceMap's body is given: a member of a sequence, or a tensor as it is."""
    return given.elem_type if isinstance(given, ir.SequenceType) else given


def shape_without(shape: ir.Shape | None, axis: int | None) -> ir.Shape | None:
    """``without_axis`` for the shape of a value."""
    return _shape(without_axis(_dims(shape), axis))


def outputs_of(node: ir.Node, condition: bool | None, spec_of: Callable[[ir.Value | None], Spec]) -> Sequence[Spec]:
    """The outputs of a node that carries graphs, in order; nothing where the standard has no rule for it.

    Args:
        node: The node.
        condition: That of an If, if it is known: then its outputs are those of the branch taken.
        spec_of: Gives what is known of a value.
    """
    if node.domain:
        return ()
    if node.op_type == "If":
        return _branches(node, condition, spec_of)
    body = next(subgraphs(node))
    results = [spec_of(output) for output in body.outputs]
    if node.op_type == "SequenceMap":
        return [Spec(None if kind is None else ir.SequenceType(kind), None) for kind, _ in results]
    if node.op_type not in ("Loop", "Scan"):
        return ()
    results = results[1:] if node.op_type == "Loop" else results
    given = [_dims(spec_of(value).shape) for value in node.inputs]
    shapes = repeated(node.op_type, given, [_dims(spec.shape) for spec in results], len(body.inputs), scanned(node))
    return [Spec(spec.type, _shape(dims)) for spec, dims in zip(results, shapes, strict=True)]


def _branches(node: ir.Node, condition: bool | None, spec_of: Callable[[ir.Value | None], Spec]) -> list[Spec]:
    names = ("then_branch", "else_branch") if condition is None else (_TAKEN[condition],)
    made = [[spec_of(output) for output in node.attributes[name].as_graph().outputs] for name in names]
    return [_agreed(specs) for specs in zip(*made, strict=False)]


_TAKEN = {True: "then_branch", False: "else_branch"}


def _agreed(specs: Sequence[Spec]) -> Spec:
    kind = next((spec.type for spec in specs if spec.type is not None), None)
    return Spec(kind, _shape(agreed([_dims(spec.shape) for spec in specs])))


def _dims(shape: ir.Shape | None) -> Dims | None:
    return None if shape is None else tuple(shape)


def _shape(dims: Dims | None) -> ir.Shape | None:
    return None if dims is None else ir.Shape(dims)
