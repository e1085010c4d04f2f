"""One comparison on a terminal: a line per output."""

from __future__ import annotations

from typing import TYPE_CHECKING

from entrepot.ir.printable import printable
from entrepot.parity.report.text import aligned, figure, similarity

if TYPE_CHECKING:
    import rich.console

    from entrepot.parity.compare import Comparison, OutputComparison

HEADINGS = ("output", "type", "verdict", "max abs", "max rel", "cosine", "of tolerance")


def verdict(comparison: Comparison) -> str:
    """The verdict in one line, and what it is based on."""
    count = len(comparison.outputs)
    outputs = f"{count} output{'s' * (count != 1)}"
    wrong = [output for output in comparison.outputs if not output.ok]
    if not count:
        return comparison.problems[0]
    if wrong:
        some = outputs if len(wrong) == count else f"{len(wrong)} of {outputs}"
        return printable(f"{some} {'differs' if len(wrong) == 1 else 'differ'}")
    remark = f"; no finite element in {', '.join(comparison.hollow)}" if comparison.hollow else ""
    return printable(f"{outputs} agree{'s' * (count == 1)}{remark}")


def table(comparison: Comparison) -> str:
    """The verdict, under it one line per output, and what is wrong."""
    rows = [HEADINGS, *(cells(output) for output in comparison.outputs)] if comparison.outputs else []
    problems = _problems(comparison)
    return "\n".join(
        [verdict(comparison), *([""] if rows else []), *aligned(rows), *([""] if problems else []), *problems]
    )


def renderable(comparison: Comparison) -> rich.console.Group:
    """The same with colours, for ``rich.print``."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    shown = Table(*HEADINGS)
    for output in comparison.outputs:
        style = "green" if output.ok else "bold red"
        shown.add_row(*(Text(cell, style if at == 2 else "") for at, cell in enumerate(cells(output))))
    head = Text(verdict(comparison), "green" if comparison.ok else "bold red")
    return Group(head, *([shown] if comparison.outputs else []), *map(Text, _problems(comparison)))


def cells(output: OutputComparison) -> tuple[str, ...]:
    """The figures of one output."""
    shape = "" if output.shape is None else str(list(output.shape))
    start = (printable(output.name), f"{output.dtype or ''}{shape}", "agrees" if output.ok else "differs")
    metrics = output.metrics
    if metrics is None:
        return (*start, "", "", "", "")
    figures = (figure(metrics.max_abs), figure(metrics.max_rel), similarity(metrics.cosine), figure(metrics.excess))
    return (*start, *figures)


def _problems(comparison: Comparison) -> list[str]:
    return [printable(problem) for problem in comparison.problems] if comparison.outputs else []
