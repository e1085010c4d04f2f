"""Outputs that depend on which of several equal elements comes first: two correct implementations may choose otherwise.

Edge values saturate: the scores of half the rows are exactly 1, and which of them are the best is anybody's guess.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import onnx_ir

from entrepot.ir.errors import EntrepotError
from entrepot.ir.extract import extract
from entrepot.ir.model import Model
from entrepot.ir.traits import traits_of
from entrepot.runtime.session import Session


class Ties:
    """The outputs of a model that depend on a choice between equal elements, for one choice of inputs after another.

    Args:
        model: What is judged.
    """

    def __init__(self, model: Model) -> None:
        self._hub = model.at_hub()
        self._choices = [node for node in self._hub.ir.graph if _chooses(node)]
        self._asked = list(dict.fromkeys(name for node in self._choices for name in _operands(node)))

    def undecided(self, feeds: Mapping[str, Any]) -> frozenset[str]:
        """The outputs that depend on such a choice, or whose choices are made where nobody can look."""
        try:
            values = self._run(feeds) if self._asked else {}
        except EntrepotError:
            return frozenset()
        unsure = [value for node in self._choices for value in _unsure(node, values)]
        return frozenset(_outputs_behind(self._hub.ir.graph, unsure))

    def _run(self, feeds: Mapping[str, Any]) -> dict[str, Any]:
        """What the choices are made from."""
        taken = {value.name for value in self._session.model.ir.graph.inputs}
        return self._session.run({name: value for name, value in feeds.items() if name in taken}, self._asked)

    @functools.cached_property
    def _session(self) -> Session:
        """A session that computes no more than that, where such a part of the model can be cut out."""
        try:
            return Session(extract(self._hub, outputs=self._asked), providers=["cpu"])
        except EntrepotError:
            return Session(self._hub, providers=["cpu"])


def with_equal_choices(
    model: Model, feeds: Mapping[str, Any], expected: Mapping[str, Any], actual: Mapping[str, Any]
) -> dict[str, Any]:
    """The outputs of a model, with indices of equal elements taken from the source.

    An index is right if it points to the same number as that of the source, and no place is chosen twice.

    Args:
        model: What is judged.
        feeds: Its inputs.
        expected: What the source computed.
        actual: What the model computed.
    """
    hub = model.at_hub()
    chosen = {str(value.name): node for value in hub.ir.graph.outputs if (node := _chooser(value)) is not None}
    asked = list(dict.fromkeys(str(node.inputs[0].name) for node in chosen.values() if node.inputs[0] is not None))
    try:
        operands = Session(hub, providers=["cpu"]).run(feeds, asked) if asked else {}
    except EntrepotError:
        return dict(actual)
    settled = dict(actual)
    for name, node in chosen.items():
        assert node.inputs[0] is not None
        pair = expected.get(name), actual.get(name)
        if _choose_alike(node, np.asarray(operands[str(node.inputs[0].name)]), *pair):
            settled[name] = expected[name]
    return settled


def _chooser(value: onnx_ir.Value) -> onnx_ir.Node | None:
    """The node whose indices a value holds, perhaps as another type."""
    node = value.producer()
    while node is not None and node.op_type in ("Cast", "Identity") and node.inputs[0] is not None:
        value = node.inputs[0]
        node = value.producer()
    if node is None or node.domain or node.op_type not in ("TopK", "ArgMax", "ArgMin"):
        return None
    return node if node.op_type != "TopK" or value is node.outputs[1] else None


def _choose_alike(node: onnx_ir.Node, operand: np.ndarray, expected: Any, actual: Any) -> bool:
    if not all(isinstance(each, np.ndarray) and each.dtype.kind in "iu" for each in (expected, actual)):
        return False
    axis = node.attributes.get_int("axis", -1 if node.op_type == "TopK" else 0)
    if node.op_type != "TopK" and not node.attributes.get_int("keepdims", 1):
        expected, actual = (np.expand_dims(each, axis) for each in (expected, actual))
    if expected.shape != actual.shape or expected.ndim != operand.ndim:
        return False
    both = np.stack([expected, actual]).astype(np.int64)
    if both.size and (both.min() < 0 or both.max() >= operand.shape[axis]):
        return False
    ranked = np.sort(both[1], axis=axis)
    if (np.diff(ranked, axis=axis) == 0).any():
        return False
    one, other = (np.take_along_axis(operand, each, axis) for each in both)
    return np.array_equal(one, other, equal_nan=operand.dtype.kind == "f")


def _chooses(node: onnx_ir.Node) -> bool:
    inside = (attribute for attribute in node.attributes.values() if attribute.type == onnx_ir.AttributeType.GRAPH)
    bodies = (onnx_ir.traversal.RecursiveGraphIterator(each.as_graph()) for each in inside)
    return traits_of(node).chooses or any(traits_of(each).chooses for body in bodies for each in body)


def _operands(node: onnx_ir.Node) -> Iterator[str]:
    """What is chosen from, and how many."""
    if node.op_type in ("TopK", "ArgMax", "ArgMin", "Hardmax"):
        yield from (str(value.name) for value in node.inputs if value is not None)


def _unsure(node: onnx_ir.Node, values: Mapping[str, Any]) -> Sequence[onnx_ir.Value]:
    """The results of a node that a choice decides: equal elements may change places, the best of them stay the same."""
    names = list(_operands(node))
    if not names:
        return node.outputs
    array = np.asarray(values[names[0]])
    if array.size == 0 or array.ndim == 0:
        return ()
    if np.isnan(array.astype(np.float64)).any():
        return node.outputs
    if not _tied(node, array, values):
        return ()
    in_order = node.op_type == "TopK" and node.attributes.get_int("sorted", 1) == 1
    return node.outputs[1:] if in_order else node.outputs


def _tied(node: onnx_ir.Node, array: np.ndarray, values: Mapping[str, Any]) -> bool:
    """Whether an element that is chosen equals another."""
    names = list(_operands(node))
    ascending = node.op_type == "ArgMin" or node.attributes.get_int("largest", 1) == 0
    axis = node.attributes.get_int("axis", -1 if node.op_type in ("TopK", "Hardmax") else 0)
    count = int(np.ravel(values[names[1]])[0]) if len(names) > 1 else 1
    ranked = np.moveaxis(np.sort(array, axis=axis), axis, -1)
    best = ranked[..., : count + 1] if ascending else ranked[..., -count - 1 :]
    return bool((best[..., 1:] == best[..., :-1]).any())


def _outputs_behind(graph: onnx_ir.Graph, values: Sequence[onnx_ir.Value]) -> Iterator[str]:
    reached = set(map(id, values))
    for node in graph:
        if any(id(value) in reached for value in _read(node)):
            reached.update(map(id, node.outputs))
    yield from (str(value.name) for value in graph.outputs if id(value) in reached)


def _read(node: onnx_ir.Node) -> Iterator[onnx_ir.Value]:
    """What a node reads, and its bodies from around them."""
    yield from (value for value in node.inputs if value is not None)
    for attribute in node.attributes.values():
        if attribute.type == onnx_ir.AttributeType.GRAPH:
            for inner in onnx_ir.traversal.RecursiveGraphIterator(attribute.as_graph()):
                yield from (value for value in inner.inputs if value is not None)
