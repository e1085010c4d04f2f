"""Captures that differ only in constants as one graph that computes those constants from sizes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import onnx_ir

from entrepot.exporters.axes.groups import Group
from entrepot.exporters.paths.expression import Expression
from entrepot.exporters.paths.fitting import fitted
from entrepot.exporters.paths.outline import array_of, outline
from entrepot.exporters.paths.path import Path
from entrepot.exporters.paths.writing import Writer, computed
from entrepot.ir.copying import copy_graphs

_MOST_NUMBERS = 64  # in one constant: shapes, pads and the like


def merged(paths: Sequence[Path], groups: Sequence[Group]) -> Path | None:
    """One path in place of several; ``None`` if they differ in more than constants that are formulas of the sizes."""
    outlines = [outline(path.graph.graph, path.weights) for path in paths]
    if not all(outlines[0].same(other) for other in outlines[1:]):
        return None
    known = known_formulas(paths)
    replaced: dict[int, list[Expression | float]] = {}
    for at in range(len(outlines[0].constants)):
        found = _differing([each.constants[at].value for each in outlines], paths, known)
        if found is None:
            return None
        if found:
            replaced[at] = found
    graph = _rewritten(paths[0], replaced, groups)
    forget_shapes(graph, [path.graph for path in paths], paths, groups)
    return Path(graph, paths[0].sizes, common_conditions(paths), paths[0].weights, paths[0].numbers)


def same_nodes(paths: Sequence[Path]) -> bool:
    """Whether captures differ only in constants."""
    first, *others = (outline(path.graph.graph, path.weights) for path in paths)
    return all(first.same(other) for other in others)


def symbolic_inputs(graph: onnx_ir.Model, groups: Sequence[Group]) -> None:
    """Give the axes of the inputs the symbols of the groups."""
    for group in groups:
        for index, axis in group.axes:
            value = graph.graph.inputs[index]
            dims = list(value.shape or ())
            dims[axis] = onnx_ir.SymbolicDim(group.symbol)
            value.shape = onnx_ir.Shape(dims)


def known_formulas(paths: Sequence[Path]) -> list[Expression]:
    """Formulas that a capture took for constants, and what tells apart where a condition holds and where not."""
    known = [found[0] for condition in paths[0].conditions if (found := condition.specialised())]
    asked = dict.fromkeys(condition for path in paths for condition in path.conditions)
    telling = [each for each in asked if len({bool(each(path.sizes)) for path in paths}) > 1]
    return list(dict.fromkeys([*known, *(formula for condition in telling for formula in condition.numbers())]))


def common_conditions(paths: Sequence[Path]) -> list[Expression]:
    """What all rely on; a formula that is one number in one capture and another in the next is computed now.

    What a capture relies on because it fixed a size says nothing of other sizes, nor does what another does without.
    """
    numbers: dict[str, set[float]] = {}
    for path in paths:
        for condition in path.conditions:
            if found := condition.specialised():
                numbers.setdefault(found[0].text, set()).add(found[1])
    varying = {text for text, found in numbers.items() if len(found) > 1}
    conditions: dict[Expression, None] = {}
    for path in paths:
        known = path.fixed & varying
        conditions |= dict.fromkeys(each for each in path.conditions if not each.names or not each.names <= known)
    shared = [each for each in conditions if not any(each(path.sizes) is False for path in paths)]
    return [each for each in shared if (found := each.specialised()) is None or found[0].text not in varying]


def _differing(
    values: Sequence[onnx_ir.Value], paths: Sequence[Path], known: Sequence[Expression]
) -> list[Expression | float] | None:
    """The elements of a constant as formulas; empty where all captures have the same; ``None`` if there are none."""
    arrays = [array_of(value) for value in values]
    first = arrays[0]
    if first is None or any(each is None or each.dtype != first.dtype for each in arrays):
        return None
    if all(np.array_equal(each, first, equal_nan=first.dtype.kind == "f") for each in arrays if each is not None):
        return []
    if (
        first.size > _MOST_NUMBERS
        or first.dtype.kind not in "iuf"
        or any(each is None or each.shape != first.shape for each in arrays)
    ):
        return None
    columns = zip(*(np.ravel(each).tolist() for each in arrays if each is not None), strict=True)
    sizes = [path.sizes for path in paths]
    found = [fitted(numbers, sizes, known) for numbers in columns]
    return None if any(each is None for each in found) else [each for each in found if each is not None]


def _rewritten(path: Path, replaced: Mapping[int, list[Expression | float]], groups: Sequence[Group]) -> onnx_ir.Model:
    graph = copy_graphs(path.graph)
    symbolic_inputs(graph, groups)
    constants = outline(graph.graph, path.weights).constants
    writer = Writer(graph.graph, {group.symbol: where(graph, group) for group in groups if group.formula is None})
    made: dict[tuple[onnx_ir.Value, str], onnx_ir.Value] = {}
    for at, parts in replaced.items():
        value = constants[at].value
        key = value, str(parts)
        made[key] = made[key] if key in made else computed(writer, value, parts)
        constants[at].replace(made[key])
    writer.place()
    return graph


def where(graph: onnx_ir.Model, group: Group) -> tuple[onnx_ir.Value, int]:
    """An input and an axis of it that has the size of a group."""
    index, axis = min(group.axes)
    return graph.graph.inputs[index], axis


def forget_shapes(
    graph: onnx_ir.Model, originals: Sequence[onnx_ir.Model], paths: Sequence[Path], groups: Sequence[Group]
) -> None:
    """Shapes inside are those of one capture; results keep what is the same in all, or a formula."""
    for node in onnx_ir.traversal.RecursiveGraphIterator(graph.graph):
        for value in node.outputs:
            value.shape = None
    for at, value in enumerate(graph.graph.outputs):
        shapes = [each.graph.outputs[at].shape for each in originals]
        if all(shape is not None for shape in shapes):
            value.shape = onnx_ir.Shape(
                [_dim(dims, paths) for dims in zip(*(shape or () for shape in shapes), strict=True)]
            )


def _dim(dims: Sequence[int | onnx_ir.SymbolicDim], paths: Sequence[Path]) -> int | str | None:
    if all(isinstance(dim, int) for dim in dims):
        found = fitted([int(str(dim)) for dim in dims], [path.sizes for path in paths])
        return found if isinstance(found, int) else None if found is None else str(found)
    texts = {str(dim) if isinstance(dim, int) else dim.value for dim in dims}
    return texts.pop() if len(texts) == 1 else None
