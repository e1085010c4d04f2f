"""Shapes that say as much as can be known."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from entrepot.ir.inference import scope_types
from entrepot.ir.opset.extents import is_named


def refine_shapes(model: ir.Model) -> None:
    """State sizes that a capture leaves open, where they follow from those of the inputs, in place.

    A framework may know of an axis that it varies and nothing else. What is stated stays.
    """
    open_ended = [
        value
        for node in ir.traversal.RecursiveGraphIterator(model.graph)
        for value in node.outputs
        if value.shape is not None and not all(_is_known(dim) for dim in value.shape)
    ]
    open_ended += [value for value in model.graph.outputs if value.shape is None]
    stated = {value: value.shape for value in open_ended}
    for value in open_ended:
        value.shape = None
    types = scope_types(model)[model.graph]
    found = {value: types.shape(value) for value in open_ended}
    for value, shape in stated.items():
        value.shape = found[value] if shape is None else _merged(shape, found[value])


def forget_contradicted(model: ir.Model, results: Sequence[Sequence[int]]) -> None:
    """Leave open what is stated of outputs and does not hold for the sample: exporters may follow one arm of a branch.

    How many axes an output has is stated where nothing was; it depends on values where an exporter has another number.

    Args:
        model: Changed in place.
        results: The shapes of the results for the sample.
    """
    for value, result in zip(model.graph.outputs, results, strict=True):
        if value.shape is None:
            value.shape = ir.Shape([None] * len(result))
        elif len(value.shape) != len(result):
            value.shape = None
        else:
            pairs = zip(value.shape, result, strict=True)
            value.shape = ir.Shape([None if isinstance(dim, int) and dim != size else dim for dim, size in pairs])


def _is_known(dim: object) -> bool:
    return isinstance(dim, int) or (isinstance(dim, ir.SymbolicDim) and is_named(dim))


def _merged(stated: ir.Shape | None, found: ir.Shape | None) -> ir.Shape | None:
    if stated is None or found is None or len(stated) != len(found):
        return stated
    return ir.Shape([one if _is_known(one) else other for one, other in zip(stated, found, strict=True)])
