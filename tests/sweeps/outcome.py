"""What became of an export."""

from __future__ import annotations

from dataclasses import dataclass

VERDICTS = ("passed", "static", "refused", "wrong", "crashed", "invalid")


@dataclass(frozen=True)
class Outcome:
    """What became of one case.

    Attributes:
        name: The case.
        corpus: Where it is from.
        verdict: One of ``VERDICTS``; ``crashed`` means an error that is not ours, ``invalid`` a case that its own
            module does not accept.
        why: The reason, in a line.
        fixed: What the export says about axes that it kept static.
        seconds: CPU time of the export.
        nodes: How many the graph has.
    """

    name: str
    corpus: str
    verdict: str
    why: str = ""
    fixed: str = ""
    seconds: float = 0.0
    nodes: int = 0
