"""In which element types a model computes, which its results need not show."""

from __future__ import annotations

import onnx_ir as ir

from entrepot.ir.inference import scope_types
from entrepot.ir.opset.scopes import Scope, scopes
from entrepot.ir.subgraphs import subgraphs, with_subgraphs
from entrepot.ir.traits import traits_of
from entrepot.ir.typing.query import Types


def computed_types(model: ir.Model) -> set[ir.DataType]:
    """The element types of what is computed from the inputs.

    What is merely moved about does not count, nor what is made of weights alone: everybody rounds those alike.
    """
    types = scope_types(model)
    return {dtype for scope in scopes(model) for dtype in _computed(scope, types[scope])}


def rounded_types(model: ir.Model) -> set[ir.DataType]:
    """The floating-point types of those values behind the results whose last bits depend on who computes them.

    Arithmetic that IEEE 754 prescribes to the last bit is left out, and so is what only decides which values are taken.
    """
    types = scope_types(model)[next(iter(scopes(model)))]
    pending, seen, found = list(model.graph.outputs), set(), set()
    while pending:
        value = pending.pop()
        node, dtype = value.producer(), types.dtype(value)
        if value in seen or node is None or dtype is None or not dtype.is_floating_point():
            continue
        seen.add(value)
        if not traits_of(node).moves and node.op_type not in _PRESCRIBED:
            found.add(dtype)
        pending += [each for each in node.inputs if each is not None]
        pending += [each for graph in subgraphs(node) for body in with_subgraphs(graph) for each in body.outputs]
    return found


_EXACT = "Abs Add Cast Ceil Clip Div Floor Max Min Mul Neg Relu Round Sign Sqrt Sub Where"
_PRESCRIBED = frozenset(_EXACT.split())


def _computed(scope: Scope, types: Types) -> set[ir.DataType]:
    varying = _varying(scope)
    values = (value for node in scope.all_nodes() if not traits_of(node).moves for value in node.outputs)
    return {dtype for value in values if value in varying and (dtype := types.dtype(value)) is not None}


def _varying(scope: Scope) -> set[ir.Value]:
    """What depends on the inputs, or on chance."""
    bodies = (body for node in scope for graph in subgraphs(node) for body in with_subgraphs(graph))
    inputs = [*scope.inputs, *(value for body in bodies for value in body.inputs)]
    found = {value for value in inputs if not value.is_initializer()}
    for node in scope.all_nodes():
        if not traits_of(node).repeats or any(value in found for value in node.inputs):
            found.update(node.outputs)
    return found
