"""The tables of the web page: runs, and the outputs of a run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING

from entrepot.parity.metrics import HISTOGRAM_EDGES, Metrics, Worst
from entrepot.parity.report.text import figure, similarity

if TYPE_CHECKING:
    from entrepot.parity.compare import OutputComparison
    from entrepot.parity.report.report import Run

_FIGURES = (
    "errors", "of tolerance", "max abs", "max rel", "mean abs", "rms", "cosine", "tolerance", "differ",
    "worst element",
)  # fmt: skip


def runs_table(runs: Iterable[Run]) -> str:
    """One row per run with the figures of its worst output; where there are several, they fold out beneath."""
    return _table(("inputs", "provider", *_FIGURES), "\n".join(map(_run, runs)))


def outputs_table(outputs: Iterable[OutputComparison]) -> str:
    """One row per output."""
    return _table(("output", "type", *_FIGURES), "\n".join(map(_output, outputs)))


def refusals_table(runs: Iterable[Run]) -> str:
    """One row with its reason for everything that does not count."""
    return _table(("inputs", "provider", "verdict", "reason"), "\n".join(map(_refusal, runs)))


def _run(run: Run) -> str:
    outputs = run.comparison.outputs if run.comparison is not None else ()
    figures = [] if run.worst is None else _figures(run.worst)
    row = _row([escape(run.label), escape(run.provider), *figures])
    if len(outputs) < 2:
        return row
    # the outputs get a row of their own, as wide as the table
    details = f"<details><summary>{len(outputs)} outputs</summary>{outputs_table(outputs)}</details>"
    return f'{row}<tr><td colspan="{2 + len(_FIGURES)}">{details}</td></tr>'


def _refusal(run: Run) -> str:
    start = _cells(escape(text) for text in (run.label, run.provider, run.verdict))
    return f'<tr>{start}<td class="text">{escape(run.message)}</td></tr>'


def _output(output: OutputComparison) -> str:
    shape = "" if output.shape is None else str(list(output.shape))
    start = [escape(output.name), escape(f"{output.dtype or ''}{shape}")]
    if output.metrics is None:
        return f'<tr>{_cells(start)}<td class="text" colspan="{len(_FIGURES)}">{escape(output.problem)}</td></tr>'
    return _row([*start, *_figures(output)])


def _figures(output: OutputComparison) -> list[str]:
    """Cells under ``_FIGURES``, as HTML."""
    metrics, rule = output.metrics, output.tolerance
    if metrics is None or rule is None:
        return [""] * len(_FIGURES)
    numbers = (metrics.excess, metrics.max_abs, metrics.max_rel, metrics.mean_abs, metrics.rms)
    noise = f" (rounding of the inputs alone: {figure(output.noise)})" if output.noise else ""
    texts = [
        *map(figure, numbers),
        similarity(metrics.cosine),
        f"{figure(rule.atol)} + {figure(rule.rtol)}·|x|{noise}",
        f"{metrics.mismatched} of {metrics.size}",
    ]
    return [_histogram(metrics), *map(escape, texts), _worst(metrics.worst, output.dtype)]


def _worst(worst: Worst | None, dtype: str | None) -> str:
    """On two lines, with as many digits as it takes to tell two numbers of the type apart."""
    if worst is None:
        return ""
    short = isinstance(worst.expected, float) and dtype != "float64"
    actual, expected = (f"{value:.9g}" if short else repr(value) for value in (worst.actual, worst.expected))
    return f"{list(worst.index)}: {escape(actual)}<br>expected {escape(expected)}"


def _histogram(metrics: Metrics) -> str:
    """Bars for how many elements have which error, in units of what is allowed; red beyond it."""
    labels = ["exact", *(f"up to {edge:g} of the tolerance" for edge in HISTOGRAM_EDGES), "more"]
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


def _table(headings: Sequence[str], rows: str) -> str:
    heads = "".join(f"<th>{heading}</th>" for heading in headings)
    return f'<div class="wide"><table><thead><tr>{heads}</tr></thead>\n<tbody>{rows}</tbody></table></div>'


def _row(cells: Iterable[str]) -> str:
    return f"<tr>{_cells(cells)}</tr>"


def _cells(cells: Iterable[str]) -> str:
    return "".join(f"<td>{cell}</td>" for cell in cells)
