"""Shapes that say as much as can be known."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from entrepot.ir.inference import scope_types
from entrepot.ir.opset.extents import Axis, Extent, Extents, is_named
from entrepot.ir.typing.query import Types
from entrepot.ir.typing.spec import Spec


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
    extents = Extents(types.known, types)
    found = {value: _computed(value, types, extents) for value in open_ended}
    for value, shape in stated.items():
        value.shape = found[value] if shape is None else _merged(shape, found[value])


def _computed(value: ir.Value, types: Types, extents: Extents) -> ir.Shape | None:
    """The shape of a value, which for what is reshaped is that of its parts: ``Concat(Shape(x)[0:1], [4])``."""
    node, shape = value.producer(), types.shape(value)
    if node is None or node.op_type != "Reshape" or shape is None or all(_is_known(dim) for dim in shape):
        return shape
    target = node.inputs[1] if len(node.inputs) > 1 and not node.domain else None
    sizes = None if target is None else extents.of(target)
    if sizes is None or len(sizes) != len(shape):
        return shape
    shape = ir.Shape([_size_of(dim, size, types) for dim, size in zip(shape, sizes, strict=True)])
    types.remember(value, Spec(types.type(value), shape))
    return shape


def _size_of(dim: int | ir.SymbolicDim, size: Extent, types: Types) -> int | ir.SymbolicDim:
    """One size of a result: as it was inferred, or as the axis is called whose extent it is."""
    if isinstance(size, int) and size > 0:
        return size
    if _is_known(dim) or not isinstance(size, Axis):
        return dim
    shape = types.shape(size.value)
    return dim if shape is None else shape[size.axis]


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
