"""A report as JSON, for machines."""

from __future__ import annotations

import dataclasses
import json
import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from entrepot.parity.compare import OutputComparison
    from entrepot.parity.report.report import Report, Run

SCHEMA = "entrepot.parity.report/1"
"""Name and version of the layout: the number changes when a key changes its meaning or goes away."""


def to_json(report: Report) -> str:
    """The whole report as an indented document; infinities and NaNs, which JSON lacks, are strings."""
    return json.dumps(as_dict(report), indent=2, allow_nan=False)


def as_dict(report: Report) -> dict[str, Any]:
    """The report as plain dicts, lists, strings and finite numbers."""
    return {
        "schema": SCHEMA,
        "ok": report.ok,
        "summary": report.summary(),
        "source": report.source,
        "model": report.model,
        "facts": None if report.facts is None else _plain(dataclasses.asdict(report.facts)),
        "providers": list(report.providers),
        "unproven": list(report.unproven),
        "hollow": list(report.hollow),
        "void": report.void,
        "doubt": report.doubt,
        "runs": [_run(run) for run in report.runs],
    }


def _run(run: Run) -> dict[str, Any]:
    return {
        "inputs": run.label,
        "symbol": run.symbol,
        "edge": run.edge,
        "provider": run.provider,
        "verdict": run.verdict,
        "message": run.message,
        "seconds": run.seconds,
        "outputs": [_output(output) for output in run.comparison.outputs] if run.comparison is not None else [],
    }


def _output(output: OutputComparison) -> dict[str, Any]:
    figures = _plain(dataclasses.asdict(output))
    return {**figures, "ok": output.ok, "excess": _plain(output.excess)}


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value if isinstance(value, bool | int | float | str | None) else str(value)
