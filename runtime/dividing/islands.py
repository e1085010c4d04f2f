"""Nodes that would run faster on a device, but not by as much as it costs to take their values there and back.

Where nodes that only the host runs lie between those of a device, each of the islands that are left on the device is
looked at by itself. The costs are rough on purpose: what matters is whether a convolution or three additions
stand against a copy, and that is the same on every machine.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence

import onnx_ir as ir

from entrepot.ir.traits import Cost, traits_of
from entrepot.ir.typing.plain import nbytes
from entrepot.ir.typing.query import Types
from entrepot.runtime.device import HOST, Device, is_copy
from entrepot.runtime.planning.order import reads

COPY, LINK = 10e-6, 10e9
"""Seconds until a copy begins, and the bytes per second that it then moves: PCIe, from memory that is not pinned."""

LAUNCH = 5e-6
"""Seconds that a device takes for one node, however small; its work itself counts as done at once."""

NODE, MEMORY, PRODUCTS = 1e-6, 10e9, 50e9
"""On the host: seconds for one node, bytes per second it passes over, products per second it adds up."""

SIZES = (1, 1024)
"""What axes of unknown size are taken for, one after the other: an island goes only if it costs more with either."""


class Islands:
    """The places of the nodes of a graph, some of which may be given up.

    Args:
        nodes: In an order in which they can run.
        places: For each node, the position of its provider.
        devices: For each provider.
        wanted: Values that the caller gets, on the host.
        types: Tells how large values are.
    """

    def __init__(
        self,
        nodes: Sequence[ir.Node],
        places: Sequence[int],
        devices: Sequence[Device],
        wanted: Iterable[ir.Value],
        types: Types,
    ) -> None:
        self._nodes, self.places, self._devices, self._types = nodes, list(places), devices, types
        self._wanted = set(wanted)
        at = {node: position for position, node in enumerate(nodes)}
        self._reads = [[value for value in dict.fromkeys(reads(node)) if _flows(value, at)] for node in nodes]
        self._made = {value: position for position, node in enumerate(nodes) for value in node.outputs}
        self._readers: dict[ir.Value, list[int]] = defaultdict(list)
        for position, values in enumerate(self._reads):
            for value in values:
                self._readers[value].append(position)

    def give_up(self, others: Callable[[int], Iterable[int]]) -> dict[int, str]:
        """Move every island that costs more than it saves; its nodes' ``places`` change.

        Args:
            others: Asked for a node: the providers that run it on the host instead.

        Returns:
            For each node that has moved, the reason.
        """
        told: dict[int, str] = {}
        pending, before = self._found(), 0
        while len(pending) != before:  # what lay beside an island that is gone may now be one that costs more
            before, kept = len(pending), []
            for island in pending:
                shared = self._shared(others, island) if self._is_worth_it(frozenset(island)) else set()
                if not shared:
                    kept.append(island)
                    continue
                told.update(dict.fromkeys(island, self._reason(island)))
                for position in island:
                    self.places[position] = min(shared)
            pending = kept
        return told

    def _found(self) -> list[list[int]]:
        """Nodes of one provider on a device that hang together, the smallest first."""
        islands: dict[int, list[int]] = defaultdict(list)
        roots = list(range(len(self._nodes)))

        def root(position: int) -> int:
            while roots[position] != position:
                roots[position] = position = roots[roots[position]]
            return position

        for position, values in enumerate(self._reads):
            for value in values:
                producer = self._made.get(value, position)
                if self.places[producer] == self.places[position]:
                    roots[root(producer)] = root(position)
        for position, place in enumerate(self.places):
            if is_copy(self._devices[place], HOST):
                islands[root(position)].append(position)
        return sorted(islands.values(), key=len)

    @staticmethod
    def _shared(others: Callable[[int], Iterable[int]], island: Sequence[int]) -> set[int]:
        return set.intersection(*(set(others(position)) for position in island))

    def _is_worth_it(self, island: frozenset[int]) -> bool:
        return all(self._copying(island, size) + self._working(island, size) < 0 for size in SIZES)

    def _crossing(self, island: Iterable[int]) -> list[ir.Value]:
        """The values that an island reads or makes."""
        values = [value for position in island for value in (*self._reads[position], *self._nodes[position].outputs)]
        return list(dict.fromkeys(values))

    def _copying(self, island: frozenset[int], size: int) -> float:
        """What copies cost more if an island moves to the host, in seconds; less is negative."""
        more = [(value, self._copies(value, island) - self._copies(value)) for value in self._crossing(island)]
        return sum(count * (COPY + self._bytes(value, size) / LINK) for value, count in more if count)

    def _copies(self, value: ir.Value, moved: frozenset[int] = frozenset()) -> int:
        """To how many devices a value is copied."""
        made = self._made.get(value)
        home = HOST if made is None else self._device(made, moved)
        there = dict.fromkeys(self._device(at, moved) for at in self._readers[value])
        there.update(dict.fromkeys([HOST] if value in self._wanted else []))
        return sum(is_copy(home, device) for device in there)

    def _device(self, position: int, moved: frozenset[int]) -> Device:
        return HOST if position in moved else self._devices[self.places[position]]

    def _working(self, island: Iterable[int], size: int) -> float:
        """What the work itself costs more on the host, in seconds."""
        return sum(self._work(self._nodes[position], size) - LAUNCH for position in island)

    def _work(self, node: ir.Node, size: int) -> float:
        """Seconds on the host; infinite where nobody knows."""
        cost = traits_of(node).cost
        if cost is Cost.UNKNOWN:
            return math.inf
        if cost is Cost.FREE:
            return NODE
        operands = [self._bytes(value, size) for value in node.inputs if value is not None]
        results = [self._bytes(value, size) for value in node.outputs]
        passes = (sum(operands) + sum(results)) / MEMORY
        if cost is not Cost.PRODUCT:
            return NODE + passes
        # of (m, k) and (k, n) to (m, n), the root of the three sizes multiplied is m * k * n
        sizes = sorted(each / 4 for each in (*operands, max(results)))[-3:]
        return NODE + passes + math.sqrt(math.prod(sizes)) / PRODUCTS

    def _bytes(self, value: ir.Value, size: int) -> float:
        spec = self._types.spec(value)
        shape = None if spec.shape is None else [dim if isinstance(dim, int) else size for dim in spec.shape]
        return nbytes(None if spec.type is None else spec.type.dtype, shape)

    def _reason(self, island: Sequence[int]) -> str:
        saved = -sum(self._copies(each, frozenset(island)) - self._copies(each) for each in self._crossing(island))
        what = "this node" if len(island) == 1 else f"this and {len(island) - 1} other node{'s' * (len(island) > 2)}"
        return f"{saved} cop{'y' if saved == 1 else 'ies'} would cost more than it saves to run {what} there"


def _flows(value: ir.Value, nodes: dict[ir.Node, int]) -> bool:
    """Whether a value comes from another node or from the caller; weights are on the device once and for all."""
    producer = value.producer()
    return producer in nodes if producer is not None else value.const_value is None and not value.is_initializer()
