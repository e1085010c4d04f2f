from __future__ import annotations

import numpy as np
import onnx_ir as ir

from entrepot.ir.opset.names import Names
from entrepot.ir.passes.graphs import has_references, typed_graphs, write_constant
from entrepot.ir.passes.ranges import size_of
from entrepot.ir.typing.query import Types

_INPUTS = 13
"""The opset from which Slice, Split and Unsqueeze take what they do as inputs."""


class SplitColumns(ir.passes.InPlacePass):
    """Take elements at every distance from the last axis with one node, where they become columns of a matrix.

    Before: ``Unsqueeze(Slice(x, [0], [8], [1], [2]), [-1])`` and the same from 1, of a matrix of 8 columns. After:
    ``Split<axis = 2>(Reshape(x, [0, 4, 2]), [1, 1])``. Rotary embeddings take their pairs so, which onnxruntime (1.31)
    does in less than half of the time. Subgraphs and functions are covered.
    """

    def call(self, model: ir.Model) -> ir.passes.PassResult:
        """Change the model in place."""
        names, modified = Names(model), False
        for graph, types in typed_graphs(model):
            if types.opsets.get("", 0) >= _INPUTS:
                for (source, step), slices in _slices(graph, types).items():
                    if set(slices) == set(range(step)):
                        _split(source, slices, types, names)
                        modified = True
        return ir.passes.PassResult(model, modified)


def _slices(graph: ir.Graph, types: Types) -> dict[tuple[ir.Value, int], dict[int, list[ir.Node]]]:
    """Slices that become columns, by what they are taken from, their distance, and where they start."""
    found: dict[tuple[ir.Value, int], dict[int, list[ir.Node]]] = {}
    for node in graph:
        if node.op_type != "Slice" or node.domain or has_references(node) or not _become_columns(node, types):
            continue
        source, taken = node.inputs[0], _start_and_step(node, types)
        if source is not None and taken is not None:
            found.setdefault((source, taken[1]), {}).setdefault(taken[0], []).append(node)
    return found


def _start_and_step(node: ir.Node, types: Types) -> tuple[int, int] | None:
    """Where a Slice starts and how far it steps, if it takes the same number from there as from every other start."""
    given = [None if value is None else types.known.array(value) for value in node.inputs[1:]]
    shape = types.shape(node.inputs[0])
    if shape is None or len(given) < 4 or any(each is None or each.size != 1 for each in given):
        return None
    start, end, axis, step = [int(each.item()) for each in given if each is not None]
    size = size_of(node.inputs[0], axis, types)
    if axis % len(shape) != len(shape) - 1 or step < 2 or size is None or size % step:
        return None
    places = range(*slice(start, end, step).indices(size))
    return (places.start, step) if places.start < step and len(places) == size // step else None


def _become_columns(node: ir.Node, types: Types) -> bool:
    """Whether all that reads a Slice adds an axis behind it."""
    output, shape = node.outputs[0], types.shape(node.inputs[0])
    if shape is None or output.is_graph_output() or not output.uses():
        return False
    return all(_adds_last_axis(use.node, node, len(shape), types) for use in output.uses())


def _adds_last_axis(reader: ir.Node, node: ir.Node, rank: int, types: Types) -> bool:
    if reader.op_type != "Unsqueeze" or reader.domain or reader.graph is not node.graph:
        return False
    axes = types.known.array(reader.inputs[1])
    return axes is not None and axes.reshape(-1).tolist() in ([rank], [-1]) and not reader.outputs[0].is_graph_output()


def _split(source: ir.Value, slices: dict[int, list[ir.Node]], types: Types, names: Names) -> None:
    first = next(iter(slices.values()))[0]
    rank, size, step = len(types.shape(source) or ()), size_of(source, -1, types), len(slices)
    assert first.graph is not None
    assert size is not None
    shape = np.array([*[0] * (rank - 1), size // step, step])
    apart = ir.node("Reshape", [source, write_constant(first, shape, "columns_shape", names)])
    apart.name = apart.outputs[0].name = names.fresh(f"{source.name}_columns")
    apart.outputs[0].type = source.type
    sizes = write_constant(first, np.ones(step, np.int64), "sizes", names)
    split = ir.node("Split", [apart.outputs[0], sizes], {"axis": rank}, num_outputs=step, name=first.name)
    split.metadata_props.update(first.metadata_props)
    first.graph.insert_before(first, [apart, split])
    for start, result in enumerate(split.outputs):
        result.name, result.type = names.fresh(f"{slices[start][0].outputs[0].name}_column"), source.type
        for use in [use for node in slices[start] for use in node.outputs[0].uses()]:
            use.node.outputs[0].replace_all_uses_with(result)
