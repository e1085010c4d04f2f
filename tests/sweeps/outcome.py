"""What became of an export, whatever framework it was from."""

from __future__ import annotations

import re
from dataclasses import dataclass

import entrepot as ep

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
        transposes: How many of them are transpositions, where these are counted.
        lacks: Why onnxruntime does not run the file; empty where it does, or was not asked.
    """

    name: str
    corpus: str
    verdict: str
    why: str = ""
    fixed: str = ""
    seconds: float = 0.0
    nodes: int = 0
    transposes: int = 0
    lacks: str = ""


def line(error: BaseException) -> str:
    """An error in one line."""
    text = " ".join(str(error).split())
    return text if isinstance(error, ep.EntrepotError) else f"{type(error).__name__}: {text}"


def reason(why: str) -> str:
    """A reason without what differs from case to case: where it was, shapes, numbers, names in quotes."""
    why = re.sub(r"^at .*?\): |^[\w.]+\.\d+: ", "", re.sub(r"^at .*?\): (?!\()", "", why))
    why = re.sub(r" at [\w./]+\.py:\d+ in \w+: .*?(?=, which|: \w+Error|: \w+\.\w|$)", "", why)
    return re.sub(r"'[^']*'|\"[^\"]*\"|\d+|, used at.*|\(hint.*", "_", why)[:120]
