from __future__ import annotations

import numpy as np
import onnx_ir as ir

from entrepot.ir.opset.names import Names
from entrepot.ir.passes.graphs import has_references, typed_graphs, write_constant
from entrepot.ir.passes.ranges import Range, range_of, size_of
from entrepot.ir.typing.query import Types

_INPUTS = 13
"""The opset from which Slice and Split take what they do as inputs."""


class SplitParts(ir.passes.InPlacePass):
    """Take the parts that make up the whole of an axis with one node.

    Before: ``Slice(x, [0], [2], [1])`` and ``Slice(x, [2], [5], [1])`` of an axis of 5. After: ``Split(x, [2, 3])``.
    So are halves that are turned, gates, and channels for several uses. Sizes along the axis have to be known; those of
    a tensor itself stay Slices, through which runtimes follow sizes. Other passes look for Slices: this one comes after
    them. Subgraphs and functions are covered.
    """

    def call(self, model: ir.Model) -> ir.passes.PassResult:
        """Change the model in place."""
        names = Names(model)
        split = [
            _split(ranges, names)
            for graph, types in typed_graphs(model)
            if types.opsets.get("", 0) >= _INPUTS
            for found in _ranges(graph, types)
            if (ranges := _whole(found, types))
        ]
        return ir.passes.PassResult(model, modified=bool(split))


def _ranges(graph: ir.Graph, types: Types) -> list[dict[ir.Node, Range]]:
    """The Slices of a graph, in order, by what they are taken from, and along which axis."""
    found: dict[tuple[ir.Value, int], dict[ir.Node, Range]] = {}
    for node in graph:
        if node.op_type == "Slice" and not node.domain and not has_references(node) and node.inputs[0] is not None:
            taken = None if _are_sizes(node.inputs[0], types) else range_of(node, types)
            if taken is not None and taken.start < taken.end:
                found.setdefault((node.inputs[0], taken.axis), {})[node] = taken
    return list(found.values())


def _are_sizes(value: ir.Value, types: Types) -> bool:
    """Whether a value may be the sizes of a tensor."""
    shape = types.shape(value)
    return shape is not None and len(shape) == 1 and types.dtype(value) in (ir.DataType.INT32, ir.DataType.INT64)


def _whole(ranges: dict[ir.Node, Range], types: Types) -> dict[ir.Node, Range]:
    """Those of them that follow upon one another from the first element to the last; none if some are missing."""
    source, axis = next((node.inputs[0], taken.axis) for node, taken in ranges.items())
    longest_first = sorted(ranges, key=lambda node: ranges[node].end, reverse=True)
    following = {ranges[node].start: node for node in longest_first}  # the shortest from each place
    parts, end = list[ir.Node](), 0
    while end in following:
        parts.append(following[end])
        end = ranges[parts[-1]].end
    complete = end == size_of(source, axis, types) and len(parts) > 1
    return {node: taken for node, taken in ranges.items() if node in parts} if complete else {}


def _split(ranges: dict[ir.Node, Range], names: Names) -> bool:
    first, axis = next((node, taken.axis) for node, taken in ranges.items())
    nodes = sorted(ranges, key=lambda node: ranges[node].start)
    sizes = np.array([ranges[node].end - ranges[node].start for node in nodes], np.int64)
    given = [first.inputs[0], write_constant(first, sizes, "sizes", names)]
    split = ir.node("Split", given, {"axis": axis}, num_outputs=len(nodes), name=first.name)
    split.metadata_props.update(first.metadata_props)
    assert first.graph is not None
    first.graph.insert_before(first, split)
    for node, result in zip(nodes, split.outputs, strict=True):
        output = node.outputs[0]
        result.name, result.type, result.shape = output.name, output.type, output.shape
        result.metadata_props.update(output.metadata_props)
        output.replace_all_uses_with(result, replace_graph_outputs=True)
        output.name = ""
        assert node.graph is not None
        node.graph.remove(node, safe=True)
    return True
