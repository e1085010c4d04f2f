"""A report as one self-contained web page."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from entrepot.ir.io.destination import Target, write_file
from entrepot.parity.metrics import HISTOGRAM_EDGES, Metrics
from entrepot.parity.report.text import HEADINGS, cells, figure, summary

if TYPE_CHECKING:
    from entrepot.parity.compare import OutputComparison
    from entrepot.parity.report.report import Report, Run

_STYLE = """
.parity{font:15px/1.5 system-ui,sans-serif;color:#1c2733;background:#fff;max-width:1080px;margin:2rem auto}
.parity h1{font-size:1.35rem;margin:0 0 .2rem}.parity p{margin:.2rem 0 1.2rem;color:#526170}
.parity table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums}
.parity th,.parity td{text-align:left;padding:.35rem .7rem;border-bottom:1px solid #e3e8ee;vertical-align:top}
.parity th{font-weight:600;color:#526170}.parity td.n{text-align:right}.parity th.n{text-align:right}
.parity .v{font-weight:600}.parity .agrees{color:#137a4b}.parity .differs,.parity .error{color:#b3261e}
.parity .refused,.parity .declined{color:#7a8794}.parity details{margin:0}.parity summary{cursor:pointer}
.parity .bad td{background:#fdf1f0}.parity svg{display:block}.parity small{color:#7a8794}
.parity tr.h td{border-bottom:0}.parity tr.d td{padding-top:0}
.parity details table{margin:.4rem 0 .8rem;font-size:.9rem}
@media(prefers-color-scheme:dark){body{background:#12181f}.parity{color:#dbe3ea;background:#12181f}
.parity th,.parity td{border-color:#2a3641}.parity p,.parity th{color:#9fb0c0}.parity .bad td{background:#2b1a1b}
.parity .agrees{color:#5fd39b}.parity .differs,.parity .error{color:#ff8a80}}
"""

_OUTPUT_HEADINGS = (
    "output", "type", "allowed", "max abs", "max rel", "mean abs", "rms", "cosine", "mismatched", "worst element",
    "errors",
)  # fmt: skip


def write_html(report: Report, path: Target) -> None:
    """Write the page; an existing file is replaced whole or not at all."""
    title = escape(f"parity: {report.model}")
    head = f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title>'
    page = f'{head}<meta name="viewport" content="width=device-width">\n{fragment(report)}\n</html>\n'
    write_file(path, lambda file: file.write(page.encode()))


def fragment(report: Report) -> str:
    """The report as an element for a page or a notebook."""
    mark = '<span class="agrees">verified</span>' if report.ok else '<span class="differs">not verified</span>'
    heads = "".join(_cell("th", text, number=at > 2) for at, text in enumerate(HEADINGS))
    rows = "\n".join(_row(run) for run in report.runs)
    return (
        f'<div class="parity"><style>{_STYLE}</style>\n'
        f"<h1>{escape(report.model)} {mark}</h1>\n"
        f"<p>{escape(summary(report))}</p>\n"
        f"<table><thead><tr>{heads}</tr></thead>\n<tbody>{rows}</tbody></table></div>"
    )


def _row(run: Run) -> str:
    label, provider, verdict, *figures = cells(run)
    numbers = "".join(_cell("td", text, number=True) for text in figures)
    head = (
        f'<tr class="h">{_cell("td", label)}{_cell("td", provider)}<td class="v {verdict}">{verdict}</td>{numbers}</tr>'
    )
    opened = " open" if run.verdict in {"differs", "error"} else ""
    # the outputs get a row of their own, as wide as the table
    details = f"<details{opened}><summary>outputs</summary>{_outputs(run)}</details>"
    return f'{head}<tr class="d"><td colspan="{len(HEADINGS)}">{details}</td></tr>'


def _outputs(run: Run) -> str:
    message = f"<p>{escape(run.message)}</p>" if run.message else ""
    if run.comparison is None:
        return message
    heads = "".join(_cell("th", text) for text in _OUTPUT_HEADINGS)
    rows = "".join(_output(output) for output in run.comparison.outputs)
    return f"{message}<table><tr>{heads}</tr>{rows}</table>"


def _output(output: OutputComparison) -> str:
    shape = "" if output.shape is None else str(list(output.shape))
    start = [output.name, f"{output.dtype or ''}{shape}"]
    if output.metrics is None or output.tolerance is None:
        texts = [*start, output.problem]
        return f'<tr class="bad">{"".join(_cell("td", text) for text in texts)}</tr>'
    metrics, rule = output.metrics, output.tolerance
    worst = metrics.worst
    texts = [
        *start,
        f"{figure(rule.atol)} + {figure(rule.rtol)}·|x|{_noise(output)}",
        figure(metrics.max_abs),
        figure(metrics.max_rel),
        figure(metrics.mean_abs),
        figure(metrics.rms),
        f"{metrics.cosine:.9f}",
        f"{metrics.mismatched} of {metrics.size}",
        "" if worst is None else f"{list(worst.index)}: {worst.actual!r}, expected {worst.expected!r}",
    ]
    row = "".join(_cell("td", text) for text in texts)
    return f"<tr{'' if output.ok else ' class=bad'}>{row}<td>{_histogram(metrics)}</td></tr>"


def _noise(output: OutputComparison) -> str:
    return f" (rounding of the inputs alone: {figure(output.noise)})" if output.noise else ""


def _histogram(metrics: Metrics) -> str:
    """Bars for how many elements have which error, in units of what is allowed; red beyond it."""
    labels = ["exact", *(f"up to {edge:g} of the allowed error" for edge in HISTOGRAM_EDGES), "more"]
    most = max(metrics.histogram) or 1
    bars = []
    for at, (label, count) in enumerate(zip(labels, metrics.histogram, strict=True)):
        # a single element must show beside a million
        height = round(2 + 26 * count / most, 1) if count else 0
        colour = "#d0453b" if at > 1 + HISTOGRAM_EDGES.index(1.0) else "#4b83c3"
        box = f'x="{at * 11}" y="{30 - height}" width="9" height="{height}" fill="{colour}"'
        bars.append(f"<rect {box}><title>{label}: {count}</title></rect>")
    line = '<path d="M0 30.5H88" stroke="#9fb0c0"/>'
    return f'<svg width="88" height="32" role="img" aria-label="error histogram">{"".join(bars)}{line}</svg>'


def _cell(tag: str, text: str, *, number: bool = False) -> str:
    return f"<{tag}{' class=n' if number else ''}>{escape(text)}</{tag}>"
