"""How far the results of a quantised network move when a number between two steps is rounded to the other.

Two correct implementations add in different orders, and a sum that lies half-way between two steps goes up in one of
them and down in the other; everything behind it follows. A network shows how much that matters when its weights move by
what such sums differ by.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import onnx_ir

from entrepot.ir.copying import copy_graphs
from entrepot.ir.model import Model
from entrepot.ir.traits import traits_of
from entrepot.parity.compare import leaves

MOVE = 2.0**-20
"""Relative: some roundings of single precision, as a sum of many terms is off by."""
LARGE_MOVE = 2.0**-12
"""Relative: so far that some number is sure to go to its other step, in a network of any size."""
_DRAWS = 4
_MOST = 1 << 26
"""Elements of all weights together; a larger model is not run again and again."""


def rounds_to_steps(model: Model) -> bool:
    """Whether numbers are quantised as a model runs."""
    graphs = [model.ir.graph, *(function.graph for function in model.ir.functions.values())]
    nodes = (node for graph in graphs for node in onnx_ir.traversal.RecursiveGraphIterator(graph))
    return any(traits_of(node).rounds for node in nodes)


def shaken(model: Model, move: float = MOVE) -> Iterator[Model]:
    """The model several times, with each float among its weights up or down a little, by ``move`` at most."""
    if sum(value.const_value.size for value in _weights(model.ir)) > _MOST:
        return
    for seed in range(_DRAWS):
        rng = np.random.default_rng(seed)
        other = copy_graphs(model.ir)
        for value in _weights(other):
            value.const_value = onnx_ir.tensor(_moved(value.const_value.numpy(), rng, move))
        yield Model(other)


def _moved(array: np.ndarray[Any, Any], rng: np.random.Generator, move: float) -> np.ndarray[Any, Any]:
    """Numbers beside these; the largest stay as they are, since nothing lies beyond."""
    with np.errstate(over="ignore"):
        moved = np.asarray(array * (1 + rng.uniform(-move, move, array.shape))).astype(array.dtype)
    return np.where(np.isfinite(moved), moved, array)


def _weights(graphs: onnx_ir.Model) -> Iterator[Any]:
    floats = (onnx_ir.DataType.FLOAT, onnx_ir.DataType.DOUBLE)
    every = graphs.graph.initializers.values()
    yield from (value for value in every if value.const_value is not None and value.const_value.dtype in floats)


def most_moved(expected: Mapping[str, Any], answers: Iterator[Mapping[str, Any]]) -> dict[str, float]:
    """The largest change of each output among several answers."""
    before, found = dict(leaves(expected)), dict[str, float]()
    for answer in answers:
        for name, after in leaves(answer):
            change = _change(before.get(name), after)
            found[name] = max(found.get(name, 0.0), change)
    return found


def _change(before: Any, after: Any) -> float:
    if not (isinstance(before, np.ndarray) and isinstance(after, np.ndarray)) or before.shape != after.shape:
        return 0.0
    if before.dtype.kind not in "iuf" or not before.size:
        return 0.0
    apart = np.abs(after.astype(np.float64) - before.astype(np.float64))
    return float(apart[np.isfinite(apart)].max(initial=0.0))
