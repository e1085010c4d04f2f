"""A run in single precision, node by node beside doubles: what a result is off by is rounding where no node is wrong.

A normalisation of few elements that hardly differ makes a hundred times as much of what the layers before it rounded,
and two boxes whose scores differ in the last digit change places. No single figure says how far off such a result may
be. But if a graph computes in double precision what its source does, and each node, given what the run gave it,
computes in single precision what it does in double precision, then there is nothing else that could be wrong.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from entrepot.ir.errors import EntrepotError, describe_node
from entrepot.ir.model import Model
from entrepot.parity.compare import Tolerance, agree
from entrepot.parity.doubled import in_double, typed_alike, widened
from entrepot.parity.sparing import is_large
from entrepot.runtime.session import Session

_GIVEN = ".given"
_ONE_STEP = Tolerance(atol=2e-6, rtol=1e-5, scaled=True)
"""A tenth of what whole networks are allowed: no node sums up thousands of terms that others have rounded."""
_TOGETHER = (" with ", " into ")
"""What plans say of nodes that are computed together with others."""


class Steps:
    """A model whose nodes are computed one by one, each from what it is given.

    Args:
        model: The model; it is left as it is.

    Raises:
        EntrepotError: It is too large, or has operators of which nothing is known in double precision.
    """

    def __init__(self, model: Model) -> None:
        if is_large(model):
            raise EntrepotError("it is too large for all that it computes to be kept")
        self._outputs = [spec.name for spec in model.outputs]
        self._single = Session(model.at_hub(), providers=["cpu"])
        self._names = _kept(self._single, model.at_hub().ir.graph)
        self._double = Session(_apart(in_double(model), frozenset(self._names)), providers=["cpu"])

    def hold(self, feeds: Mapping[str, Any], actual: Mapping[str, Any]) -> bool:
        """Whether no node is wrong in a run, which another one agrees with that keeps what every node computes.

        Args:
            feeds: What the model was given.
            actual: What it computed, perhaps with several nodes at once.
        """
        try:
            kept = self._single.run(dict(feeds), [*dict.fromkeys([*self._outputs, *self._names])])
            given = {name: widened(value) for name, value in feeds.items()}
            right = self._double.run(given | {name + _GIVEN: widened(kept[name]) for name in self._names})
        except EntrepotError:
            return False
        single = [name for name in self._names if getattr(kept[name], "dtype", None) == np.float32]
        rest = [name for name in self._names if name not in single]
        return (
            agree({name: kept[name] for name in self._outputs}, actual)
            and _beside(right, kept, single, _ONE_STEP)
            and _beside(right, kept, rest, None)
        )


def _beside(right: Mapping[str, Any], kept: Mapping[str, Any], names: Sequence[str], rule: Tolerance | None) -> bool:
    """Whether some values agree with those in double precision."""
    made = {name: kept[name] for name in names}
    return not made or agree(typed_alike({name: right[name] for name in names}, made), made, rule)


def _kept(session: Session, graph: ir.Graph) -> list[str]:
    """The values that a run makes anyway: with others asked for, nodes would not be computed together, as they are."""
    ways = {row.node: row.how for row in session.plan().placements}
    told = ((node, ways.get(describe_node(node, graph.opset_imports.get(node.domain)))) for node in graph)
    apart = {node for node, how in told if how is not None and not any(word in how for word in _TOGETHER)}
    made = (value for node in graph for value in node.outputs if node in apart or value.is_graph_output())
    return [str(value.name) for value in made if value.name]


def _apart(model: Model, names: frozenset[str]) -> Model:
    """The model with each of its values as a result, computed of others that are inputs."""
    graph = model.ir.graph
    made = [value for node in graph for value in node.outputs if value.name in names]
    graph.outputs.clear()
    for value in made:
        given = ir.Value(name=f"{value.name}{_GIVEN}", type=value.type)
        value.replace_all_uses_with(given)
        graph.inputs.append(given)
    graph.outputs.extend(made)
    return model
