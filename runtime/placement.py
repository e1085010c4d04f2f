"""Where the nodes of a model run and what crosses between devices, as a session tells it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from entrepot.runtime.dividing.copies import Copy


@dataclass(frozen=True)
class Placement:
    """Where one node runs, and why.

    Attributes:
        node: The node, as messages describe it.
        op_type: Its operator.
        provider: Who runs it.
        how: What it became there: ``native``, ``fused with 'relu'``, ``fused into 'conv'``, ``folded``, ...
        declined: Providers asked earlier, each with its reason.
    """

    node: str
    op_type: str
    provider: str
    how: str = ""
    declined: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Plan:
    """Where every node of the main graph runs; prints as a table.

    Attributes:
        placements: One per node, in the order in which they run.
        remarks: What would make the session faster on this machine.
        copies: What is moved from device to device if everything is fed from the host and returned there.
    """

    placements: tuple[Placement, ...]
    remarks: tuple[str, ...] = ()
    copies: tuple[Copy, ...] = ()

    def __str__(self) -> str:
        rows = [("node", "operator", "provider", "how", "declined by")]
        for row in self.placements:
            declined = "; ".join(f"{name}: {reason}" for name, reason in row.declined.items())
            rows.append((row.node, row.op_type, row.provider, row.how, declined))
        lines = _table(rows)
        if self.copies:
            moved = [("copy of", "from", "to", "bytes", "when")]
            moved += [(f"'{c.value}'", c.source, c.target, c.size, c.when or "each run") for c in self.copies]
            lines += ["", *_table(moved), _total(self.copies)]
        return "\n".join([*lines, *(f"note: {remark}" for remark in self.remarks)])


def _table(rows: Sequence[tuple[str, ...]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)][:-1]
    return ["  ".join([*(map(str.ljust, row, widths)), row[-1]]).rstrip() for row in rows]


def _total(copies: Sequence[Copy]) -> str:
    known = [copy.nbytes for copy in copies if copy.nbytes is not None and not copy.when]
    more = " and what depends on the feeds" if len(known) < len(copies) else ""
    return f"{len(copies)} cop{'y' if len(copies) == 1 else 'ies'}, {sum(known)} bytes{more} in each run"
