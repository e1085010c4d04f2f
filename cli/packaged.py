"""``entrepot export --task``: a transformer, or a checkpoint of one, becomes the folder of a package."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
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

    from entrepot.runtime.generation.layouts import Layout
    from entrepot.runtime.generation.package import Package

TASKS = ("auto", "generate", "forward")
_OF_FILES = ("dynamic", "optimize", "require_proof", "atol", "rtol", "html")
"""Options of a single graph."""
_OPTIONS: tuple[tuple[str, click.ParamType[Any], Any, str], ...] = (
    ("loop", click.Choice(("host", "in_graph")), "host", "Who generates: a runtime's host, or one graph by itself."),
    ("num-beams", click.IntRange(min=1), 1, "Beams that a loop in the graph searches."),
    ("precision", click.Choice(("float32", "float16", "bfloat16")), "float32", "Of weights, products and caches."),
    ("cache", click.Choice(("dynamic", "static")), "dynamic", "Whether caches grow or have a fixed size."),
    ("max-length", click.IntRange(min=16), 1024, "Tokens that a static cache has room for."),
    ("layout", click.Choice(("entrepot", "optimum", "genai")), "entrepot", "Who reads the folder."),
)
_OF_PACKAGES = tuple(name.replace("-", "_") for name, *_ in _OPTIONS)
"""Options of packages; those of ``_OPTIONS``, as click names them."""


@dataclass(frozen=True)
class Asked:
    """What the options that only packages have say; names and values are those of ``export_transformer``.

    Attributes:
        wishes: Arguments of ``export_transformer``.
        layout: For whom the folder is written.
    """

    wishes: Mapping[str, Any]
    layout: Layout


def package_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """``--loop`` and what else only packages have, handed over as ``asked``."""

    def call(*args: Any, layout: Layout, **kwargs: Any) -> Any:
        wishes = {name: kwargs.pop(name) for name in _OF_PACKAGES if name in kwargs}
        return function(*args, asked=Asked(wishes, layout), **kwargs)

    call.__doc__ = function.__doc__
    call.__click_params__ = getattr(function, "__click_params__", [])  # type: ignore[attr-defined]
    for name, kind, default, described in reversed(_OPTIONS):
        option = click.option(f"--{name}", type=kind, default=default, show_default=True, help=described)
        call = option(call)
    return call


def check_only_file(context: click.Context) -> None:
    """Refuse options of packages where a file is written.

    Raises:
        UsageError: One of them is given.
    """
    for name in _OF_PACKAGES:
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            raise click.UsageError(f"--{name.replace('_', '-')} needs --task", context)


def as_package(output: Output, source: str, sample: str | None, target: Target, asked: Asked, **wishes: Any) -> int:
    """Export, verify and write a package.

    Args:
        output: Where results go.
        source: What to export: an object by its name, or a folder.
        sample: The sample inputs by their name.
        target: The folder to write.
        asked: The options that only packages have.
        wishes: Further arguments of ``export_transformer``.

    Raises:
        UsageError: An option does not go with a package.
        EntrepotError: As of ``export_transformer``.
    """
    from entrepot.exporters.transformers.api import export_transformer
    from entrepot.runtime.generation.writing import check_target

    folder = _folder(target)
    check_target(folder)
    package = export_transformer(
        Path(source) if os.path.exists(source) or ":" not in source else load_object(source),
        None if sample is None else load_object(sample),
        progress=output.progress,
        **asked.wishes,
        **wishes,
    )
    package.save(folder, layout=asked.layout)
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
