"""If, Loop and Scan; their bodies are converted before them.

| Scan | change |
|---|---|
| 9 | no batch axis and no ``sequence_lens``; axes and directions per input and output |
| 11 | negative axes |
"""

from __future__ import annotations

import functools

import numpy as np
import onnx_ir as ir

from entrepot.ir.opset.adapters.parts.scan_loop import scan_as_loop
from entrepot.ir.opset.bodies import let_go
from entrepot.ir.opset.builder import OpBuilder
from entrepot.ir.opset.rules import Replacement, adapter, extended, impossible, unchanged

unchanged("If", 11, 13, 16, 19, 21, 23, 24, 25)
extended("If", 1, 11)
unchanged("Loop", 11, 13, 16, 19, 21, 23, 24, 25)
unchanged("Scan", 11, 16, 19, 21, 23, 24, 25)
extended("Loop", 1, 11)
extended("Scan", 9, 11)
impossible("Scan", 8, 0, "no operator scanned a batch of sequences before opset 8")


@adapter("If", 11, 1)
def branches_alike(op: OpBuilder, node: ir.Node) -> Replacement:
    """Both branches had to have the same output shapes; an If with a known condition becomes the branch taken."""
    branches = {name: node.attributes[name].as_graph() for name in ("then_branch", "else_branch")}
    outputs = [graph.outputs for graph in branches.values()]
    if all(map(functools.partial(_agree, op), *outputs)):
        return None
    condition = op.known(op.x())
    if condition is None:
        if any(map(functools.partial(_differ, op), *outputs)):
            op.refuse("its branches have different output shapes, which If allows from version 11 on")
        return None
    taken = branches.pop("then_branch" if condition.item() else "else_branch")
    (left,) = branches.values()
    for output in node.outputs:
        op.shape(output)  # inferred while the bodies are still there to infer it from
    for inner in left:
        let_go(inner)
    return _moved_out(op, taken)


def _agree(op: OpBuilder, one: ir.Value, other: ir.Value) -> bool:
    """Whether as much is known of one shape as of the other: what only one says would be taken to hold for both."""
    first, second = op.shape(one), op.shape(other)
    return first == second


def _differ(op: OpBuilder, one: ir.Value, other: ir.Value) -> bool:
    first, second = op.shape(one), op.shape(other)
    if first is None or second is None:
        return False
    return len(first) != len(second) or any(
        a is not None and b is not None and a != b for a, b in zip(first, second, strict=True)
    )


def _moved_out(op: OpBuilder, graph: ir.Graph) -> list[ir.Value | None]:
    """The results of a body whose nodes are written in its node's place, under new names."""
    results, nodes = list(graph.outputs), list(graph)
    graph.outputs.clear()
    graph.remove(nodes)
    for inner in nodes:
        for output in inner.outputs:
            output.name = op.fresh_name(output.name) if output.name else output.name
    op.emitted.extend(nodes)
    return [*results]


@adapter("Loop", 11, 1)
def loop_with_condition(op: OpBuilder, node: ir.Node) -> Replacement:
    """An absent condition is true; a loop that carries nothing is given a number to carry."""
    if op.input(1) is None:
        op.inputs(op.input(0), op.const(np.array(True)), *node.inputs[2:])
    return _with_something_to_carry(op, node) if len(node.inputs) < 3 else None


def _with_something_to_carry(op: OpBuilder, node: ir.Node) -> Replacement:
    body: ir.Graph = op.attr("body")
    carried = ir.val(op.fresh_name("carried"), ir.DataType.FLOAT, ())
    handed_on = ir.node("Identity", [carried], version=op.version, name=op.fresh_name("hand_on"))
    handed_on.outputs[0].name = op.fresh_name("handed_on")
    handed_on.outputs[0].type, handed_on.outputs[0].shape = carried.type, carried.shape
    body.inputs.append(carried)
    body.append(handed_on)
    body.outputs.insert(1, handed_on.outputs[0])
    nothing = op.const(np.array(0, np.float32))
    results = op.emit("Loop", [*node.inputs, nothing], {"body": body}, len(node.outputs) + 1)
    return list(results[1:])


@adapter("Scan", 11, 9)
def scan_axes_from_the_front(op: OpBuilder, node: ir.Node) -> Replacement:
    """Count the axes from the front."""
    scanned = op.attr("num_scan_inputs")
    axes = op.attr("scan_input_axes")
    if axes and min(axes) < 0:
        ranks = [op.need_rank(value) for value in node.inputs[len(node.inputs) - scanned :]]
        op.set(scan_input_axes=[axis % rank for axis, rank in zip(axes, ranks, strict=True)])
    axes = op.attr("scan_output_axes")
    if axes and min(axes) < 0:
        ranks = [op.need_rank(value) for value in node.outputs[len(node.outputs) - len(axes) :]]
        op.set(scan_output_axes=[axis % rank for axis, rank in zip(axes, ranks, strict=True)])


@adapter("Scan", 8, 9)
def scan_the_batch(op: OpBuilder, node: ir.Node) -> Replacement:
    """Scan over the batch outside and over the sequence inside."""
    if op.input(0) is not None:
        op.refuse("sequence_lens has no newer form")
    body: ir.Graph = op.attr("body")
    scanned = op.attr("num_scan_inputs")
    given = node.inputs[1:]
    outer_inputs = [ir.Value(name=op.fresh_name("item")) for _ in given]
    inner = ir.Node(
        "",
        "Scan",
        outer_inputs,
        [
            ir.AttrGraph("body", body),
            ir.AttrInt64("num_scan_inputs", scanned),
            *([ir.AttrInt64s("scan_input_directions", op.attr("directions"))] if op.attr("directions") else []),
        ],
        num_outputs=len(node.outputs),
        version=op.version,
        name=op.fresh_name("Scan"),
    )
    for output in inner.outputs:
        output.name = op.fresh_name("result")
    outer = ir.Graph(outer_inputs, inner.outputs, nodes=[inner], name=op.fresh_name("batch"))
    return _outputs(op.emit("Scan", list(given), {"body": outer, "num_scan_inputs": len(given)}, len(node.outputs)))


@adapter("Scan", 9, 8)
def scan_a_batch_of_one(op: OpBuilder, node: ir.Node) -> Replacement:
    """A batch of one, with sequences on the first axis and outputs in order; anything else is a Loop."""
    elsewhere = any(any(op.attr(f"scan_{name}", [])) for name in ("input_axes", "output_axes", "output_directions"))
    shaped = all(value.shape is not None for value in op.attr("body").outputs)  # onnxruntime's Scan 8 requires it
    if elsewhere or not shaped or op.around.targets.get("", op.version) < 8:
        return scan_as_loop(op, node)
    inputs = [op.Unsqueeze(value, axes=[0]) for value in node.inputs if value is not None]
    attributes = {
        "body": op.attr("body"),
        "num_scan_inputs": op.attr("num_scan_inputs"),
        "directions": op.attr("scan_input_directions"),
    }
    results = _outputs(op.emit("Scan", [None, *inputs], attributes, len(node.outputs)))
    return [op.Squeeze(value, axes=[0]) for value in results]


def _outputs(results: ir.Value | tuple[ir.Value, ...]) -> list[ir.Value]:
    return [results] if isinstance(results, ir.Value) else list(results)
