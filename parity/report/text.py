"""A report on a terminal."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from entrepot.ir.printable import printable
from entrepot.ir.tables import Rows

if TYPE_CHECKING:
    import rich.console

    from entrepot.parity.report.report import Report, Run

HEADINGS = ("inputs", "provider", "verdict", "max abs", "max rel", "cosine", "of tolerance")
_TOLD = 10
_STYLES = {
    "agrees": "green",
    "differs": "bold red",
    "error": "bold red",
    "refused": "dim",
    "declined": "dim",
    "noted": "yellow",
}


_NOTED = {"special": "differs for NaN or infinities", "finite": "differs at edge values"}
_COARSE = "computes in single precision"


def summary(report: Report) -> str:
    """The verdict in one line, with the largest error and what could not be proved."""
    return printable("; ".join([*_verdict(report), *_remarks(report)]))


def mark(report: Report) -> str:
    """The verdict in a word or two; agreement without anything finite is not called a proof."""
    if not report.ok:
        return "unproven" if report.doubt and not (report.void or report.failures) else "not verified"
    return "agrees, not proved" if _proves_nothing(report) else "verified"


def _proves_nothing(report: Report) -> bool:
    return report.worst is not None and math.isnan(report.worst.excess)


def _verdict(report: Report) -> list[str]:
    ran, worst = len(report.ran), report.worst
    if report.void:
        return [f"NOT verified against {report.source} any more: {report.void}"]
    if report.doubt and not report.failures:
        agreement = [] if worst is None else [f"{ran} runs agree"]
        return [f"NOT verified against {report.source}: unproven, because {report.doubt}", *agreement]
    if worst is None or not (report.ok or report.failures):
        return [f"NOT verified against {report.source}: nothing was compared"]
    if report.failures:
        failed = f"NOT verified against {report.source}: {len(report.failures)} of {ran} runs failed"
        return [failed, f"worst: {_message(worst)}"]
    agreeing = {run.provider for run in report.runs if run.ok}
    providers = ", ".join(name for name in report.providers if name in agreeing)
    agree = f"verified against {report.source}: {ran} runs on {providers} agree"
    if _proves_nothing(report):
        return [f"agrees with {report.source} in {ran} runs on {providers}, but no finite element was compared"]
    return [agree, f"largest error {figure(worst.excess)} of the tolerance"]


def _remarks(report: Report) -> list[str]:
    by_source = sum(run.provider == "source" for run in report.refusals)
    by_graph = len(report.refusals) - by_source
    remarks = {
        f"{by_source} refused by the source": by_source,
        f"{by_graph} empty inputs refused by the exported graph": by_graph,
        f"{len(report.sensitive)} agree within what rounding alone does to the source": report.sensitive,
        f"no finite element compared in {', '.join(report.hollow)}": report.hollow,
        f"no other size proved for {', '.join(report.unproven)}": report.unproven,
    }
    declined = [f"{run.provider} does not run it" for run in report.declined if run.provider != "source"]
    declined += dict.fromkeys(f"{run.provider} {run.excuse or _NOTED.get(run.edge, _COARSE)}" for run in report.noted)
    return declined + [text for text, applies in remarks.items() if applies]


def table(report: Report) -> str:
    """The summary, and under it one line per run; messages of failures follow."""
    rows = [HEADINGS, *(cells(run) for run in report.runs)]
    messages = _messages(report)
    facts = [f"{label:12}  {line}" for label, line in _facts(report)]
    return "\n".join([summary(report), *facts, "", *aligned(rows), *([""] if messages else []), *messages])


def aligned(rows: Sequence[tuple[str, ...]]) -> list[str]:
    """Rows of cells as lines with straight columns."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def renderable(report: Report) -> rich.console.Group:
    """The same with colours, for ``rich.print``."""
    from rich.console import Group
    from rich.text import Text

    styles = {(at, 2): _STYLES[run.verdict] for at, run in enumerate(report.runs)}
    shown = Rows(HEADINGS, map(cells, report.runs), styles=styles)
    messages = [Text(message) for message in _messages(report)]
    facts = Rows(("", ""), _facts(report))
    style = {"verified": "green", "not verified": "bold red"}.get(mark(report), "yellow")
    return Group(Text(summary(report), style), facts, shown, *messages)


def cells(run: Run) -> tuple[str, ...]:
    """The figures of one run, as its worst output shows them."""
    worst, label = run.worst, printable(run.label)
    if worst is None or worst.metrics is None:
        return (label, run.provider, run.verdict, "", "", "", "")
    metrics = worst.metrics
    return (
        label,
        run.provider,
        run.verdict,
        figure(metrics.max_abs),
        figure(metrics.max_rel),
        similarity(metrics.cosine),
        figure(metrics.excess),
    )


def _facts(report: Report) -> list[tuple[str, str]]:
    """Headings and lines about what was judged; only the first of many inputs, outputs and notes."""
    groups = report.facts.groups() if report.facts is not None else {}
    lines: list[tuple[str, str]] = []
    for heading, found in groups.items():
        more = [f"... and {len(found) - _TOLD} more"] if len(found) > _TOLD else []
        labels = [f"  {heading}", *[""] * _TOLD]
        lines += zip(labels, map(printable, found[:_TOLD] + more), strict=False)
    return lines


def _messages(report: Report) -> list[str]:
    """The first failures; JSON and HTML have them all."""
    failures = report.failures
    more = [f"... and {len(failures) - _TOLD} more"] if len(failures) > _TOLD else []
    return [_message(run) for run in failures[:_TOLD]] + more


def _message(run: Run) -> str:
    """On one line, though an error may list several nodes."""
    return printable(f"{run.label} on {run.provider}: {' '.join(run.message.split())}")


def figure(value: float) -> str:
    """A few digits: ``0``, ``1.3e-06``, ``0.042``; ``n/a`` for what was not measured."""
    return "n/a" if math.isnan(value) else f"{value:.2g}"


def similarity(cosine: float, digits: int = 7) -> str:
    """A cosine, with the digits in which networks differ."""
    return "n/a" if math.isnan(cosine) else f"{cosine:.{digits}f}"
