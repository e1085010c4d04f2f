"""A report on a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from entrepot.ir.printable import printable

if TYPE_CHECKING:
    import rich.console

    from entrepot.parity.report.report import Report, Run

HEADINGS = ("inputs", "provider", "verdict", "max abs", "max rel", "cosine", "of allowed")
_TOLD = 10
_STYLES = {"agrees": "green", "differs": "bold red", "error": "bold red", "refused": "dim", "declined": "dim"}


def summary(report: Report) -> str:
    """The verdict in one line, with the largest error and what could not be proved."""
    return printable("; ".join([*_verdict(report), *_remarks(report)]))


def _verdict(report: Report) -> list[str]:
    ran, worst = len(report.ran), report.worst
    if report.void:
        return [f"NOT verified against {report.source} any more: {report.void}"]
    if worst is None or not (report.ok or report.failures):
        return [f"NOT verified against {report.source}: nothing was compared"]
    if report.failures:
        failed = f"NOT verified against {report.source}: {len(report.failures)} of {ran} runs failed"
        return [failed, f"worst: {_message(worst)}"]
    declined = {run.provider for run in report.declined}
    providers = ", ".join(name for name in report.providers if name not in declined)
    agree = f"verified against {report.source}: {ran} runs on {providers} agree"
    return [agree, f"largest error {figure(worst.excess)} of the allowed"]


def _remarks(report: Report) -> list[str]:
    by_source = sum(run.provider == "source" for run in report.refusals)
    by_graph = len(report.refusals) - by_source
    remarks = {
        f"{by_source} refused by the source": by_source,
        f"{by_graph} empty inputs refused by the exported graph": by_graph,
        f"{len(report.sensitive)} agree within what rounding alone does to the source": report.sensitive,
        f"no other size proved for {', '.join(report.unproven)}": report.unproven,
    }
    declined = [f"{run.provider} does not run it" for run in report.declined]
    return declined + [text for text, applies in remarks.items() if applies]


def table(report: Report) -> str:
    """The summary, and under it one line per run; messages of failures follow."""
    rows = [HEADINGS, *(cells(run) for run in report.runs)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    messages = _messages(report)
    return "\n".join([summary(report), "", *lines, *([""] if messages else []), *messages, *_notes(report)])


def renderable(report: Report) -> rich.console.Group:
    """The same with colours, for ``rich.print``."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    shown = Table(*HEADINGS)
    for run in report.runs:
        # as Text, because a name may hold what rich takes for markup
        shown.add_row(*(Text(cell, _STYLES[run.verdict] if at == 2 else "") for at, cell in enumerate(cells(run))))
    messages = [Text(message) for message in _messages(report)]
    notes = [Text(note, "dim") for note in _notes(report)]
    return Group(Text(summary(report), "green" if report.ok else "bold red"), shown, *messages, *notes)


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
        f"{metrics.cosine:.7f}",
        figure(metrics.excess),
    )


def _messages(report: Report) -> list[str]:
    """The first failures; JSON and HTML have all."""
    failures = report.failures
    more = [f"... and {len(failures) - _TOLD} more"] if len(failures) > _TOLD else []
    return [_message(run) for run in failures[:_TOLD]] + more


def _notes(report: Report) -> list[str]:
    return [printable(f"note: {note}") for note in report.notes]


def _message(run: Run) -> str:
    """On one line, though an error may list several nodes."""
    return printable(f"{run.label} on {run.provider}: {' '.join(run.message.split())}")


def figure(value: float) -> str:
    """A few digits: ``0``, ``1.3e-06``, ``0.042``."""
    return f"{value:.2g}"
