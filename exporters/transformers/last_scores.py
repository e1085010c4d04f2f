"""Scores of the last tokens alone: a prompt has many tokens, and only the last one's scores choose the next.

The product with the vocabulary is among the largest of a model. What comes before it is cut to the tokens that count.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import onnx_ir as ir

from entrepot.ir.model import Model
from entrepot.ir.traits import traits_of
from entrepot.runtime.generation.package import Package

FIRST_SCORED = "first_scored"
"""The input that says from which of the new tokens on there are scores; negative numbers count from the end."""

_SLICE_WITH_INPUTS = 10
_TOKENS = 1
"""The axis of the tokens."""


def with_last_scores(package: Package) -> Package:
    """The package with graphs that take an input more, where they take several tokens at once.

    Before: ``hidden -> MatMul -> logits``. After: ``hidden -> Slice(first_scored) -> MatMul -> logits``.
    """
    manifest = package.manifest
    scored = [role for role in ("prefill", "decoder") if role in package.graphs]
    several = manifest.step != 1 or "prefill" in scored
    if not several or any(package.graphs[role].opset < _SLICE_WITH_INPUTS for role in scored):
        return package
    graphs = {
        role: _with_first(model, manifest.logits) if role in scored else model for role, model in package.graphs.items()
    }
    return Package(graphs, dataclasses.replace(manifest, first_scored=FIRST_SCORED), report=package.report)


def _with_first(model: Model, logits: str) -> Model:
    graph = model.ir.clone()
    result = next(value for value in graph.graph.outputs if value.name == logits)
    chain = _alike(result)
    first = ir.Value(name=FIRST_SCORED, type=ir.TensorType(ir.DataType.INT64), shape=ir.Shape([1]))
    graph.graph.inputs.append(first)
    if chain:
        node, at = chain[-1]
        _cut(graph.graph, node, at, first)
    else:
        _cut_result(graph.graph, result, first)
    for value in {result, *(node.outputs[0] for node, _ in chain)}:
        if value.shape is not None:
            value.shape = ir.Shape([dim if axis != _TOKENS else "scored" for axis, dim in enumerate(value.shape)])
    return Model(graph, report=model.report)


def _alike(result: ir.Value) -> list[tuple[ir.Node, int]]:
    """The nodes at the end that treat every token alike, the last one first, and which operand has the tokens."""
    found: list[tuple[ir.Node, int]] = []
    value, uses = result, 0
    while (node := value.producer()) is not None and len(value.uses()) == uses:
        at = _operand(node)
        if at is None:
            break
        found.append((node, at))
        following = node.inputs[at]
        assert following is not None
        value, uses = following, 1
        if node.op_type == "MatMul":
            break
    return found if any(node.op_type == "MatMul" for node, _ in found) else []


def _operand(node: ir.Node) -> int | None:
    """Which operand has the tokens, where the others are the same for all of them."""
    if node.domain or len(node.outputs) != 1 or not (node.op_type == "MatMul" or traits_of(node).elementwise):
        return None
    ranks = [_rank(value) for value in node.inputs]
    with_tokens = [at for at, rank in enumerate(ranks) if rank == 3]
    if len(with_tokens) != 1 or None in ranks:
        return None
    others = [value for at, value in enumerate(node.inputs) if at != with_tokens[0]]
    if node.op_type == "MatMul":
        return 0 if with_tokens == [0] and ranks[1] == 2 else None
    return with_tokens[0] if all(_is_same_for_all(value) for value in others) else None


def _rank(value: ir.Value | None) -> int | None:
    if value is None:
        return None
    if value.shape is not None:
        return len(value.shape)
    maker = value.producer()
    return _rank(maker.inputs[0]) if maker is not None and maker.op_type == "Transpose" else None


def _is_same_for_all(value: ir.Value | None) -> bool:
    """Whether what has one or two axes is broadcast along the tokens."""
    return value is not None and value.shape is not None and (len(value.shape) < 2 or value.shape[-2] == 1)


def _sliced(graph: ir.Graph, value: ir.Value, first: ir.Value) -> ir.Node:
    """The node that takes the tokens that count."""
    bounds = {"scored_to": np.iinfo(np.int64).max, "scored_along": _TOKENS}
    made = [first]
    for name, number in bounds.items():
        tensor = ir.tensor(np.array([number], np.int64), name=name)
        graph.register_initializer(bound := ir.Value(name=name, const_value=tensor, type=first.type, shape=first.shape))
        made.append(bound)
    node = ir.node("Slice", [value, made[0], made[1], made[2]])
    node.outputs[0].name, node.outputs[0].type = f"{value.name}.scored", value.type
    if value.shape is not None:
        node.outputs[0].shape = ir.Shape([dim if axis != _TOKENS else "scored" for axis, dim in enumerate(value.shape)])
    return node


def _cut(graph: ir.Graph, node: ir.Node, at: int, first: ir.Value) -> None:
    value = node.inputs[at]
    assert value is not None
    slicing = _sliced(graph, value, first)
    graph.insert_before(node, slicing)
    node.replace_input_with(at, slicing.outputs[0])


def _cut_result(graph: ir.Graph, result: ir.Value, first: ir.Value) -> None:
    """Cut the scores themselves, where nothing before them treats every token alike."""
    name, whole = result.name, result
    slicing = _sliced(graph, whole, first)
    whole.name = f"{name}.all"
    slicing.outputs[0].name = name
    graph.append(slicing)
    graph.outputs[next(at for at, value in enumerate(graph.outputs) if value is whole)] = slicing.outputs[0]
