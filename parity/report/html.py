"""A report as one self-contained web page."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from entrepot.ir.io.destination import Target, write_file
from entrepot.ir.printable import counted
from entrepot.parity.compare import rank
from entrepot.parity.report.html_tables import outputs_table, refusals_table, runs_table
from entrepot.parity.report.text import figure, mark, summary

if TYPE_CHECKING:
    from entrepot.parity.report.facts import ModelFacts
    from entrepot.parity.report.report import Report, Run

_FAILED = ' class="run bad" open'
_RUNS = ' class="run"'
_SHOWN = 6
_STYLE = """
body:has(>.parity){margin:0;background:#fff;color-scheme:light dark}
.parity{font:15px/1.5 system-ui,sans-serif;color:#1c2733;background:#fff;
max-width:1320px;margin:0 auto;padding:1.5rem 1rem}
.parity h1{font-size:1.35rem;margin:0 0 .2rem;overflow-wrap:anywhere}.parity p{margin:.2rem 0 1.2rem;color:#526170}
.parity h1 span,.parity summary span{font-weight:600}.parity .agrees{color:#137a4b}
.parity .differs,.parity .error{color:#b3261e}.parity summary{cursor:pointer}.parity svg{display:block}
.parity table{border-collapse:collapse;font-variant-numeric:tabular-nums}
.parity th,.parity td{text-align:left;padding:.35rem .7rem;border-bottom:1px solid #e3e8ee;vertical-align:top}
.parity th{font-weight:600;color:#526170;white-space:nowrap}.parity .wide{overflow-x:auto}
.parity .wide{font-size:.85rem}.parity .wide th,.parity .wide td{padding:.3rem .35rem;vertical-align:middle}
.parity .wide td{white-space:nowrap}.parity td.text{white-space:pre-wrap;min-width:16rem}
.parity .facts{width:100%;margin:0 0 1.2rem}.parity .facts th{width:6rem;padding-left:0}
.parity .facts td,.parity pre{overflow-wrap:anywhere}.parity pre{white-space:pre-wrap;margin:.6rem 0}
.parity .run{border:1px solid #e3e8ee;border-radius:8px;margin:.6rem 0;padding:.5rem .8rem}
.parity .bad{border-color:#e0a19c;background:#fdf1f0}
@media(prefers-color-scheme:dark){body:has(>.parity){background:#12181f}.parity{color:#dbe3ea;background:#12181f}
.parity th,.parity td,.parity .run{border-color:#2a3641}.parity p,.parity th{color:#9fb0c0}
.parity .bad{border-color:#70302d;background:#2b1a1b}
.parity .agrees{color:#5fd39b}.parity .differs,.parity .error{color:#ff8a80}}
"""


def write_html(report: Report, path: Target) -> None:
    """Write the page; an existing file is replaced whole or not at all."""
    title = escape(f"parity: {report.model}")
    head = f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title>'
    page = f'{head}<meta name="viewport" content="width=device-width">\n{fragment(report)}\n</html>\n'
    write_file(path, lambda file: file.write(page.encode()))


def fragment(report: Report) -> str:
    """The report as an element for a page or a notebook."""
    word = mark(report)
    colour = {"verified": "agrees", "not verified": "differs"}.get(word, "declined")
    parts = [
        f'<h1>{escape(report.model)} <span class="{colour}">{word}</span></h1>',
        f"<p>{escape(summary(report))}</p>",
        _facts(report.facts) if report.facts is not None else "",
        *map(_failure, report.failures),
        _agreeing([run for run in report.runs if run.verdict == "agrees"]),
        _not_compared([*report.refusals, *report.declined, *report.noted]),
    ]
    body = "\n".join(filter(None, parts))
    return f'<div class="parity"><style>{_STYLE}</style>\n{body}</div>'


def _facts(facts: ModelFacts) -> str:
    rows = (f"<tr><th>{heading}</th><td>{_lines(lines)}</td></tr>" for heading, lines in facts.groups().items())
    return f'<table class="facts">{"".join(rows)}</table>'


def _lines(lines: list[str]) -> str:
    """The first ones; the others fold out."""
    shown = [f"<div>{escape(line)}</div>" for line in lines]
    rest = _folded(f"{len(lines) - _SHOWN} more", "".join(shown[_SHOWN:])) if len(lines) > _SHOWN else ""
    return "".join(shown[:_SHOWN]) + rest


def _failure(run: Run) -> str:
    """Open, with the outputs that differ; those that agree fold out."""
    title = f'{escape(run.label)} on {escape(run.provider)} <span class="{run.verdict}">{run.verdict}</span>'
    if run.comparison is None:
        return _folded(title, f"<pre>{escape(run.message)}</pre>", _FAILED)
    wrong = [output for output in run.comparison.outputs if not output.ok]
    right = [output for output in run.comparison.outputs if output.ok]
    rest = _folded(f"{counted(len(right), 'output')} within tolerance", outputs_table(right)) if right else ""
    return _folded(title, outputs_table(wrong) + rest, _FAILED)


def _agreeing(runs: list[Run]) -> str:
    if not runs:
        return ""
    worst = max(runs, key=lambda run: rank(run.excess))
    verdict = f'<span class="agrees">{"agrees" if len(runs) == 1 else "agree"}</span>'
    error = f"largest error {figure(worst.excess)} of the tolerance ({worst.label} on {worst.provider})"
    return _folded(f"{counted(len(runs), 'run')} {verdict}, {escape(error)}", runs_table(runs), _RUNS)


def _not_compared(runs: list[Run]) -> str:
    return _folded(f"{len(runs)} not counted", refusals_table(runs), _RUNS) if runs else ""


def _folded(title: str, content: str, attributes: str = "") -> str:
    return f"<details{attributes}><summary>{title}</summary>{content}</details>"
