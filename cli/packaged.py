"""``entrepot export --task``: a transformer, or a checkpoint of one, becomes the folder of a package."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from entrepot.cli.exit_codes import Exit
from entrepot.cli.models import Target
from entrepot.cli.objects import load_object
from entrepot.cli.output import Output, rows, stack

if TYPE_CHECKING:
    from rich.console import RenderableType

    from entrepot.exporters.transformers.roles import Task
    from entrepot.runtime.generation.package import Package

TASKS = ("auto", "generate", "forward")
_OF_FILES = ("dynamic", "optimize", "require_proof", "atol", "rtol", "html")
"""Options of a single graph."""


@dataclass(frozen=True)
class Asked:
    """What the command line says of a package.

    Attributes:
        task: What the model is for.
        in_graph: Whether one graph generates by itself.
        opset: Of the graphs.
        verify: Whether to compare with the source.
    """

    task: Task
    in_graph: bool
    opset: int | None
    verify: bool


def as_package(output: Output, source: str, sample: str | None, target: Target, asked: Asked) -> int:
    """Export, verify and write a package.

    Raises:
        UsageError: An option does not go with a package.
        EntrepotError: As of ``export_transformer``.
    """
    from entrepot.exporters.transformers.api import export_transformer

    folder = _folder(target)
    package = export_transformer(
        Path(source) if os.path.exists(source) else load_object(source),
        None if sample is None else load_object(sample),
        asked.task,
        loop="in_graph" if asked.in_graph else "host",
        opset=asked.opset,
        verify=asked.verify,
        progress=output.progress,
    )
    package.save(folder)
    for note in package.notes:
        output.note(f"note: {note}")
    output.result(_facts(package, folder), lambda: _text(package, folder))
    return Exit.OK


def _folder(target: Target) -> Path:
    context = click.get_current_context()
    for name in _OF_FILES:
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            raise click.UsageError(f"--task and --{name.replace('_', '-')} exclude each other", context)
    if not isinstance(target, Path):
        raise click.UsageError("a package is a folder: it cannot be written to standard output", context)
    return target


def _facts(package: Package, folder: Path) -> dict[str, Any]:
    from entrepot.parity.report import Report
    from entrepot.parity.report.json import as_dict

    return {
        "path": str(folder),
        "kind": package.manifest.kind,
        "graphs": {role: model.opset for role, model in package.graphs.items()},
        "inputs": [str(spec) for spec in package.inputs.values()],
        "files": sorted(package.files),
        "notes": list(package.notes),
        "report": as_dict(package.report) if isinstance(package.report, Report) else None,
    }


def _text(package: Package, folder: Path) -> RenderableType:
    from entrepot.parity.report import Report

    cells: list[tuple[str, str]] = [("kind", package.manifest.kind)]
    cells += [("input", str(spec)) for spec in package.inputs.values()]
    cells += [("graph", f"{role}.onnx, opset {model.opset}") for role, model in package.graphs.items()]
    cells += [("file", name) for name in sorted(package.files)]
    report = package.report
    verdict = [replace(report, facts=None)] if isinstance(report, Report) else []
    return stack(rows("", "", cells=cells), *verdict, f"written to {folder}")
