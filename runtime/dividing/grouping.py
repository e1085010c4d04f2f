"""Nodes in an order in which they change from one provider to another as seldom as possible."""

from __future__ import annotations

import heapq
from collections.abc import Hashable, Sequence
from typing import TypeVar

import onnx_ir as ir

from entrepot.runtime.planning.order import producers

Owner = TypeVar("Owner", bound=Hashable)


def grouped(nodes: Sequence[ir.Node], owners: Sequence[Owner]) -> list[tuple[Owner, list[int]]]:
    """Runs of nodes of one owner, each after what it reads.

    A run takes everything of its owner that can run by then, wherever the file has it, so that each is as large as it
    can be. Within a run, nodes keep their order.

    Args:
        nodes: In an order in which they can run.
        owners: Of each node.

    Returns:
        Owners with the positions of their nodes.
    """
    if len(set(owners)) <= 1:
        return [(owners[0], list(range(len(nodes))))] if nodes else []
    place = {node: position for position, node in enumerate(nodes)}
    needs = [{place[producer] for producer in producers(node) if producer in place} for node in nodes]
    first = dict.fromkeys(owner for owner, need in zip(owners, needs, strict=True) if not need)
    # with two providers, whose turn comes first decides everything; the fewest runs win
    return min((_runs(owners, needs, owner) for owner in first), key=len)


def _runs(owners: Sequence[Owner], needs: Sequence[set[int]], owner: Owner) -> list[tuple[Owner, list[int]]]:
    takers: list[list[int]] = [[] for _ in needs]
    for position, need in enumerate(needs):
        for producer in need:
            takers[producer].append(position)
    missing = list(map(len, needs))
    ready: dict[Owner, list[int]] = {each: [] for each in owners}
    for position in [at for at, count in enumerate(missing) if not count]:
        heapq.heappush(ready[owners[position]], position)
    runs: list[tuple[Owner, list[int]]] = []
    while any(ready.values()):
        if not ready[owner]:
            owner = owners[min(queue[0] for queue in ready.values() if queue)]
        runs.append((owner, []))
        while ready[owner]:
            position = heapq.heappop(ready[owner])
            runs[-1][1].append(position)
            for taker in takers[position]:
                missing[taker] -= 1
                if not missing[taker]:
                    heapq.heappush(ready[owners[taker]], taker)
    return runs
