"""The order in which the calls of a graph of Keras are made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from entrepot.exporters.keras import upstream
from entrepot.ir.errors import ConversionError


def order(results: Sequence[Any], known: Mapping[int, Any]) -> list[Any]:
    """The calls that lead from known symbolic tensors to others, each after those that it needs.

    Raises:
        ConversionError: One comes from elsewhere.
    """
    done: dict[int, Any] = {}
    pending = [(tensor, False) for tensor in reversed(results)]
    while pending:
        tensor, entered = pending.pop()
        node = upstream.node_of(tensor)
        if id(tensor) in known or id(node) in done:
            continue
        if node is None:
            raise ConversionError(f"the symbolic tensor '{tensor.name}' comes from outside of the model")
        if entered:
            done[id(node)] = node
            continue
        pending.append((tensor, True))
        pending += [(parent, False) for parent in reversed(upstream.parents_of(node))]
    return list(done.values())
