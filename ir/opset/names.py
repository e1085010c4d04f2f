"""One allocator of fresh names over all graphs, subgraphs and functions of a model."""

from __future__ import annotations

from collections.abc import Iterator

import onnx_ir as ir

from entrepot.ir.io.parsed import Parsed
from entrepot.ir.subgraphs import with_subgraphs


class Names:
    """Gives out names that no value or node of the model has; the model is read at the first request.

    Args:
        model: The model that the names must be new to.
    """

    def __init__(self, model: ir.Model | Parsed) -> None:
        self._model = model
        self._taken: set[str] | None = None
        self._counts: dict[str, int] = {}

    def fresh(self, wish: str) -> str:
        """``wish`` itself if it is free, else ``wish_1``, ``wish_2``, ..."""
        if self._taken is None:
            model = self._model
            self._taken = set(model.names() if isinstance(model, Parsed) else _all_names(model))
        name, count = wish, self._counts.get(wish, 0)
        while name in self._taken:
            count += 1
            name = f"{wish}_{count}"
        self._taken.add(name)
        self._counts[wish] = count
        return name


def _all_names(model: ir.Model) -> Iterator[str]:
    for graph in with_subgraphs(model.graph, *(function.graph for function in model.functions.values())):
        yield from _graph_names(graph)


def _graph_names(graph: ir.Graph) -> Iterator[str]:
    yield from (value.name for value in graph.inputs if value.name)
    yield from graph.initializers
    for node in graph:
        if node.name:
            yield node.name
        yield from (value.name for value in node.outputs if value.name)
